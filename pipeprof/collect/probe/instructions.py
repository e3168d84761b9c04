"""Counts the instructions of the interpreter that the user's Python takes for a row: exact, and free of noise.

The first calls of a function in a dataset are counted and not timed: counting makes them slow. A thread that something
else traces (a debugger, a coverage tool) is left alone.
"""

import sys

from . import recorder

WINDOWS = 12  # functions of a process: those that follow are mostly of later epochs
CALLS = 32  # of a function, of all threads together
MOST = 500_000  # of a function, before its last call; in a call no more than so many and one are counted

gettrace, settrace = sys.gettrace, sys.settrace
_windows = 0


class Call:
    """One call that is counted."""

    def __init__(self):
        self.number = 0

    def enter(self, frame, _event, _arg):
        """The thread has entered a function: each of its instructions is told to `step`."""
        frame.f_trace_lines = False
        frame.f_trace_opcodes = self.number <= MOST
        return self.step

    def step(self, frame, event, _arg):
        """One more."""
        if event == "opcode":
            self.number += 1
            if self.number > MOST:
                frame.f_trace_opcodes = False
        return self.step


class Window:
    """The calls of one function that are counted."""

    def __init__(self):
        self._left = CALLS
        self._spent = 0
        self._counts = []

    def next(self):
        """The next call; None when enough were counted, or this thread is traced."""
        if self._left <= 0 or gettrace() is not None:
            return None
        self._left -= 1
        return Call()

    def counted(self, call, function, *args):
        """What the function gives."""
        settrace(call.enter)  # no function of ours is entered before it is off again
        try:
            return function(*args)
        finally:
            if gettrace() == call.enter:  # else it is somebody else's by now
                settrace(None)
                self._add(call.number)

    def _add(self, number):
        self._spent += number
        if self._spent > MOST:
            self._left = 0
        self._counts.append(min(number, MOST + 1))

    def take(self):
        """What was counted since the last time."""
        counts, self._counts = self._counts, []
        return counts


def window():
    """The Window of the next function; None where nothing is counted."""
    global _windows
    if _windows >= WINDOWS or not recorder.REC.options.get("instructions"):
        return None
    _windows += 1
    return Window()
