"""Makes a queue sample cheap, by keeping MindSpore from reading what pipeprof does not use for each of them.

Its sampler reads the times of the machine, the process and each of its threads and, since 2.10, /proc/PID/smaps. The
last alone takes 10 to 15 ms of kernel time with the memory map locked on a process of that size: a tenth of a core and
up to a quarter of the step time at ten samples a second. And each file takes the lowest free number for a moment: a
program that closes a number which is not its own, and opens a file just then, may lose it to the sampler's close. The
paths are put together from constants in a library; in this process's private copy of it they are replaced by ones that
lead nowhere, which the sampler takes, or to an empty file. What remains is /proc/meminfo, whose constant is used for
something else, too. Nothing is changed unless a constant is found exactly once.
"""

import ctypes
import mmap
import os
import sys

from . import files, recorder

INSTEAD = {
    b"\0/smaps\0": b"\0/none.\0",
    b"\0/task/\0": b"\0/none/\0",
    b"\0/proc/stat\0": b"\0/dev/null\0\0",  # its end is the name of a process's file
}
READ, WRITE = 1, 2


def install():
    """Replace the constants; returns whether all were. The library has been imported."""
    if not recorder.may_patch():
        return False
    path = os.path.realpath(sys.modules["mindspore._c_dataengine"].__file__)
    with files.open_file(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offsets = {wanted: _only(data, wanted) for wanted in INSTEAD}
    replaced = [_replace(path, offset, wanted) for wanted, offset in offsets.items()]
    return all(replaced)


def _only(data, wanted):
    """Where it stands; None where it does not, or more than once."""
    offset = data.find(wanted)
    return None if offset < 0 or data.find(wanted, offset + 1) >= 0 else offset


def _replace(path, offset, wanted):
    address = None if offset is None else _address(path, offset, len(wanted))
    if address is None or ctypes.string_at(address, len(wanted)) != wanted:
        return False
    page = os.sysconf("SC_PAGE_SIZE")
    begin = address & -page
    length = (address + len(wanted) - begin + page - 1) & -page
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(begin, length, READ | WRITE):
        return False
    ctypes.memmove(address, INSTEAD[wanted], len(wanted))
    protect(begin, length, READ)
    return True


def _address(path, offset, length):
    """Where a byte of the file lies in memory, if it is in a private, read-only, not executable mapping."""
    with files.open_file("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or fields[5].rstrip("\n") != path or fields[1] != "r--p":
                continue
            begin, end = (int(part, 16) for part in fields[0].split("-"))
            start = int(fields[2], 16)
            if start <= offset and offset + length <= start + end - begin:
                return begin + offset - start
    return None
