"""Where the forward passes, backward passes and updates of a PyNative step begin and end, while an op window is open.

PyNative runs behind Python: only what has finished before a section is over lies in it, so each begins and ends by
waiting. That is for op windows alone; outside them a hook of this file is one comparison.
"""

import _thread
import sys

from . import cells, recorder, where

MOST_US = 0xFFFFFFFF
FORWARD, BACKWARD, PASS = 1, 2, 3  # flags of SECTION; PASS: a cell with parameters that was called by itself


class Sections:
    """The open sections of the thread that trains.

    `depth` counts the cells that are being called, from the last gradient function on: what a cell calls belongs to it.
    """

    def __init__(self):
        self.on = False
        self.depth = 0
        self.forwards = []  # of each gradient function: when it began, what it is, the depth around it
        self.update = False  # an optimizer runs: its cells are no passes
        self._numbers = {}
        self._networks = {}
        self._settle = None
        self._thread = None
        self._cell = None
        self._original = None

    def install_cell(self, cell):
        """Remember the class whose calls are watched while a window is open."""
        self._cell = cell

    def open(self, settle):
        """A window is open from now on; `settle` waits for everything that was launched."""
        self._settle, self._thread = settle, _thread.get_ident()
        self.depth, self.forwards, self.update = 0, [], False
        if self._cell is not None and self._original is None:
            self._original = self._cell.__call__
            self._called = self._cell.__call__ = _watched(self._original)
        self.on = True

    def close(self):
        """The window is over: cells are called as before."""
        self.on = False
        if self._original is not None and self._cell.__call__ is self._called:
            self._cell.__call__ = self._original
            self._original = None

    @property
    def mine(self):
        """Whether a section of this thread would be recorded."""
        try:
            return self.on and _thread.get_ident() == self._thread
        except Exception:
            recorder.REC.failed("sections")
            return False

    def forward_begins(self, what):
        """A gradient function begins to run `what`, a cell or a function."""
        cell = hasattr(what, "construct")
        if not self.forwards:
            self._settle()
        self.forwards.append((recorder.now(), self._subject(what, cell), self.depth))
        self.depth = 1 if cell else 0

    def forward_ends(self):
        """It has run."""
        if not self.forwards:
            return
        begin, subject, self.depth = self.forwards.pop()
        if not self.forwards:
            self._settle()
        self._mark(FORWARD, subject, begin)

    def settled(self):
        """Wait for what was launched, and say when that was."""
        self._settle()
        return recorder.now()

    def backward_ends(self, begin):
        """The gradients are there. The subject of the mark is how long PyNative ran on without Python, in us."""
        asked = recorder.now()
        self._settle()
        self._mark(BACKWARD, min((recorder.now() - asked) // 1000, MOST_US), begin)

    def pass_begins(self):
        """A cell is called that no other cell calls."""
        if not self.forwards:
            self._settle()
        self.depth = 1
        return recorder.now()

    def pass_ends(self, cell, begin):
        """It has returned; cells without parameters are no passes of a network."""
        self.depth = 0
        if self._network(cell) is None:
            return
        if not self.forwards:
            self._settle()
        self._mark(PASS, self._subject(cell, cell=True), begin)

    def _mark(self, flag, subject, begin):
        recorder.REC.mark(recorder.SECTION, flag, subject, len(self.forwards), begin, recorder.now())

    def _subject(self, what, cell):
        """The number of a call: what was called, and from which line. It is an event the first time."""
        network = self._network(what) if cell else None
        key = (where.site(sys._getframe(2)), id(type(what)) if cell else 0, network)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            name, own = _class_of(what) if cell else ("", False)
            recorder.REC.line("pass", number=self._numbers[key], site=key[0], cell=name, own=own, network=network)
        return self._numbers[key]

    def _network(self, cell):
        """The number of a cell's parameters, the same for a network and for what wraps it; None without any."""
        first = next(iter(cell.get_parameters()), None)
        return None if first is None else self._networks.setdefault(id(first), len(self._networks) + 1)


def _class_of(cell):
    """The user's class that a cell is, or wraps, and whether there is one."""
    for item in (cell, *cell.cells()):
        kind = type(item)
        if not kind.__module__.startswith("mindspore.") and next(iter(item.get_parameters()), None) is not None:
            return kind.__name__, True
    return type(cell).__name__, False


def _watched(original):
    def __call__(self, *args, **kwargs):
        if not SECTIONS.on or (SECTIONS.depth and not cells.CELLS.on) or SECTIONS.update or not SECTIONS.mine:
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                recorder.unseen(error)
                raise
        if SECTIONS.depth:
            return cells.called(original, self, args, kwargs)
        try:
            begin = SECTIONS.pass_begins()
        except Exception:
            recorder.REC.failed("sections")
            return original(self, *args, **kwargs)
        outside = SECTIONS.forwards
        try:
            return cells.called(original, self, args, kwargs)
        except BaseException as error:
            recorder.unseen(error)
            raise
        finally:
            try:
                if SECTIONS.on and SECTIONS.forwards is outside:  # else the window that it began in is over
                    SECTIONS.pass_ends(self, begin)
            except Exception:
                recorder.REC.failed("sections")

    __call__.__wrapped__ = original
    return __call__


def install_gradients(pynative):
    """Hook the gradient functions of the PyNative executor: new_graph and end_graph around what they run, then grad."""
    for name, hook in (("new_graph", _new_graph), ("end_graph", _end_graph), ("grad", _grad)):
        original = getattr(pynative, name, None)
        if original is not None:
            hooked = hook(original)
            hooked.__wrapped__ = original
            setattr(pynative, name, hooked)


def _new_graph(original):
    def new_graph(self, what, *args, **kwargs):
        if SECTIONS.on and SECTIONS.mine:
            recorder.guarded("sections", SECTIONS.forward_begins, what)
        return original(self, what, *args, **kwargs)

    return new_graph


def _end_graph(original):
    def end_graph(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if SECTIONS.on and SECTIONS.mine:
            recorder.guarded("sections", SECTIONS.forward_ends)
        return result

    return end_graph


def _grad(original):
    def grad(self, *args, **kwargs):
        begin = recorder.guarded("sections", SECTIONS.settled) if SECTIONS.on and SECTIONS.mine else None
        result = original(self, *args, **kwargs)
        if begin is not None and SECTIONS.on:
            recorder.guarded("sections", SECTIONS.backward_ends, begin)
        return result

    return grad


SECTIONS = Sections()
