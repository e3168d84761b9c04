"""What Python calls operators with, in one PyNative step: types, shapes, data types. The op recorder tells few of them.

The classes of operators are watched in one step of the first op window alone, never in the first step of a training.
Operators that MindSpore calls from C++ (backward passes, arithmetic of tensors) do not come through here.
"""

import _thread
import sys

from . import recorder

MOST = 50_000  # calls of a step
MOST_KINDS = 5_000  # that differ
ATTRIBUTES = ("kernel_size", "is_training")


class Operands:
    """The calls of one step, in order: which of `kinds` each is."""

    def __init__(self):
        self.done = False
        self._kinds = {}
        self._calls = []
        self._replaced = []
        self._inside = False
        self._thread = None
        self._on = False

    def start(self):
        """From now on, in this thread, once in a process, and only where Python launches the operators."""
        mindspore = sys.modules.get("mindspore")
        if self.done or mindspore is None or mindspore.get_context("mode") != 1:
            return
        self.done = self._on = True
        self._thread = _thread.get_ident()
        base = sys.modules["mindspore.ops.primitive"].Primitive
        todo, seen = [base], {base}
        while todo:
            kind = todo.pop()
            if "__call__" in kind.__dict__:
                original = kind.__dict__["__call__"]
                kind.__call__ = mine = self._watched(original)
                self._replaced.append((kind, original, mine))
            for child in type.__subclasses__(kind):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)

    def step_done(self):
        """A step is over. The first one of a window may have had nothing but an update: then the next one counts."""
        if self._calls:
            self.stop()

    def stop(self):
        """Watch no longer, and leave the calls in the spool; without any, the next window is watched again."""
        if not self._replaced:
            return
        self._on = False
        for kind, original, mine in self._replaced:
            if kind.__dict__.get("__call__") is mine:
                kind.__call__ = original
        self._replaced = []
        kinds, calls = [list(kind) for kind in self._kinds], self._calls
        self._kinds, self._calls = {}, []
        self.done = bool(calls)
        if not calls:
            return
        recorder.REC.event("operands", kinds=kinds, calls=calls)

    def _watched(self, original):
        def __call__(primitive, *args, **kwargs):
            try:
                outermost = self._on and not self._inside and _thread.get_ident() == self._thread
            except Exception:
                outermost = self._on = False
                recorder.REC.failed("operands")
            if not outermost:
                return original(primitive, *args, **kwargs)
            self._inside = True
            try:
                result = original(primitive, *args, **kwargs)
            finally:
                self._inside = False
            try:
                self._add(primitive, args, result)
            except Exception:
                self._on = False
                recorder.REC.failed("operands")
            return result

        __call__.__wrapped__ = original
        return __call__

    def _add(self, primitive, args, result):
        if len(self._calls) >= MOST or len(self._kinds) >= MOST_KINDS:
            return
        attributes = tuple((name, _plain(getattr(primitive, name, None))) for name in ATTRIBUTES)
        set_attributes = tuple((name, value) for name, value in attributes if value is not None)
        results = result if isinstance(result, tuple) else (result,)
        kind = (str(primitive.name), tuple(_tensors(args)), tuple(_tensors(results)), set_attributes)
        self._calls.append(self._kinds.setdefault(kind, len(self._kinds)))


def _tensors(items):
    for item in items:
        if isinstance(item, (tuple, list)):
            yield from _tensors(item)
        elif isinstance(getattr(item, "shape", None), tuple):
            yield str(item.dtype).rpartition(".")[2].lower(), tuple(int(size) for size in item.shape)


def _plain(value):
    """A number, a truth, or a tuple of numbers; None for anything else."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, (tuple, list)) and all(isinstance(one, int) for one in value):
        return tuple(value)
    return None


OPERANDS = Operands()
