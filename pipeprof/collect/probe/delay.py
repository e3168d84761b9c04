"""How long a thread was ready to run but had no core, as the kernel's scheduler counts it.

Threads of MindSpore's that call Python have no lasting state in the interpreter, so that what is open for a thread is
kept by its number in the system.
"""

import os
import threading

STATISTICS = "/proc/thread-self/schedstat"  # CPU time, time ready to run without a core, both ns
MOST = 256  # threads; the delay of further ones is not known

_files = {}  # type: dict[int, tuple[int, int]]  # thread -> file descriptor, inode


def is_known():
    """Whether the kernel counts it."""
    return os.path.exists(STATISTICS)


def of_thread():
    """Of the calling thread since it began, ns; None where it is not known."""
    thread = threading.get_native_id()
    for _ in range(2):
        try:
            file, _ = _files.get(thread) or _opened(thread)
            return int(os.pread(file, 64, 0).split()[1])
        except (OSError, ValueError, IndexError):
            _drop(thread)  # the thread that had this number has ended, or the user closed the file
    return None


def between(before, after):
    """What was added from one look to another; None where either is not known."""
    return None if before is None or after is None else max(after - before, 0)


def forget():
    """Close what is open for threads that have ended."""
    for thread, (file, _) in list(_files.items()):
        try:
            os.pread(file, 1, 0)
        except OSError:
            _drop(thread)


def _opened(thread):
    if len(_files) >= MOST:
        raise OSError("too many threads")
    file = os.open(STATISTICS, os.O_RDONLY)
    _files[thread] = file, os.fstat(file).st_ino
    return _files[thread]


def _drop(thread):
    file, inode = _files.pop(thread, (-1, 0))
    try:
        if os.fstat(file).st_ino == inode:  # else the number is a file of the user's by now
            os.close(file)
    except OSError:
        pass
