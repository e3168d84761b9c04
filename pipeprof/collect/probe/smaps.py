"""Makes a queue sample cheap, by keeping MindSpore from reading the whole memory map for each of them.

Since 2.10 its sampler also reads /proc/PID/smaps every time, for a memory figure that pipeprof does not use. On a
process of that size it takes 10 to 15 ms of kernel time with the memory map locked: a tenth of a core and up to
a quarter of the step time at ten samples a second. The path is put together from a constant in a library; in this
process's private copy of it, `/smaps` is replaced by `/statm`, a file of one line, in which the figure is not found.
Nothing is changed unless the constant is found exactly once.
"""

import ctypes
import mmap
import os
import sys

from . import files, recorder

WANTED, INSTEAD = b"\0/smaps\0", b"\0/statm\0"
READ, WRITE = 1, 2


def install():
    """Replace the constant; returns whether it was done. The library has been imported."""
    if not recorder.may_patch():
        return False
    path = os.path.realpath(sys.modules["mindspore._c_dataengine"].__file__)
    with files.open_file(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offset = data.find(WANTED)
        if offset < 0 or data.find(WANTED, offset + 1) >= 0:
            return False
    address = _address(path, offset)
    if address is None or ctypes.string_at(address, len(WANTED)) != WANTED:
        return False
    page = os.sysconf("SC_PAGE_SIZE")
    begin = address & -page
    length = (address + len(WANTED) - begin + page - 1) & -page
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(begin, length, READ | WRITE):
        return False
    ctypes.memmove(address, INSTEAD, len(INSTEAD))
    protect(begin, length, READ)
    return True


def _address(path, offset):
    """Where a byte of the file lies in memory, if it is in a private, read-only, not executable mapping."""
    with files.open_file("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or fields[5].rstrip("\n") != path or fields[1] != "r--p":
                continue
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            start = int(fields[2], 16)
            if start <= offset and offset + len(WANTED) <= start + end - begin:
                return begin + offset - start
    return None
