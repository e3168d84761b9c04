"""How much of the time Python code holds the interpreter's lock (GIL).

A thread sleeps and looks how late it comes back: sleeping gives the lock away, and whoever holds it in Python code
keeps it for the interpreter's switch interval (5 ms) before a waiting thread gets it. Code that computes without the
lock (most of NumPy, all of MindSpore) makes nobody wait. No lateness means a free lock, a whole interval a held one.
"""

import sys
import threading

from . import recorder

EVERY_S = 0.1
_started = []  # type: list[bool]


def start():
    """Start the thread, once in a process. Nothing happens where the interpreter has no such lock."""
    if _started or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return
    _started.append(True)
    thread = threading.Thread(target=_run, name="pipeprof-gil", daemon=True)
    thread.start()


def restart():
    """Start a thread for a recorder that has just been opened; the one of the recorder before ends by itself."""
    del _started[:]
    start()


def _run():
    try:
        _look(recorder.REC)
    except Exception:
        recorder.REC.failed("gil")


def _look(rec):
    pid = rec.pid
    late, probes, written = 0.0, 0, recorder.now()
    while not rec.off and rec.pid == pid:
        before = recorder.now()
        recorder.sleep(EVERY_S)
        after = recorder.now()
        interval = sys.getswitchinterval()
        late += min(max((after - before) / 1e9 - EVERY_S, 0.0) / interval, 1.0)
        probes += 1
        if after - written > 1_000_000_000:
            rec.line("gil", t=after, held=late / probes, probes=probes)
            late, probes, written = 0.0, 0, after
