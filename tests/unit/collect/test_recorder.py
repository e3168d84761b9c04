"""The spool of one process: whole records, never in the way of the training."""

import _thread
import errno
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeprof.read.spool import process as reader
from pipeprof.read.spool.lines import SpoolNotes

MS = 1_000_000


def written(rec):
    return reader.load(Path(rec.folder), SpoolNotes())


def numbers(process):
    return [mark.number for mark in process.marks]


def fetch(rec, number, end=2 * MS):
    rec.mark(reader.Kind.FETCH, 0, 0, number, end - 10, end)


def test_nothing_is_on_disk_until_there_is_something_to_record_and_all_comes_back_in_order(rec, tmp_path):
    fetch(rec, 0)
    rec.flush()
    assert list(tmp_path.iterdir()) == []
    rec.open()
    for number in (1, 2):
        fetch(rec, number)
    rec.event("thing", value={1}, path=os)  # what is no JSON becomes text
    rec.mark(reader.Kind.FETCH, 0, 1 << 40, (1 << 32) + 5, 1, 2)  # numbers beyond 32 bits wrap and do not raise
    rec.close()
    process = written(rec)
    assert numbers(process) == [0, 1, 2, 5]
    assert process.marks[-1].subject == 0
    assert [event["e"] for event in process.events] == ["process", "thing", "bye"]
    assert process.first("thing")["value"] == "{1}"
    assert process.notes.all == []


def test_marks_are_written_by_the_next_one_when_a_tenth_of_a_second_has_passed(rec, probe):
    rec.open()
    flushed = rec._flushed
    assert probe.recorder.UNWRITTEN_NS == 100_000_000
    fetch(rec, 0, flushed + probe.recorder.UNWRITTEN_NS)
    assert written(rec).marks == []
    fetch(rec, 1, flushed + probe.recorder.UNWRITTEN_NS + 1)
    assert numbers(written(rec)) == [0, 1]


def test_what_is_recorded_by_the_thread_that_writes_is_written_once(rec, probe, monkeypatch):
    """The garbage collector ends an iterator, or the script's handler of a signal saves a checkpoint."""
    rec.open()
    real, late = os.write, [1, 2]

    def write(descriptor, data):
        if late:
            fetch(rec, late.pop(0))
            rec.event("late")
        return real(descriptor, data)

    monkeypatch.setattr(probe.files, "_write", write)
    fetch(rec, 0)
    rec.event("early")
    rec.close()
    process = written(rec)
    assert numbers(process) == [0, 1, 2]
    assert [event["e"] for event in process.events if event["e"] != "process"] == ["early", "late", "late", "bye"]


def test_the_last_words_wait_for_a_thread_that_is_writing(rec):
    rec.open()
    rec.flush()
    held, lock = threading.Event(), rec._lock

    def write():
        with lock:
            held.set()
            time.sleep(0.3)

    _thread.start_new_thread(write, ())  # the fixture's own threads do nothing
    assert held.wait(10)
    fetch(rec, 7)
    rec.close()
    process = written(rec)
    assert numbers(process) == [7]
    assert process.events[-1]["e"] == "bye"


def test_both_clocks_are_read_where_nothing_came_in_between(probe, monkeypatch):
    """The wall clock is 1,000 ahead; in the third of five readings alone the process was not put aside."""
    looks = iter([0, 70, 100, 190, 200, 202, 300, 340, 400, 490])
    walls = iter([1_069, 1_101, 1_201, 1_339, 1_401])
    monkeypatch.setattr(probe.recorder, "now", lambda: next(looks))
    monkeypatch.setattr(probe.recorder, "wall", lambda: next(walls))
    assert probe.recorder.clock() == {"monotonic": 201, "realtime": 1_201}


def test_a_failed_hook_leaves_its_place_and_error_and_each_warning_is_recorded_once(rec):
    for _ in range(2):
        try:
            int("the reason")
        except ValueError:
            rec.failed("window")
    rec.warn("a", "words")
    event, other = written(rec).all("warning")
    assert (event["code"], other["code"]) == ("probe_failed:window", "a")
    assert "ValueError: invalid literal for int() with base 10: 'the reason'" in event["message"]


@pytest.fixture
def disk(probe, rec, monkeypatch):
    """`disk.room`: bytes each write takes, None for all, 0 for a full disk; `disk.said`: what went to stderr."""
    real, state = os.write, SimpleNamespace(room=None, said=[], stderr=True)

    def write(descriptor, data):
        if state.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data if state.room is None else data[: state.room])

    monkeypatch.setattr(probe.files, "_write", write)
    monkeypatch.setattr(probe.files, "say", lambda text: state.stderr and not state.said.append(text))
    rec.open()
    return state


@pytest.mark.parametrize("stderr", [True, False])
def test_a_full_disk_is_said_once_and_nothing_is_lost_when_there_is_room_again(rec, disk, stderr):
    disk.room, disk.stderr = 0, stderr
    for number in range(5):
        fetch(rec, number)
        rec.event("thing", value=number)
    fetch(rec, 5, 10_000 * MS)
    said = ["pipeprof: cannot write its record (No space left on device); the training goes on\n"]
    assert disk.said == said * stderr
    disk.room = None
    rec.flush()
    process = written(rec)
    assert numbers(process) == [0, 1, 2, 3, 4, 5]
    assert [event["value"] for event in process.all("thing")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("room", [1, 10, 26, 27, 40])
def test_a_write_that_takes_only_a_part_is_continued(rec, disk, room):
    disk.room = room
    for number in range(4):
        fetch(rec, number)
        rec.line("thing", value=number)
    for _ in range(400):
        rec.flush()
    process = written(rec)
    assert numbers(process) == [event["value"] for event in process.all("thing")] == [0, 1, 2, 3]
    assert process.notes.all == []


def test_a_disk_that_stays_full_bounds_the_memory_and_counts_what_was_dropped(rec, disk, probe, monkeypatch):
    monkeypatch.setattr(probe.recorder, "KEEP_AT_MOST", 10)
    disk.room = 0
    for number in range(50):
        fetch(rec, number)
        rec.flush()
        assert len(rec._pending) <= 11
    disk.room = None
    rec.close()
    process = written(rec)
    assert process.first("bye")["dropped"] + len(process.marks) == 50


def test_dropping_marks_after_half_of_one_was_written_keeps_the_file_readable(rec, disk, probe, monkeypatch):
    monkeypatch.setattr(probe.recorder, "KEEP_AT_MOST", 3)
    for disk.room, some in ((10, [0]), (0, range(1, 6)), (None, range(100, 105))):
        for number in some:
            fetch(rec, number)
            rec.flush()
    marks = written(rec).marks
    assert [mark.number for mark in marks if mark.number >= 100] == [100, 101, 102, 103, 104]
    assert {mark.kind for mark in marks} == {reader.Kind.FETCH}


def test_a_child_of_a_training_process_falls_silent_and_one_forked_before_records_for_itself(rec, probe, monkeypatch):
    rec.open()
    fetch(rec, 0)
    rec.forked()
    fetch(rec, 1)
    rec.close()
    assert rec.off
    process = written(rec)
    assert (process.marks, process.ended_normally) == ([], False)
    monkeypatch.setattr(os, "getpid", lambda: 4_000_007)
    other = probe.recorder.Recorder(rec.root, "{}")
    other.forked()
    other.open()
    assert not other.off
    assert Path(other.folder).name.startswith("proc-4000007-")
    other.end()


FORK = """
REC.open()
REC.mark(1, 0, 0, 7, 1, 2)
pid = os.fork()
REC.mark(1, 0, 0, 8 if pid else 9, 3, 4)
REC.flush()
if pid: os.waitpid(pid, 0)
"""
OF_MULTIPROCESSING = """
import multiprocessing
def train():
    recorder.REC.open()
    recorder.REC.mark(1, 0, 0, 7, 1, 2)
child = multiprocessing.get_context('fork').Process(target=train)
child.start()
child.join()
sys.exit(child.exitcode)
"""


@pytest.mark.parametrize(
    ("body", "marks"), [(FORK, [7, 8]), (OF_MULTIPROCESSING, [7])], ids=["fork", "multiprocessing"]
)
def test_a_real_fork_leaves_one_recording_and_a_process_of_multiprocessing_ends_as_others_do(
    alone, tmp_path, body, marks
):
    """That one leaves by `os._exit`, without the exit handlers."""
    done = alone(body)
    assert (done.returncode, done.stderr) == (0, "")
    (process,) = reader.load_processes(tmp_path / "spool", SpoolNotes())
    assert (numbers(process), len(process.all("bye"))) == (marks, 1)


def test_the_limit_of_cpu_time_is_told(rec, monkeypatch):
    resource = pytest.importorskip("resource")
    for limit, told in ((20, 20), (resource.RLIM_INFINITY, None)):
        monkeypatch.setattr(resource, "getrlimit", lambda _kind, limit=limit: (limit, limit))
        assert rec._about()["cpu_limit_s"] == told
