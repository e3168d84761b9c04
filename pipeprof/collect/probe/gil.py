"""How much of the time Python code holds the interpreter's lock (GIL).

A thread sleeps and looks how late it comes back: sleeping gives the lock away, and whoever holds it in Python code
keeps it for the interpreter's switch interval (5 ms) before a waiting thread gets it. Code that computes without the
lock (most of NumPy, all of MindSpore) makes nobody wait. No lateness means a free lock, a whole interval a held one.

At the same times it looks which threads that run the user's Python in the dataset wait for the lock: the kernel says at
which address a thread waits, and the lock lies in the interpreter's own state. The kernel's file is read while the lock
is given away, so that the look itself makes nobody wait.
"""

import sys
import threading

from . import files, recorder

EVERY_S = 0.1
MOST = 64  # threads that are watched
SYSCALL = "/proc/self/task/%d/syscall"  # "running", or the number of the call and its arguments
_started = []  # type: list[bool]
_threads = {}  # type: dict[int, tuple[object, files.Descriptor]]  # of the system's number: for whom it runs


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
    _forget()
    start()


def _run():
    try:
        _look(recorder.REC)
    except Exception:
        recorder.REC.failed("gil")


def _forget():
    for tid in list(_threads):
        known = _threads.pop(tid, None)
        if known is not None:
            known[1].close()


def runs(cell):
    """The calling thread runs Python for this cell of an operator, from now on."""
    tid = threading.get_native_id()
    known = _threads.get(tid)
    if (known is not None and known[0] is cell) or not _started:
        return
    if known is None and (len(_threads) >= MOST or files.few()):
        return
    try:
        _threads[tid] = cell, known[1] if known is not None else files.to_read(SYSCALL % tid)
    except OSError:
        recorder.REC.failed("gil")


def lock_range():
    """The first address of the interpreter's state, and the first behind it; None where nobody tells."""
    try:
        import ctypes

        start = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        about, symbol = (ctypes.c_void_p * 4)(), ctypes.c_void_p()
        if not ctypes.CDLL(None).dladdr1(ctypes.c_void_p(start), about, ctypes.byref(symbol), 1):
            return None
        return start, start + ctypes.c_uint64.from_address(symbol.value + 16).value  # st_size of an Elf64_Sym
    except Exception:
        return None


def waits_at(state):
    """The address that a thread waits at, from its kernel's line; 0 when it does not wait."""
    words = state.split(None, 2)
    return int(words[1], 16) if len(words) > 2 else 0


def _count_waits(inside, waits):
    """Add, by pipeline and operator, how many of its threads wait for the lock now."""
    for tid, (cell, file) in list(_threads.items()):
        try:
            address = waits_at(file.read(256))
        except (OSError, ValueError):  # the thread has ended, or the user closed the file
            _threads.pop(tid, None)
            file.close()
            continue
        key = cell.number, cell.node
        if cell.node is not None:
            waits[key] = waits.get(key, 0) + (inside[0] <= address < inside[1])


def _look(rec):
    pid, inside = rec.pid, lock_range()
    waits = {}
    late, probes, written = 0.0, 0, recorder.now()
    while not rec.off and rec.pid == pid:
        before = recorder.now()
        recorder.sleep(EVERY_S)
        after = recorder.now()
        interval = sys.getswitchinterval()
        late += min(max((after - before) / 1e9 - EVERY_S, 0.0) / interval, 1.0)
        probes += 1
        if inside is not None:
            _count_waits(inside, waits)
        if after - written > 1_000_000_000:
            waiting = [[*key, count / probes] for key, count in waits.items()]
            rec.line("gil", t=after, held=late / probes, probes=probes, waiting=waiting)
            late, probes, written = 0.0, 0, after
            waits.clear()
    if rec is recorder.REC:
        _forget()
