"""What one process left in the spool, whole or cut off."""

from __future__ import annotations

import json
import struct

import pytest

from pipeprof.read.spool.process import Kind, load, load_processes

MARK = struct.Struct("<BBIIqq")
ABOUT = {"e": "process", "t": 5, "pid": 7, "started": 1}


@pytest.fixture
def folder(tmp_path):
    def write(events=(ABOUT,), marks=b"", name="proc-7-1", tail=""):
        path = tmp_path / name
        path.mkdir()
        path.joinpath("events.jsonl").write_text(
            "".join(json.dumps(event) + "\n" for event in events) + tail, encoding="utf-8"
        )
        path.joinpath("marks.bin").write_bytes(marks)
        return path

    return write


def mark(begin, end, kind=Kind.FETCH):
    return MARK.pack(kind, 0, 3, 4, begin, end)


def test_marks_and_events_come_back_as_written(folder):
    process = load(folder([ABOUT, {"e": "bye", "t": 90}], mark(10, 20) + mark(20, 30, Kind.UPDATE)))
    assert [tuple(one) for one in process.marks] == [(1, 0, 3, 4, 10, 20), (10, 0, 3, 4, 20, 30)]
    assert [event["e"] for event in process.events] == ["process", "bye"]
    assert process.notes == []
    assert process.ended_normally


@pytest.mark.parametrize("missing", range(1, MARK.size))
def test_a_mark_that_was_cut_off_is_left_out_and_noted(folder, missing):
    process = load(folder(marks=(mark(10, 20) + mark(20, 30))[:-missing]))
    assert len(process.marks) == 1
    assert process.notes == ["`proc-7-1/marks.bin` ends in the middle of a record, which was left out"]


def test_marks_that_cannot_be_are_left_out_and_counted(folder):
    process = load(folder(marks=mark(20, 10) + mark(10, 20) + mark(10, 20, kind=99) + bytes(26)))
    assert len(process.marks) == 1
    assert process.notes == ["3 damaged records in `proc-7-1/marks.bin` were left out"]


@pytest.mark.parametrize(
    "tail", ['{"e": "window", "t": 1', '{"e": "window"}\n', "[1]\n", "7\n", '{"t": 5}\n', "\x00\x00\n"]
)
def test_an_event_line_that_was_cut_off_is_left_out_and_noted(folder, tail):
    process = load(folder(tail=tail))
    assert [event["e"] for event in process.events] == ["process"]
    assert process.notes == ["a cut-off line in `proc-7-1/events.jsonl` was left out"]


def test_a_process_that_did_not_say_goodbye_did_not_end_normally(folder):
    assert not load(folder()).ended_normally


def test_a_process_without_its_first_line_is_none(folder):
    assert load(folder([], mark(10, 20))) is None


def test_the_last_sign_of_a_process_is_its_latest_mark_or_event(folder):
    assert load(folder([ABOUT, {"e": "x", "t": 25}], mark(10, 40) + mark(20, 30))).last_ns == 40


def test_processes_come_by_start_time(folder, tmp_path):
    folder([ABOUT | {"started": 50}], name="proc-1-50")
    folder([ABOUT | {"started": 20}], name="proc-9-20")
    folder([], name="proc-5-10")
    assert [process.folder.name for process in load_processes(tmp_path)] == ["proc-9-20", "proc-1-50"]
