"""What a process of a command that did not end well was in at its end: from its spool into the manifest."""

import json

import pytest

from pipeprof.read.spool.account import life_of
from pipeprof.read.spool.finish import finish
from pipeprof.record.run import load
from pipeprof.record.whereabouts import MOST_FRAMES, MOST_STUCK

S = 1_000_000_000
OWN, LIBRARY = ["/a/train.py", 5, "take", 1, None], ["/lib/threading.py", 9, "wait", 0, None]
FETCH = ["/probe/dataset.py", 1, "__next__", 0, {"call": "fetch", "since": 3 * S, "tree": 0, "rows": 7}]
END = 60 * S


def hung(spooled, *, status=-9, bye=False, events=(), stack=(OWN, LIBRARY), t=END - S // 2, moved=2 * S, threads=()):
    """A process that stood still until the end of its command; the rank of the finished run."""
    spooled.rep(status=status, end=END)
    folder = spooled.process(bye=bye, events=events)
    now = {"t": t, "moved": moved, "calls": 3, "stack": list(stack), "line": "lock.acquire()", "threads": list(threads)}
    folder.joinpath("now.json").write_text(json.dumps(now), encoding="utf-8")
    return finish(spooled.run).manifest.reps[0].ranks[0]


def test_where_it_stood_is_in_the_manifest(spooled):
    hung(spooled)
    last = load(spooled.run.path).manifest.reps[0].ranks[0].last
    assert (last.line, last.calls, last.still_ns) == ("lock.acquire()", 3, END - S // 2 - 2 * S)
    assert last.age_s == pytest.approx(0.5, abs=1e-5)
    assert [(frame.site, frame.own) for frame in last.stack] == [
        ("/a/train.py:5", True),
        ("/lib/threading.py:9", False),
    ]
    assert last.longest_step_ns == 100


def test_a_command_that_ended_well_keeps_nothing_of_it(spooled):
    assert hung(spooled, status=0, bye=True).last is None


def test_what_is_missing_ends_where_it_was_seen_that_nothing_moved(spooled):
    """Not with the last step, a minute before."""
    assert hung(spooled).missing_steps_s == pytest.approx(0.5, abs=1e-5)


def test_a_look_while_something_moved_ends_nothing(spooled):
    assert hung(spooled, t=END - S // 2, moved=END - S // 2).missing_steps_s == pytest.approx(60, abs=0.1)


def test_a_wait_for_a_batch_keeps_its_begin_and_its_iterator(spooled):
    (call,) = [frame.call for frame in hung(spooled, stack=[FETCH, OWN]).last.stack if frame.call]
    assert (call.call, call.since, call.tree, call.rows) == ("fetch", 3 * S, 0, 7)


def test_a_worker_that_was_stuck_at_the_end_is_kept_and_one_that_had_been_before_is_not(spooled):
    spooled.rep(status=-9, end=END)
    folder = spooled.process(bye=False)
    for pid, said in ((7, END - S), (8, END - 20 * S)):
        held = {"t": said, "pid": pid, "since": 4 * S, "stack": [OWN], "line": "q.get()"}
        folder.joinpath(f"worker-{pid}.json").write_text(json.dumps(held), encoding="utf-8")
    last = finish(spooled.run).manifest.reps[0].ranks[0].last
    assert [(one.pid, one.line) for one in last.stuck] == [(7, "q.get()")]


def test_deep_stacks_and_many_threads_are_cut_but_the_programs_own_frames_stay(spooled):
    thread = {"since": S, "stack": [OWN] * 60, "line": ""}
    last = hung(spooled, stack=[*[LIBRARY] * 40, OWN], threads=[thread] * 9).last
    assert len(last.stack) == MOST_FRAMES + 1
    assert last.stack[-1].own
    assert len(last.stuck) == MOST_STUCK
    assert max(len(one.stack) for one in last.stuck) == 2 * MOST_FRAMES


def test_a_process_that_was_seen_no_more_before_the_end_was_gone_by_then(spooled):
    spooled.rep(status=1, end=END)
    spooled.process(bye=False)
    sample = {"user": 0.0, "sys": 0.0, "idle": 0.0, "steal": 0.0, "used": 1}
    mine = {"pid": 4_000_001, "ppid": 1, "name": "python", "user": 2.0, "sys": 1.0, "rss": 5}
    lines = [sample | {"t": at * S, "procs": [mine] if at < 20 else []} for at in (10, 15, 20, 40)]
    spool = spooled.run.spool / "rep=0"
    spool.joinpath("host.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    last = finish(spooled.run).manifest.reps[0].ranks[0].last
    assert last.gone_s == pytest.approx(40, abs=0.01)


def test_one_that_said_goodbye_had_ended_then(spooled):
    assert hung(spooled, status=1, bye=True).last.gone_s == pytest.approx(60, abs=0.1)


def test_how_much_cpu_time_it_had_and_was_allowed_is_kept(spooled):
    about = hung(spooled).last
    assert (about.cpu_s, about.cpu_limit_s) == (None, None)


def process(pid, user, sys=0.0):
    return {"pid": pid, "ppid": 1, "name": "python", "user": user, "sys": sys, "rss": 5}


def sample(at, *processes):
    return {"t": at * S, "procs": list(processes)}


def test_cpu_time_goes_on_to_the_end_at_the_pace_of_the_last_samples():
    samples = [sample(1, process(7, 1.0, 1.0)), sample(2, process(7, 2.5, 1.0))]
    assert life_of(7, samples, int(2.5 * S)) == (pytest.approx(4.25), int(2.5 * S))
    assert life_of(8, samples, 3 * S) == (None, 3 * S)
    assert life_of(7, samples[:1], 3 * S) == (2.0, 3 * S)


def test_a_process_has_ended_by_the_first_sample_without_it():
    assert life_of(7, [sample(1, process(7, 1.0)), sample(2), sample(3)], 9 * S) == (1.0, 2 * S)
