"""What the spool of a running training says about where its processes are."""

import json
import os
import time

import pytest

from pipeprof.read.spool import live
from pipeprof.record.run import Manifest, Run

S = 1_000_000_000
NODE = {"type": "BatchOp", "node": 0, "children": [{"type": "MapOp", "node": 1, "name": "decode"}]}
STACK = [["/a/train.py", 5, "load", 1, None]]


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


def test_nothing_is_known_before_a_process_uses_mindspore(spool):
    assert spool.read() == []


def test_a_process_that_has_not_said_where_it_is_has_no_age(spool):
    spool(None)
    (one,) = spool.read()
    assert (one.age_s, one.stack) == (None, ())


def test_stack_and_time_come_back(spool):
    spool(now())
    (one,) = spool.read()
    assert (one.still_ns, one.calls, one.line, one.alive) == (5 * S, 3, "x = 1", True)
    assert [(frame.site, frame.function, frame.own) for frame in one.stack] == [("/a/train.py:5", "load", True)]


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"'])
def test_a_file_that_is_no_such_thing_says_nothing(spool, text):
    spool(text)
    assert spool.read()[0].age_s is None


def test_a_thread_is_placed_in_the_pipeline(spool):
    thread = {"call": "row", "tree": 0, "node": 1, "since": 17 * S, "stack": STACK, "line": "y", "name": ""}
    own = {"since": 18 * S, "stack": STACK, "line": "z", "name": "Thread-1"}
    spool(now(threads=[thread, own]))
    row, other = spool.read()[0].stuck
    assert (row.op_type, row.name, row.for_ns, row.pid) == ("MapOp", "decode", 3 * S, None)
    assert (other.op_type, other.name, other.for_ns) == (None, None, 2 * S)


def test_a_worker_counts_as_long_as_it_says_that_it_is_stuck(spool):
    folder = spool(now(), events=[{"e": "workers", "t": 3, "pipeline": 0, "node": 1, "pids": [7, 8]}])
    facts = {"t": 20 * S, "pid": 7, "since": 16 * S, "stack": STACK, "line": "y"}
    for pid in (7, 8):
        folder.joinpath(f"worker-{pid}.json").write_text(json.dumps({**facts, "pid": pid}), encoding="utf-8")
    old = time.time() - 60
    os.utime(folder / "worker-8.json", (old, old))
    (worker,) = spool.read()[0].stuck
    assert (worker.pid, worker.op_type, worker.for_ns) == (7, "MapOp", 4 * S)


def test_the_newest_repetition_counts_and_ranks_come_in_order(spool):
    spool(now(), rep=9)
    spool(now(), rank=1, rep=10)
    spool(now(), rank=0, rep=10)
    assert [(one.rep, one.rank) for one in spool.read()] == [(10, 0), (10, 1)]


def test_a_process_that_said_goodbye_has_ended(spool):
    spool(now(), events=[{"e": "bye", "t": 3}])
    assert spool.read()[0].ended


def test_a_process_of_another_host_runs_as_long_as_it_writes(spool):
    folder = spool(now(), host="elsewhere")
    assert spool.read()[0].alive
    old = time.time() - 3600
    os.utime(folder / live.NOW, (old, old))
    assert not spool.read()[0].alive
