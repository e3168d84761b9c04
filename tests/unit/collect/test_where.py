"""Looking at the frames of all threads, and the names of functions, in a process that is not the recorder's own."""

import functools
import gc
import sys
import threading

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
def test_whether_garbage_is_collected_stays_the_programs_choice(probe, enabled):
    if not enabled:
        gc.disable()
    try:
        assert threading.get_ident() in probe.where.frames()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_garbage_is_collected_again_when_the_look_fails(probe, monkeypatch):
    monkeypatch.setattr(sys, "_current_frames", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        probe.where.frames()
    assert gc.isenabled()


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


CODES = [
    ("function", function),
    ("Outer.read", lambda: Outer().read),
    ("Outer.alone", Outer.alone),
    ("Outer.decorated", Outer().decorated),
    ("Outer.inside.<locals>.<lambda>", Outer().inside),
    ("Outer.Inner.made", Outer.Inner.made),
]


@pytest.mark.parametrize(("name", "call"), CODES, ids=[name for name, _ in CODES])
def test_a_function_is_named_with_its_class(probe, name, call):
    assert probe.where.qualified_name(call()) == name
    assert probe.where._known_as(call()) == name  # as on Python 3.10


def test_a_function_of_no_module_has_its_name_alone(probe):
    code = compile("made = 1", "nowhere.py", "exec")
    assert probe.where._known_as(code) == "<module>"
