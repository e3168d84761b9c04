"""Looks at the stack of the thread that trains: what is kept of it, and how long each look stands for."""

from types import SimpleNamespace

import pytest

PACKAGE = "/lib/mindspore/"
TORCH = "/lib/torch/"


def frames(*places):
    """The innermost of frames at (file, line, function), given outermost first."""
    frame = None
    for file, line, name in places:
        code = SimpleNamespace(co_filename=file, co_name=name, co_qualname=name, co_firstlineno=1)
        frame = SimpleNamespace(f_code=code, f_lineno=line, f_back=frame, f_globals={}, f_lasti=0)
    return frame


@pytest.fixture
def stacks(probe, rec, monkeypatch):
    monkeypatch.setattr(probe.stacks.where, "_folders", {"mindspore": PACKAGE, "torch": TORCH})
    return probe.stacks.Stacks(rec)


def paths(stacks):
    """The stack of each look, outermost first."""
    found = []
    for _, _, innermost in stacks._rows:
        names, number = [], innermost
        while number >= 0:
            number, name = stacks._sites[number]
            names.append(name.rpartition("/")[2])
        found.append(names[::-1])
    return found


@pytest.mark.parametrize("package", [PACKAGE, TORCH])
def test_of_a_librarys_frames_the_first_and_the_last_are_kept_and_none_of_the_probe(stacks, probe, package):
    inner = [(f"{package}nn/cell.py", at, f"call{at}") for at in range(1, 5)]
    places = [
        ("/t/train.py", 3, "main"),
        *inner,
        (probe.stacks.FOLDER + "syncs.py", 9, "called"),
        ("/t/net.py", 7, "f"),
    ]
    stacks(frames(*places))
    assert paths(stacks) == [["train.py(3): main", "cell.py(1): call1", "cell.py(4): call4", "net.py(7): f"]]


def test_a_look_stands_for_the_time_since_the_one_before(stacks):
    frame = frames(("/t/train.py", 3, "main"))
    stacks(frame)
    stacks(frame)
    (first, _, number), (second, length, again) = stacks._rows
    assert length == second - first
    assert number == again
    assert len(stacks._sites) == 1


def test_what_is_kept_is_bounded(stacks, probe, monkeypatch):
    monkeypatch.setattr(probe.stacks, "MOST_SITES", 2)
    deep = [("/t/train.py", at, f"f{at}") for at in range(1, probe.stacks.MOST_FRAMES + 6)]
    assert len(stacks._kept(frames(*deep))) == probe.stacks.MOST_FRAMES
    stacks(frames(*deep))
    assert len(stacks._sites) == 2
    assert paths(stacks)[0] == ["train.py(1): f1", "train.py(2): f2"]


def test_an_instruction_without_a_line_has_that_of_what_lies_before_it(probe):
    def loop(rows):
        total = 0
        for row in rows:
            total += row
        return total

    first = loop.__code__.co_firstlineno
    end = max(end for _, end, line in loop.__code__.co_lines() if line == first + 3)
    assert probe.stacks._line(loop.__code__, end) >= first + 2
    assert probe.stacks._line(loop.__code__, -1) == first


def test_looks_begin_when_something_trains(probe, rec, monkeypatch):
    begin = probe.stacks.Begin(rec)
    rec.periodic.append(begin)
    monkeypatch.setattr(probe.steps, "LOOP", SimpleNamespace(calls=0, model=0, thread=1))
    begin()
    assert begin in rec.periodic
    probe.steps.LOOP.model = 1
    begin()
    assert begin not in rec.periodic
    assert len(rec.lookers) == 1
