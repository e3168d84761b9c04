"""Tells which of the process's threads are Python's, and what they belong to: the kernel only knows numbers."""

import threading

from . import recorder, where

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
            what, site = _runs(thread)
            recorder.REC.line(
                "thread", tid=tid, label=thread.name, module=_module(thread), ours=thread.name.startswith(_PREFIX),
                what=what, site=site,
            )  # fmt: skip


def _runs(thread):
    """Name and file:line of the function that it runs; empty where that is none of Python's."""
    given = getattr(thread, "_target", None) or type(thread).run
    code = getattr(getattr(given, "func", given), "__code__", None)
    if code is None:
        return "", ""
    return where.qualified_name(code), "%s:%d" % (where.short(code.co_filename), code.co_firstlineno)


def _module(thread):
    """Where the thread's class is from, or the function that it runs."""
    kind = type(thread).__module__
    return getattr(getattr(thread, "_target", None), "__module__", None) or kind if kind == "threading" else kind
