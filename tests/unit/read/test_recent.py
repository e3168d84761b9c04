"""The pace of a live run, from the newest part of its spool."""

import json
import struct

import pytest

from pipeprof.read.spool import recent
from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.process import newest_marks

MS = 1_000_000
MARK = struct.Struct("<BBIIqq")


def loop(steps, wait=2 * MS, every=10 * MS):
    """Marks of a loop: a row, then an update."""
    for number in range(steps):
        at = number * every
        yield Kind.FETCH, 0, 0, number, at, at + wait
        yield Kind.UPDATE, 0, 0, number, at + wait, at + every - MS


def model(steps, every=10 * MS):
    yield Kind.TRAIN_BEGIN, 0, 0, 0, 0, 0
    yield Kind.EPOCH_BEGIN, 0, 0, 0, 0, 0
    for number in range(steps):
        at = number * every
        yield Kind.FETCH, 0, 0, number, at, at + MS
        yield Kind.TRAIN_STEP, 0, 1, number, at + every, at + every


@pytest.fixture
def written(tmp_path):
    """`written(marks, tail=b"")`: the folder of a process with these marks."""

    def write(marks, tail=b""):
        folder = tmp_path / "rep=0" / "proc-1-1"
        folder.mkdir(parents=True)
        folder.joinpath("marks.bin").write_bytes(b"".join(MARK.pack(*mark) for mark in marks) + tail)
        iterator = {"e": "iterator", "t": 2, "number": 0, "begin": 1, "end": 2, "graph": {"type": "BatchOp"}}
        folder.joinpath("events.jsonl").write_text(json.dumps(iterator) + "\n", encoding="utf-8")
        return folder

    return write


@pytest.mark.parametrize(("marks", "share"), [(loop, 0.2), (model, 0.1)])
def test_the_pace_is_that_of_the_newest_marks_also_where_the_begin_is_not_among_them(
    written, monkeypatch, marks, share
):
    monkeypatch.setattr(recent, "MOST_MARKS", 41)
    found = recent.pace(written(marks(5000)))
    assert found.per_second == pytest.approx(100, rel=0.01)
    assert found.median_ns == 10 * MS
    assert found.wait_share == pytest.approx(share, rel=0.02)
    assert 15 < found.steps < 21


def plan(at, batches):
    return json.dumps({"e": "plan", "t": at, "epochs": 2, "batches": batches}) + "\n"


def test_the_rest_of_a_model_train_is_known_from_what_it_was_told(written):
    folder = written(model(300))
    assert recent.pace(folder).left_ns is None
    with folder.joinpath("events.jsonl").open("a", encoding="utf-8") as file:
        file.write(plan(-5, 7) + plan(0, 200))  # of an earlier one, of this one
    found = recent.pace(folder)
    assert (found.done, found.planned) == (299, 400)
    assert found.left_ns == pytest.approx(101 * 10 * MS, rel=0.01)


def test_a_model_train_that_ended_has_no_rest(written):
    folder = written([*model(300), (Kind.TRAIN_END, 0, 0, 0, 3000 * MS, 3000 * MS)])
    folder.joinpath("events.jsonl").write_text(plan(0, 200), encoding="utf-8")
    assert recent.pace(folder).left_ns is None


def test_older_steps_than_the_last_ten_seconds_do_not_count(written):
    fast = [(*mark, at + 50_000 * MS, end + 50_000 * MS) for *mark, at, end in loop(1200)]
    found = recent.pace(written([*loop(100, every=500 * MS), *fast]))
    assert found.median_ns == 10 * MS
    assert found.over_ns <= recent.RECENT_NS + 10 * MS


def test_a_record_that_is_being_written_is_left_out(written):
    assert len(newest_marks(written(loop(3), tail=b"\x01\x00\x00"), 100)) == 6


def test_nothing_is_said_before_two_steps(written, tmp_path):
    assert recent.pace(tmp_path / "rep=0" / "proc-1-1") is None
    assert recent.pace(written(loop(1))) is None


def sample(at, user, idle, rss=1 << 20, pid=7):
    process = {"pid": pid, "ppid": 1, "user": user, "sys": 0.0, "rss": rss}
    return {"t": at, "used": 1, "user": user, "sys": 0.0, "idle": idle, "steal": 0.0, "procs": [process]}


def test_the_machine_is_as_between_the_two_newest_samples(tmp_path):
    lines = [json.dumps(sample(n * 1000 * MS, user=1.5 * n, idle=0.5 * n)) for n in range(5)]
    tmp_path.joinpath("host.jsonl").write_text("\n".join([*lines, "{half"]), encoding="utf-8")
    found = recent.usage(tmp_path)
    assert (found.idle_share, found.job_cores, found.rss_bytes, found.processes) == (0.25, 1.5, 1 << 20, 1)


@pytest.mark.parametrize("text", ["", "{}\n", "nothing\n", json.dumps(sample(1, 1, 1)) + "\n"])
def test_without_two_samples_nothing_is_said_of_the_machine(tmp_path, text):
    tmp_path.joinpath("host.jsonl").write_text(text, encoding="utf-8")
    assert recent.usage(tmp_path) is None
