"""Chooses, once in a process, whether the hooks of each step are those in C (`_hooks.c`) or the same in Python.

Those in C do what is usual, and leave all else to the Python ones. What they count are members of the types that the
recorder, trees, the loop and windows derive from; `LANE` says which of these count now.
"""

import os
import sys

from . import marks

TYPE_CHECKING = False  # without the import, which takes time in every Python
if TYPE_CHECKING:
    from typing import Any  # noqa: F401 - of comments

INTERFACE = 2  # as in _hooks.c: a file that was compiled from an older source is not used
FETCH, STEP, CALL, COMPILE, CALLBACKS = 1, 2, 3, 4, 5  # kinds of hooks
IN_PYTHON, COUNTED, IGNORED = 0, 1, 2  # what the end of a step is for the windows


class PythonLane:
    """What is recorded now; hooks in Python look elsewhere."""

    rec = loop = windows = None
    service = False  # MindSpore's timing lines are being printed

    def calls(self):
        """Calls that are under way: those of Python are on the stack."""
        return []


def _compiled():
    if sys.version_info < (3, 10) or os.environ.get("PIPEPROF_NO_COMPILED", "0") not in ("", "0"):
        return None
    try:
        from . import _hooks
    except Exception:  # there is none for this Python
        return None
    return _hooks if getattr(_hooks, "INTERFACE", None) == INTERFACE else None


def _base(name, otherwise=object):
    return getattr(COMPILED, name, otherwise)


def _tell(where, error):
    """Record that a hook in C failed."""
    from . import recorder

    try:
        raise error  # noqa: TRY301 - `failed` tells of what is being handled
    except Exception:
        recorder.REC.failed(where)


def make(kind, original, otherwise, **more):
    """What stands in for the method `original`: `otherwise`, or its likeness in C, which calls it where it must."""
    otherwise.__wrapped__ = original
    if COMPILED is None:
        return otherwise
    code = getattr(original, "__code__", None)
    if code is not None:
        HOOKED[id(code)] = (code, kind, otherwise.__code__)
    return COMPILED.Hook(LANE, kind, original, otherwise, **more)


COMPILED = _compiled()
HOOKED = {}  # type: dict[int, tuple[object, int, object]]  # by the id of an original's code: kind, the Python hook's code
Marks = _base("Marks", marks.Marks)  # type: Any
Tree = _base("Tree")  # type: Any
Loop = _base("Loop")  # type: Any
Windows = _base("Windows")  # type: Any
LANE = PythonLane() if COMPILED is None else COMPILED.Lane(_tell, type(PythonLane().calls))
