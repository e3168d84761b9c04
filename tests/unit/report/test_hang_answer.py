"""The first screen of a training that stood still before its end."""

import json

import pytest
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.record.run import Failure, Rank, Rep
from pipeprof.record.whereabouts import Call, Frame, Last, Queue, Stuck
from pipeprof.report.answer import answer_of
from pipeprof.report.build import build
from pipeprof.report.markdown import text as markdown
from tests.unit.report.conftest import MS, trained

S = 1_000 * MS
LOOP = Frame("/w/train.py", 30, "<module>", own=True)
LOCK = Frame("/w/train.py", 12, "take", own=True)
FETCH = Frame("/p/dataset.py", 1, "__next__", own=False, call=Call("fetch", since=59 * S, tree=0, rows=7))
NETWORK = Frame("/p/steps.py", 1, "_timed", own=False, call=Call("call", since=60 * S))
GET = Frame("/w/rows.py", 4, "augment", own=True)
STUCK = Stuck(77, 41 * S, (GET,), "q.get()", "MapOp", "augment")


def last(*stack, **known):
    known = {"age_s": 0.5, "said_ns": 100 * S, "still_ns": 41 * S, "longest_step_ns": S // 10, "calls": 9} | known
    return Last(stack=stack, line="lock.acquire()", queues={0: (Queue("BatchOp", 0, 16),)}, **known)


def failure(error):
    return Failure(pid=40, error=error, place="/w/train.py:12", code="x", lines=[])


@pytest.fixture
def ended(make_run):
    """`ended(end, ...)`: a run whose ranks were in these at its end."""

    def make(*ends, code=-9, missing_s=None, state="partial", **more):
        zero = {"zero_realtime_ns": 0, "zero_monotonic_ns": 0}
        ranks = [
            Rank(rank=n, pid=40 + n, host="h", ended="lost", last=end, missing_steps_s=missing_s, **zero)
            for n, end in enumerate(ends)
        ]
        reps = [Rep(rep=0, exit_code=code, ranks=ranks, **zero, **{"oom_kills": 0} | more)]
        facts = {"reps": reps, "state": state, "workdir": "/w", "command": ["python", "train.py"]}
        return make_run({"step": trained(*[16 * MS] * 50, warm=1)}, **facts)

    return make


@pytest.fixture
def answer(ended):
    return lambda *ends, **more: answer_of(build(ended(*ends, **more)))


def test_a_lock_is_named_with_its_line_and_not_a_verdict_on_speed(answer):
    given = answer(last(LOCK, LOOP), code=-15)
    assert given.sentence == "The training stood still for its last 42 s, then it was ended by SIGTERM."
    assert given.cause.startswith("Rank 0 (process 40) was for 42 s in the script's own Python code, at train.py:12")
    assert given.place == "train.py:12: lock.acquire()"
    assert given.extra == ["at /w/train.py:30 <module>", "at /w/train.py:12 take"]


def test_of_a_wait_for_a_batch_the_worker_that_stands_still_is_the_place(answer):
    given = answer(last(FETCH, LOOP, stuck=(STUCK,)))
    assert "waited for 42 s for a batch (queue of batches: 0 of 16 ready)" in given.cause
    assert "worker process 77 of MapOp augment had been for 41 s in one call, at rows.py:4 in augment" in given.cause
    assert given.place == "rows.py:4: q.get()"
    assert given.sentence.endswith("then it was killed (SIGKILL).")


def test_the_rank_that_did_not_come_is_named_and_that_others_waited_for_it(answer):
    given = answer(last(NETWORK, LOOP), last(LOCK, LOOP, calls=8))
    assert given.cause.startswith("Rank 1 (process 41) was for 42 s in the script's own")
    assert given.cause.endswith("; 1 rank waited for it.")
    gone = answer(last(NETWORK, LOOP), last(LOCK, gone_s=40.0))
    assert "in a call of the network to which rank 1 had not come" in gone.cause
    assert "rank 1 (process 41) was gone" in gone.action


def test_without_a_complete_step_that_is_said_and_an_interruption_from_the_keyboard_hides_nothing(answer):
    given = answer(last(LOCK, LOOP, longest_step_ns=None), code=-2)
    assert given.sentence == "No training step was complete when it was ended by SIGINT, after 42 s in one place."
    assert "stood still" in answer(last(LOCK, LOOP), code=1, failure=failure("KeyboardInterrupt")).sentence


def test_an_exception_leads_and_what_went_before_is_told_behind_it(answer):
    given = answer(last(LOCK, LOOP), code=1, failure=failure("TimeoutError: no lock"), state="failed")
    assert given.sentence.startswith("The command failed after 49 training steps")
    assert given.cause.startswith("TimeoutError: no lock. Before that it had stood still for 42 s: rank 0")


def test_a_run_that_is_not_over_has_no_last_place(ended):
    run = ended(last(LOCK, LOOP))
    run.manifest.options["unfinished"] = True
    assert build(run)["hang"] is None


def test_what_a_kill_took_along_is_said_in_seconds_and_steps(answer):
    given = answer(last(LOCK, still_ns=0, age_s=0.1), missing_s=0.48)
    assert given.sentence == (
        "The command failed after 49 training steps, median 16.0 ms: it was killed (SIGKILL), though the kernel did "
        "not lack memory. Its last 480 ms (up to 30 more steps) had not been written."
    )
    assert "`kill -9`" in given.action


@pytest.mark.parametrize(("oom_kills", "more", "words", "cure"), [
    (1, {}, "when the kernel had no memory left", "smaller batch"), (None, {}, "by whom is not known", "`kill -9`"),
    (2, {"code": 1, "state": "failed"}, "exited with code 1; the kernel had ended 2 processes for lack of memory",
     "smaller batch"),
])  # fmt: skip
def test_only_where_the_kernel_lacked_memory_a_kill_is_said_to_be_its_own(answer, oom_kills, more, words, cure):
    given = answer(last(LOCK, still_ns=0), oom_kills=oom_kills, **more)
    assert words in given.sentence
    assert cure in given.action


@pytest.mark.parametrize(("missing_s", "steps"), [(41.0, 63), (0.3, 19)])
def test_of_one_that_held_the_interpreters_lock_steps_before_may_be_missing(answer, missing_s, steps):
    given = answer(last(LOCK, LOOP, age_s=41.0, still_ns=0), missing_s=missing_s, oom_kills=1)
    assert given.sentence == (
        "The training stood still for its last 41 s, then it was killed (SIGKILL) when the kernel had no memory left. "
        f"Up to {steps} steps before that may be missing."
    )
    assert "holds the interpreter's lock" not in given.cause
    assert "held the interpreter's lock" in given.cause
    assert given.place.startswith("train.py:12")


@pytest.mark.parametrize(("code", "cpu_s", "is_limit"), [
    (-9, 19.5, True), (137, 20.4, True), (-9, 15.0, False), (-24, None, True), (-15, 20, False),
])  # fmt: skip
def test_a_limit_of_cpu_time_is_told_from_other_kills(answer, code, cpu_s, is_limit):
    given = answer(last(LOCK, still_ns=0, cpu_limit_s=20, cpu_s=cpu_s), code=code, state="failed")
    assert ("used up the CPU time that it was allowed (20 s, `ulimit -t`)" in given.sentence) is is_limit
    assert ("Raise that limit" in given.action) is is_limit


@pytest.mark.parametrize(("code", "cpu_s", "limit_s", "said"), [
    (-24, None, None, "allowed (`ulimit -t`)"), (-9, 1.77, 2, "allowed (2 s, `ulimit -t`)"),
    (-9, 3.0, 14, "was killed"),
])  # fmt: skip
def test_a_limit_of_cpu_time_is_known_of_a_command_that_recorded_nothing(answer, code, cpu_s, limit_s, said):
    assert said in answer(code=code, state="failed", cpu_s=cpu_s, cpu_limit_s=limit_s).sentence


def test_every_format_names_the_place(ended):
    run = ended(last(LOCK, LOOP))
    content = build(run)
    assert json.loads(json.dumps(content["hang"]))["ranks"][0]["site"] == "/w/train.py:12"
    assert "train.py:12: lock.acquire()" in markdown(content)
    said = CliRunner().invoke(cli, ["status", str(run.path)], catch_exceptions=False).stdout
    assert "before its end it stood still" in said
    assert "rank 0 (process 40) was for 42 s in the script's own Python code" in said
