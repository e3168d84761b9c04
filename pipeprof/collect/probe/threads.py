"""Tells which of the process's threads are Python's, and what they belong to: the kernel only knows numbers."""

import threading

from . import recorder

_PREFIX = "pipeprof"  # of the names of our own threads


class Look:
    """Called twice a second; each thread is told once. Nothing is locked, for the training may hold any lock."""

    def __init__(self):
        self._reported = set()

    def __call__(self):
        """Tell the threads that are new."""
        for thread in list(threading._active.values()):
            tid = getattr(thread, "native_id", None)
            if tid is None or tid in self._reported or isinstance(thread, threading._DummyThread):
                continue
            self._reported.add(tid)
            recorder.REC.line(
                "thread", tid=tid, label=thread.name, module=_module(thread), ours=thread.name.startswith(_PREFIX)
            )


def _module(thread):
    """Where the thread's class is from, or the function that it runs."""
    kind = type(thread).__module__
    return getattr(getattr(thread, "_target", None), "__module__", None) or kind if kind == "threading" else kind
