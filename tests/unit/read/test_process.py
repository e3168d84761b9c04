"""What one process left in the spool, whole or cut off. The probe's numbering of marks and the reader's are written
down separately (docs/decisions/0001)."""

import json
import os
import struct

import numpy as np
import pytest

from pipeprof.collect.probe import marks as probe
from pipeprof.collect.probe import recorder
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.marks import OTHER_THREAD, RECORD, Kind
from pipeprof.read.spool.process import load, load_processes

MARK = struct.Struct("<BBIIqq")
ABOUT = {"e": "process", "t": 5, "pid": 7, "started": 1}


@pytest.fixture
def folder(tmp_path):
    def write(events=(ABOUT,), marks=b"", name="proc-7-1", tail=""):
        path = tmp_path / name
        path.mkdir()
        lines = "".join(json.dumps(event) + "\n" for event in events)
        path.joinpath("events.jsonl").write_text(lines + tail, encoding="utf-8")
        path.joinpath("marks.bin").write_bytes(marks)
        return path

    return write


def mark(begin, end, kind=Kind.FETCH):
    return MARK.pack(kind, 0, 3, 4, begin, end)


def test_marks_and_events_come_back_as_written(folder):
    process = load(folder([ABOUT, {"e": "bye", "t": 90}], mark(10, 20) + mark(20, 30, Kind.UPDATE)), SpoolNotes())
    assert [tuple(one) for one in process.marks] == [(1, 0, 3, 4, 10, 20), (10, 0, 3, 4, 20, 30)]
    assert [event["e"] for event in process.events] == ["process", "bye"]
    assert process.notes.all == []
    assert process.ended_normally


CUT = "`proc-7-1/marks.bin` ends in the middle of a record, which was left out"
BAD = "3 damaged records in `proc-7-1/marks.bin` were left out"


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        *(((mark(10, 20) + mark(20, 30))[:-missing], CUT) for missing in range(1, MARK.size)),
        (mark(20, 10) + mark(10, 20) + mark(10, 20, kind=99) + bytes(26), BAD),
    ],
)
def test_a_mark_that_was_cut_off_or_cannot_be_is_left_out_and_noted(folder, marks, said):
    process = load(folder(marks=marks), SpoolNotes())
    assert len(process.marks) == 1
    assert process.notes.all == [said]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"e": "window"}', "Object missing required field `t`"),
        ("[1]", "Expected `object`, got `array`"),
        ("7", "Expected `object`, got `int`"),
        ('{"t": 5}', "Object missing required field `e`"),
        ("\x00\x00", "JSON is malformed: invalid character (byte 0)"),
        ('{"e": "closed", "t": "x", "number": 1}', "Expected `int`, got `str` - at `$.t`"),
        ('{"e": "closed", "t": 5, "number": -1}', "Expected `int` >= 0 - at `$.number`"),
        ('{"e": "window", "t": 5, "number": 1, "ticks": [], "begin": 1, "end": 2, "monotonic": 1, "realtime": 1}',
         "Expected `array` of length >= 1 - at `$.ticks`"),
        ('{"e": "closed", "t": 1e999, "number": 1}', "Number out of range - at `$.t`"),
        ('{"e": "x", "t": 5, "y": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_left_out_and_named(folder, line, reason):
    process = load(folder(tail=line + "\n"), SpoolNotes())
    assert [event["e"] for event in process.events] == ["process"]
    assert process.notes.all == [f"damaged line 2 of `proc-7-1/events.jsonl` was left out: {reason}"]
    assert process.notes.damage == process.notes.all


def test_of_many_damaged_lines_a_few_are_named(folder):
    process = load(folder(tail="x\n" * 9), SpoolNotes())
    assert len(process.notes.all) == 6
    assert process.notes.all[-1] == "4 more damaged lines of `proc-7-1/events.jsonl` were left out"


def test_text_that_is_bytes_and_no_text_is_kept_with_escapes(folder):
    process = load(folder(tail='{"e": "warning", "t": 5, "code": "c", "message": "a\\udcff"}\n'), SpoolNotes())
    assert process.notes.all == []
    assert process.first("warning")["message"] == "a\\xff"


def test_the_end_of_a_file_that_a_kill_cut_off_is_no_damage(folder):
    process = load(folder(tail='{"e": "window", "t": 1'), SpoolNotes())
    assert [event["e"] for event in process.events] == ["process"]
    assert process.notes.all == ["`proc-7-1/events.jsonl` ends in the middle of a line, which was left out"]
    assert process.notes.damage == []


@pytest.mark.parametrize("name", ["events.jsonl", "marks.bin"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(folder, name):
    path = folder(marks=mark(10, 20))
    path.joinpath(name).unlink()
    os.mkfifo(path / name)
    notes = SpoolNotes()
    process = load(path, notes)
    assert (process.notes.damage if process else notes.damage) == [
        f"cannot read `proc-7-1/{name}`: it is a pipe, expected a regular file"
    ]


def test_a_process_that_did_not_say_goodbye_did_not_end_normally_and_one_without_its_first_line_is_none(folder):
    assert not load(folder(), SpoolNotes()).ended_normally
    assert load(folder([], mark(10, 20), name="proc-8-1"), SpoolNotes()) is None


def test_the_last_sign_of_a_process_is_its_latest_mark_or_event(folder):
    assert load(folder([ABOUT, {"e": "x", "t": 25}], mark(10, 40) + mark(20, 30)), SpoolNotes()).last_ns == 40


def test_processes_come_by_start_time(folder, tmp_path):
    folder([ABOUT | {"started": 50}], name="proc-1-50")
    folder([ABOUT | {"started": 20}], name="proc-9-20")
    folder([], name="proc-5-10")
    assert [process.folder.name for process in load_processes(tmp_path, SpoolNotes())] == ["proc-9-20", "proc-1-50"]


def test_probe_and_reader_number_the_marks_alike():
    names = [name for name in vars(Kind) if name.isupper() and name != "ALL"]
    assert names
    assert {name: getattr(recorder, name) for name in names} == {name: getattr(Kind, name) for name in names}
    fields = (16, 0x80, (1 << 32) - 1, 7, -(1 << 40), 1 << 61)
    assert np.frombuffer(probe.MARK.pack(*fields), RECORD).item() == fields
    assert recorder.OTHER_THREAD == OTHER_THREAD
