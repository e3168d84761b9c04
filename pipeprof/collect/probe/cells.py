"""Calls of cells, nested, in one PyNative step of each op window: which module took how long.

Each call begins and ends by waiting for what was launched, so that its operators lie in it. That is done in the first
step of a window that counts, and nowhere else: the other steps launch ahead as they do without a recorder.
"""

import sys

from . import recorder, where

MOST = 20_000  # calls of a step


class Cells:
    """The calls of one step: what is called is kept until the step is over, and named then."""

    def __init__(self):
        self.on = False
        self._settle = None
        self._calls = []  # cell, place of the call around it (None: of none), begin, end
        self._open = []

    def start(self, settle):
        """From now on, where Python launches the operators; `settle` waits for what was launched."""
        mindspore = sys.modules.get("mindspore")
        if mindspore is not None and mindspore.get_context("mode") == 1:
            self.on, self._settle = True, settle

    def stop(self):
        """The step is over: leave its calls in the spool."""
        self.on = False
        calls, self._calls, self._open = self._calls, [], []
        if calls:
            try:
                kinds, rows = _described(calls)
                recorder.REC.event("cells", kinds=kinds, rows=rows)
            except Exception:  # `cells_and_names` may be the user's
                recorder.REC.failed("cells")

    def begins(self, cell):
        """A cell is called; what comes back is for `ends`. None when there are too many calls."""
        if len(self._calls) >= MOST:
            return None
        self._settle()
        call = [cell, self._open[-1] if self._open else None, recorder.now(), None]
        self._open.append(len(self._calls))
        self._calls.append(call)
        return call

    def ends(self, call):
        """It has returned, or raised. A call in which the step ended is left without an end."""
        if self.on and self._open:
            self._settle()
            call[3] = recorder.now()
            self._open.pop()


def called(original, cell, args, kwargs):
    """Call a cell as `original` does, and note when."""
    call = _guarded(CELLS.begins, cell) if CELLS.on else None
    try:
        return original(cell, *args, **kwargs)
    finally:
        if call is not None:
            _guarded(CELLS.ends, call)


def frame_of(cell):
    """Where the `construct` of a cell stands: `file.py(12): Network.construct`; empty when it has no Python code.

    The file of a cell of MindSpore's is given from its package on.
    """
    function = getattr(type(cell), "construct", None)
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return "%s(%d): %s.construct" % (where.short(code.co_filename), code.co_firstlineno, type(cell).__name__)


def _described(calls):
    """Kinds of calls (name, number of the kind around it or -1, frame), and the kind, begin and end of each call."""
    kinds, of_calls, rows, names = {}, [], [], {}
    for cell, around, begin, end in calls:
        outer = None if around is None else calls[around][0]
        if outer is not None and id(outer) not in names:
            names[id(outer)] = {id(child): name for name, child in outer.cells_and_names()}
        name = names[id(outer)].get(id(cell)) if outer is not None else None
        label = "%s-%s" % (name, type(cell).__name__) if name else type(cell).__name__
        key = (label, -1 if around is None else of_calls[around], frame_of(cell))
        of_calls.append(kinds.setdefault(key, len(kinds)))
        if end is not None:
            rows.append((of_calls[-1], begin, end))
    return list(kinds), rows


def _guarded(call, argument):
    try:
        return call(argument)
    except Exception:
        CELLS.on = False
        recorder.REC.failed("cells")
        return None


CELLS = Cells()
