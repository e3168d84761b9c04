"""Looking at frames: those of all threads, in a process that is not the recorder's own, and the names of functions.

What is kept of the stack of the thread that trains; and where the process is, which is written once a second, with all
threads when nothing moves.
"""

import _thread
import functools
import gc
import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.collect.conftest import NAME

FINALIZERS_WHILE_THREADS_END = """
import gc, threading, time
where = import_module(NAME + ".where")

def leave_garbage():
    cycle = Waits()
    cycle.own = cycle

class Waits:
    def __del__(self):
        time.sleep(0.002)  # another thread gets the interpreter's lock, and ends
        leave_garbage()

def start_threads():
    while True:
        threading.Thread(target=wait, daemon=True).start()
        time.sleep(0.0003)

def wait(): time.sleep(0.001)

def look(depth): return look(depth - 1) if depth else where.frames()

gc.disable()
leave_garbage()
threading.Thread(target=start_threads, daemon=True).start()
for _ in range(100):
    gc.enable()
    gc.set_threshold(1)
    assert threading.get_ident() in look(2)
    gc.disable()
os._exit(0)
"""


def test_a_finalizer_and_a_thread_that_ends_do_not_block_each_other(alone):
    """Up to Python 3.11.8 they do, by `sys._current_frames()` alone, within a few of these rounds."""
    done = alone(FINALIZERS_WHILE_THREADS_END.replace("NAME", repr(NAME)), timeout=100)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize("enabled", [True, False])
def test_whether_garbage_is_collected_stays_the_programs_choice(probe, monkeypatch, enabled):
    if not enabled:
        gc.disable()
    try:
        assert threading.get_ident() in probe.where.frames()
        assert gc.isenabled() is enabled
        monkeypatch.setattr(sys, "_current_frames", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            probe.where.frames()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def wrapped(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


class Outer:
    @property
    def read(self):
        return sys._getframe().f_code

    @staticmethod
    def alone():
        return sys._getframe().f_code

    @wrapped
    def decorated(self):
        return sys._getframe().f_code

    def inside(self):
        innermost = lambda: sys._getframe().f_code  # noqa: E731
        return innermost()

    class Inner:
        @classmethod
        def made(cls):
            return sys._getframe().f_code


def function():
    return sys._getframe().f_code


CODES = {
    "function": function,
    "Outer.read": lambda: Outer().read,
    "Outer.alone": Outer.alone,
    "Outer.decorated": Outer().decorated,
    "Outer.inside.<locals>.<lambda>": Outer().inside,
    "Outer.Inner.made": Outer.Inner.made,
    "<module>": lambda: compile("made = 1", "nowhere.py", "exec"),
}


@pytest.mark.parametrize("name", CODES)
def test_a_function_is_named_with_its_class_if_it_has_one(probe, name):
    assert probe.where.qualified_name(CODES[name]()) == name
    assert probe.where._known_as(CODES[name]()) == name  # as on Python 3.10


PACKAGE, TORCH = "/lib/mindspore/", "/lib/torch/"


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
    own, net = (probe.stacks.FOLDER + "syncs.py", 9, "called"), ("/t/net.py", 7, "f")
    stacks(frames(("/t/train.py", 3, "main"), *inner, own, net))
    assert paths(stacks) == [["train.py(3): main", "cell.py(1): call1", "cell.py(4): call4", "net.py(7): f"]]


def test_a_look_stands_for_the_time_since_the_one_before(stacks):
    frame = frames(("/t/train.py", 3, "main"))
    stacks(frame)
    stacks(frame)
    (first, _, number), (second, length, again) = stacks._rows
    assert (length, again, len(stacks._sites)) == (second - first, number, 1)


def test_what_is_kept_of_stacks_is_bounded(stacks, probe, monkeypatch):
    monkeypatch.setattr(probe.stacks, "MOST_SITES", 2)
    deep = frames(*(("/t/train.py", at, f"f{at}") for at in range(1, probe.stacks.MOST_FRAMES + 6)))
    assert len(stacks._kept(deep)) == probe.stacks.MOST_FRAMES
    stacks(deep)
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


def test_looks_at_the_stack_begin_when_something_trains(probe, rec, monkeypatch):
    begin = probe.stacks.Begin(rec)
    rec.periodic.append(begin)
    monkeypatch.setattr(probe.steps, "LOOP", SimpleNamespace(calls=0, model=0, thread=1))
    begin()
    assert begin in rec.periodic
    probe.steps.LOOP.model = 1
    begin()
    assert begin not in rec.periodic
    assert len(rec.lookers) == 1


S = 1_000_000_000


@pytest.fixture
def look(probe, rec, monkeypatch):
    """`look(at)`: what is in the file after a look at that second; None when nothing was written."""
    clock = [0]
    monkeypatch.setattr(probe.recorder, "now", lambda: clock[0])
    rec.open()
    rec.moved = 0
    path = Path(rec.folder) / probe.live.FILE

    def at(seconds):
        clock[0] = int(seconds * S)
        path.unlink(missing_ok=True)
        rec.live()
        return json.loads(path.read_bytes()) if path.exists() else None

    return at


def test_it_writes_once_a_second_where_the_main_thread_is_with_the_programs_own_frames(look):
    told = look(0)["stack"]
    assert [look(at) is not None for at in (0.5, 1, 1.5, 2)] == [False, True, False, True]
    assert [(entry[2], entry[3]) for entry in told[:2]] == [("frames", 0), ("__call__", 0)]
    mine = next(entry for entry in told if entry[2].startswith("test_"))
    assert (mine[0], mine[3]) == (__file__, 1)


def test_a_mark_is_a_movement_and_who_looks_when_nothing_moves_is_called_after_a_second_without_one(look, rec, probe):
    called = []
    rec.live.still.append(called.append)
    rec.mark(probe.recorder.FETCH, 0, 0, 0, 0, 1)
    assert ("threads" in look(3), called) == (False, [])
    rec.flush()
    told = look(4)
    assert (told["moved"], "threads" in told, called) == (3 * S, True, [4 * S])


def test_a_hook_on_the_stack_is_a_known_call(look, probe):
    class Executor:
        def compile(self):
            return look(5), True

    probe.steps._install_compile(Executor, None)
    told, _ = Executor().compile()
    (call,) = [entry[4] for entry in told["stack"] if entry[4] is not None]
    assert call.pop("since") <= time.monotonic_ns()
    assert call == {"call": "compile"}


def test_another_thread_of_the_program_is_told_as_long_as_it_is_in_one_call(look):
    begun, over = threading.Event(), threading.Event()

    def waits():
        begun.set()
        over.wait()

    _thread.start_new_thread(waits, ())
    begun.wait()
    try:
        told = [look(at)["threads"] for at in (5, 7)]
    finally:
        over.set()
    first, second = (
        next(one for one in threads if "waits" in [entry[2] for entry in one["stack"]]) for threads in told
    )
    assert first["since"] == second["since"] == 5 * S
    assert first["line"]


def test_a_password_in_the_line_that_stands_still_is_not_written_nor_anything_to_a_folder_that_is_gone(probe, tmp_path):
    file = tmp_path / "job.py"
    file.write_text("connect(password='hunter2secret')\n", encoding="utf-8")
    line = probe.live._line([[str(file), 1, "<module>", 1, None]])
    assert line.startswith("connect(")
    assert "hunter2secret" not in line
    probe.live.replace(str(tmp_path / "gone" / "now.json"), {})
    assert not (tmp_path / "gone").exists()
