"""How long a thread was ready to run but had no core, and how many bytes it has read, as the kernel counts them.

Threads of MindSpore's that call Python have no lasting state in the interpreter, so that what is open for a thread is
kept by its number in the system.
"""

import os
import threading

from . import files

STATISTICS = "/proc/thread-self/schedstat"  # CPU time, time ready to run without a core, both ns
MOST = 256  # open files, two of a thread; of further threads nothing is known, nor where descriptors are few

READING = "/proc/thread-self/io"  # bytes of all calls that read, whether they came from the disk or from memory

_files = {}  # type: dict[tuple[int, str], files.Descriptor]  # thread, path -> its file


def is_known(path=None):
    """Whether the kernel counts it."""
    return os.path.exists(path or STATISTICS)


def of_thread():
    """Of the calling thread since it began, ns; None where it is not known."""
    return _look(STATISTICS)[0]


def read_by_thread():
    """Bytes that the calling thread has read since it began, this look included; None where it is not known."""
    number, length = _look(READING)
    return None if number is None else number + length


def read_since(before):
    """Bytes that the calling thread has read since an earlier look; None where it is not known."""
    return between(before, _look(READING)[0])


def _look(path):
    """The second word of what a file says about the calling thread, or None, and how many bytes were read for it."""
    key = threading.get_native_id(), path
    for _ in range(2):
        try:
            data = (_files.get(key) or _opened(key)).read(256)
            return int(data.split()[1]), len(data)
        except (OSError, ValueError, IndexError):
            _drop(key)  # the thread that had this number has ended, or the user closed the file
    return None, 0


def between(before, after):
    """What was added from one look to another; None where either is not known."""
    return None if before is None or after is None else max(after - before, 0)


def forget():
    """Close what is open for threads that have ended; everything, where descriptors are few."""
    for key, file in list(_files.items()):
        try:
            file.read(1)
            has_ended = False
        except OSError:
            has_ended = True
        if has_ended or files.few():
            _drop(key)


def _opened(key):
    if len(_files) >= MOST or files.few():
        raise OSError("too many threads")
    _files[key] = files.to_read(key[1])
    return _files[key]


def _drop(key):
    file = _files.pop(key, None)
    if file is not None:
        file.close()
