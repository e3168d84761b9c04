"""Where processes are, from what they said last: in the spool of a running training, and in the manifest of a command
that did not end well."""

import json
import os
import time

import pytest

from pipeprof.read.spool import live
from pipeprof.read.spool.account import life_of
from pipeprof.read.spool.finish import finish
from pipeprof.record.run import Manifest, Run, load
from pipeprof.record.whereabouts import MOST_FRAMES, MOST_STUCK

S = 1_000_000_000
NODE = {"type": "BatchOp", "node": 0, "children": [{"type": "MapOp", "node": 1, "name": "decode"}]}
STACK = [["/a/train.py", 5, "load", 1, None]]
OWN, LIBRARY = ["/a/train.py", 5, "take", 1, None], ["/lib/threading.py", 9, "wait", 0, None]
FETCH = ["/probe/dataset.py", 1, "__next__", 0, {"call": "fetch", "since": 3 * S, "tree": 0, "rows": 7}]
END = 60 * S


@pytest.fixture
def spool(tmp_path, monkeypatch):
    """`spool(now, rank=0)` writes a process; the result reads them all. They count as running."""
    run = Run(tmp_path, Manifest(run_id="x", started_at="", pipeprof_version="0"))
    written = []

    def write(now, rank=0, rep=0, events=(), host=None):
        folder = run.spool / f"rep={rep}" / f"proc-{100 + rank}-1"
        folder.mkdir(parents=True)
        about = {
            "e": "process",
            "t": 1,
            "pid": 100 + rank,
            "started": 1,
            "rank": rank,
            "host": host or live.host_name(),
        }
        iterator = {"e": "iterator", "t": 2, "number": 0, "begin": 1, "end": 2, "graph": NODE}
        lines = [json.dumps(event) for event in (about, iterator, *events)]
        folder.joinpath("events.jsonl").write_text("\n".join(lines), encoding="utf-8")
        if now is not None:
            folder.joinpath(live.NOW).write_text(now if isinstance(now, str) else json.dumps(now), encoding="utf-8")
        written.append(100 + rank)
        return folder

    monkeypatch.setattr(live, "processes_alive", lambda _run: written)
    write.read = lambda: live.read_live(run)
    return write


def now(**more):
    return {"t": 20 * S, "moved": 15 * S, "calls": 3, "stack": STACK, "line": "x = 1", **more}


def made_old(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_nothing_is_known_before_a_process_uses_mindspore(spool):
    assert spool.read() == []


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '"x"'])
def test_a_process_that_has_not_said_where_it_is_has_no_age(spool, text):
    spool(text)
    (one,) = spool.read()
    assert (one.age_s, one.stack) == (None, ())


def test_stack_and_time_come_back(spool):
    spool(now())
    (one,) = spool.read()
    assert (one.still_ns, one.calls, one.line, one.alive) == (5 * S, 3, "x = 1", True)
    assert [(frame.site, frame.function, frame.own) for frame in one.stack] == [("/a/train.py:5", "load", True)]


def test_a_thread_is_placed_in_the_pipeline(spool):
    thread = {"call": "row", "tree": 0, "node": 1, "since": 17 * S, "stack": STACK, "line": "y", "name": ""}
    own = {"since": 18 * S, "stack": STACK, "line": "z", "name": "Thread-1"}
    spool(now(threads=[thread, own]))
    found = [(one.op_type, one.name, one.for_ns, one.pid) for one in spool.read()[0].stuck]
    assert found == [("MapOp", "decode", 3 * S, None), (None, None, 2 * S, None)]


def test_a_worker_counts_as_long_as_it_says_that_it_is_stuck(spool):
    folder = spool(now(), events=[{"e": "workers", "t": 3, "pipeline": 0, "node": 1, "pids": [7, 8]}])
    for pid in (7, 8):
        facts = {"t": 20 * S, "pid": pid, "since": 16 * S, "stack": STACK, "line": "y"}
        folder.joinpath(f"worker-{pid}.json").write_text(json.dumps(facts), encoding="utf-8")
    made_old(folder / "worker-8.json", 60)
    (worker,) = spool.read()[0].stuck
    assert (worker.pid, worker.op_type, worker.for_ns) == (7, "MapOp", 4 * S)


def test_the_newest_repetition_counts_and_ranks_come_in_order(spool):
    spool(now(), rep=9)
    for rank in (1, 0):
        spool(now(), rank=rank, rep=10)
    assert [(one.rep, one.rank) for one in spool.read()] == [(10, 0), (10, 1)]


def test_a_process_that_said_goodbye_has_ended(spool):
    spool(now(), events=[{"e": "bye", "t": 3}])
    assert spool.read()[0].ended


def test_a_process_of_another_host_runs_as_long_as_it_writes(spool):
    folder = spool(now(), host="elsewhere")
    assert spool.read()[0].alive
    made_old(folder / live.NOW, 3600)
    assert not spool.read()[0].alive


@pytest.fixture
def hung(spooled):
    """A process that stood still until the end of its command; the rank of the finished run."""

    def end(*, status=-9, bye=False, stack=(OWN, LIBRARY), t=END - S // 2, moved=2 * S, threads=()):
        folder = spooled.trained(status=status, end=END, bye=bye)
        said = now(t=t, moved=moved, stack=list(stack), line="lock.acquire()", threads=list(threads))
        folder.joinpath("now.json").write_text(json.dumps(said), encoding="utf-8")
        return finish(spooled.run).manifest.reps[0].ranks[0]

    return end


def test_where_it_stood_at_the_end_is_in_the_manifest(hung, spooled):
    hung()
    last = load(spooled.run.path).manifest.reps[0].ranks[0].last
    assert (last.line, last.calls, last.still_ns) == ("lock.acquire()", 3, END - S // 2 - 2 * S)
    assert last.age_s == pytest.approx(0.5, abs=1e-5)
    stack = [(frame.site, frame.own) for frame in last.stack]
    assert stack == [("/a/train.py:5", True), ("/lib/threading.py:9", False)]
    assert (last.longest_step_ns, last.cpu_s, last.cpu_limit_s) == (100, None, None)


def test_a_command_that_ended_well_keeps_nothing_of_it(hung):
    assert hung(status=0, bye=True).last is None


@pytest.mark.parametrize(("moved", "lost"), [(2 * S, 0.5), (END - S // 2, 60)], ids=["stood still", "something moved"])
def test_what_is_missing_ends_where_it_was_seen_that_nothing_moved(hung, moved, lost):
    """Not with the last step, a minute before, unless something moved when it was looked at."""
    assert hung(moved=moved).missing_steps_s == pytest.approx(lost, abs=1e-5 if lost < 1 else 0.1)


def test_a_wait_for_a_batch_keeps_its_begin_and_its_iterator(hung):
    (call,) = [frame.call for frame in hung(stack=[FETCH, OWN]).last.stack if frame.call]
    assert (call.call, call.since, call.tree, call.rows) == ("fetch", 3 * S, 0, 7)


def test_a_worker_that_was_stuck_at_the_end_is_kept_and_one_that_had_been_before_is_not(spooled):
    folder = spooled.trained(status=-9, end=END, bye=False)
    for pid, said in ((7, END - S), (8, END - 20 * S)):
        held = {"t": said, "pid": pid, "since": 4 * S, "stack": [OWN], "line": "q.get()"}
        folder.joinpath(f"worker-{pid}.json").write_text(json.dumps(held), encoding="utf-8")
    last = finish(spooled.run).manifest.reps[0].ranks[0].last
    assert [(one.pid, one.line) for one in last.stuck] == [(7, "q.get()")]


def test_deep_stacks_and_many_threads_are_cut_but_the_programs_own_frames_stay(hung):
    thread = {"since": S, "stack": [OWN] * 60, "line": ""}
    last = hung(stack=[*[LIBRARY] * 40, OWN], threads=[thread] * 9).last
    assert (len(last.stack), last.stack[-1].own, len(last.stuck)) == (MOST_FRAMES + 1, True, MOST_STUCK)
    assert max(len(one.stack) for one in last.stuck) == 2 * MOST_FRAMES


def process(pid, user, sys=0.0):
    return {"pid": pid, "ppid": 1, "name": "python", "user": user, "sys": sys, "rss": 5}


def sample(at, *processes):
    return {"t": at * S, "procs": list(processes)}


def test_a_process_that_was_seen_no_more_before_the_end_was_gone_by_then(spooled):
    spooled.trained(status=1, end=END, bye=False)
    machine = {"user": 0.0, "sys": 0.0, "idle": 0.0, "steal": 0.0, "used": 1}
    seen = [process(4_000_001, 2.0, 1.0)]
    spooled.host(machine | sample(at, *(seen if at < 20 else ())) for at in (10, 15, 20, 40))
    last = finish(spooled.run).manifest.reps[0].ranks[0].last
    assert last.gone_s == pytest.approx(40, abs=0.01)


def test_one_that_said_goodbye_had_ended_then(hung):
    assert hung(status=1, bye=True).last.gone_s == pytest.approx(60, abs=0.1)


@pytest.mark.parametrize(
    ("pid", "samples", "end", "used", "ended"),
    [
        # CPU time goes on to the end at the pace of the last samples
        (7, [sample(1, process(7, 1.0, 1.0)), sample(2, process(7, 2.5, 1.0))], int(2.5 * S), 4.25, int(2.5 * S)),
        (8, [sample(1, process(7, 1.0, 1.0)), sample(2, process(7, 2.5, 1.0))], 3 * S, None, 3 * S),
        (7, [sample(1, process(7, 1.0, 1.0))], 3 * S, 2.0, 3 * S),
        # a process has ended by the first sample without it
        (7, [sample(1, process(7, 1.0)), sample(2), sample(3)], 9 * S, 1.0, 2 * S),
    ],
)
def test_the_cpu_time_and_the_end_of_a_process(pid, samples, end, used, ended):
    assert life_of(pid, samples, end) == (pytest.approx(used), ended)
