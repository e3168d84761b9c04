"""From which lines of the program each operator of an eager step is launched: one step is run line by line.

Those of the modules of MindSpore's that the program calls (`nn.Conv2d`) are lines as well.

Each line waits for what it launched, so an operator belongs to the line during which it started. That is slow: it is
done in the warm-up step of the first op window, whose executions count for nothing else, or where the program asks.
"""

import os
import sys

from . import recorder, where

MOST = 50_000  # lines; what a step launches behind them has no line
MOST_OF_ONE = 10_000  # of one function; then it counts as the line that calls it


class Lines:
    """The lines of one step, each with the time from which on it ran."""

    def __init__(self):
        self.rows = []
        self._sites = {}  # by the number of the site that called it (-1: none) and by its text
        self._files = {}
        self._frames = []
        self._lines = {}  # that ran, by the function's code
        self._full_at = None
        self._settle = None
        self._hook = None
        self.is_late = False  # it began when most of its step was over
        self._forks = False
        self._library = os.path.dirname(os.__file__)
        self._own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

    def possible(self, is_eager=None):
        """Whether a step can be run line by line: nobody else watches lines, and Python launches the operators.

        `is_eager` says that of another library than MindSpore.
        """
        if sys.gettrace() is not None:
            return False
        if is_eager is not None:
            return is_eager()
        mindspore = sys.modules.get("mindspore")
        return mindspore is not None and mindspore.get_context("mode") == 1

    def start(self, settle, is_late=False):
        """From now on, in this thread; `settle` waits for what was launched."""
        self._settle, self._hook, self.is_late = settle, self._called, is_late
        if not self._forks:
            self._forks = True
            recorder.at_fork(after_in_child=self._forked)
        frame = sys._getframe(1)
        first = None
        while frame is not None:
            if self._is_shown(frame.f_code):
                first = first or frame
                frame.f_trace = self._line
                self._frames.append(frame)
            frame = frame.f_back
        if first is not None:
            self._add(first)
        sys.settrace(self._hook)

    def begin_again(self):
        """A whole step begins: what ran before counts for nothing."""
        self.is_late = False
        self.rows = [(recorder.now(), number) for _, number in self.rows[-1:]]
        self._full_at = None

    def halt(self):
        """What comes now in this thread runs at its own pace, as one line; returns what `go_on` takes."""
        is_on = self._hook is not None and sys.gettrace() is self._hook
        if is_on:
            sys.settrace(None)
        return is_on

    def go_on(self, halted):
        """Line by line again where it was, unless the program watches by itself now."""
        if halted and self._hook is not None and sys.gettrace() is None:
            sys.settrace(self._hook)

    def stop(self):
        """The step is over: leave its lines in the spool."""
        if self._hook is None:
            return
        if sys.gettrace() is self._hook:
            sys.settrace(None)
        self._hook = None
        for frame in self._frames:
            frame.f_trace = None
            frame.f_trace_lines = True
        self._frames, self._lines = [], {}
        rows, self.rows = self.rows, []
        if self._full_at is not None:
            rows.append((self._full_at, len(self._sites)))  # from here on no line is known
            self._full_at = None
        callers = [caller for caller, _ in self._sites]
        recorder.REC.event("lines", sites=[site for _, site in self._sites], callers=callers, rows=rows)

    def _forked(self):
        """A dataset worker that is made in this step runs at its own pace, and has nothing to wait for."""
        if self._hook is not None:
            sys.settrace(None)
            self._hook = None

    def _called(self, frame, _event, _argument):
        try:
            code = frame.f_code
            is_shown = self._hook is not None and self._is_shown(code) and self._lines.get(code, 0) <= MOST_OF_ONE
        except Exception:
            is_shown, self._hook = False, None
            recorder.REC.failed("lines")
        _look_again(frame)
        return self._line if is_shown else None

    def _line(self, frame, event, _argument):
        if self._hook is None:
            return None
        try:
            if event == "line":
                ran = self._lines[frame.f_code] = self._lines.get(frame.f_code, 0) + 1
                frame.f_trace_lines = ran <= MOST_OF_ONE or self._caller(frame) is None
                self._add(self._told(frame))
            elif event == "return":
                self._add(self._told(self._caller(frame)))
        except Exception:
            sys.settrace(None)
            self._hook = None
            recorder.REC.failed("lines")
            return None
        finally:
            _look_again(frame)
        return self._line

    def _told(self, frame):
        """The innermost frame whose line is told: of a function that runs long in Python only the first lines are."""
        caller = frame
        while caller is not None and self._lines.get(caller.f_code, 0) > MOST_OF_ONE:
            frame, caller = caller, self._caller(caller)
        return caller or frame

    def _add(self, frame):
        if frame is None:
            return
        if len(self.rows) >= MOST:
            self._full_at = self._full_at or recorder.now()
            return
        self._settle()
        number = self._number(frame)
        if not self.rows or self.rows[-1][1] != number:
            self.rows.append((recorder.now(), number))

    def _number(self, frame):
        """The number of a site of the program, with those that called it."""
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = self._caller(frame)
        number = -1
        for one in reversed(frames):
            code = one.f_code
            name = where.qualified_name(code)
            site = "%s(%d): %s" % (where.short(code.co_filename), one.f_lineno, name)
            number = self._sites.setdefault((number, site), len(self._sites))
        return number

    def _caller(self, frame):
        frame = frame.f_back
        while frame is not None and not self._is_shown(frame.f_code):
            frame = frame.f_back
        return frame

    def _is_shown(self, code):
        return self._is_own(code) or where.is_module(code)

    def _is_own(self, code):
        """Whether code is the program's: neither the library's that trains nor Python's own, nor the probe's."""
        name = code.co_filename
        is_own = self._files.get(name)
        if is_own is None:
            inside = (*where.folders(), self._own)
            library = name.startswith(self._library) and "site-packages" not in name
            is_own = self._files[name] = not (name.startswith(inside) or name.startswith("<") or library)
        return is_own


def _look_again(frame):
    """Have the interpreter know what threads and signal handlers wrote into a frame while its line was waited for.

    Up to Python 3.10 it writes the variables that the frame shares with closures back as they were before the call.
    """
    if sys.version_info < (3, 11) and (frame.f_code.co_cellvars or frame.f_code.co_freevars):
        frame.f_locals  # noqa: B018 - reading it is what counts


LINES = Lines()
