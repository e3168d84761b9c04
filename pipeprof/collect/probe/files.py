"""Descriptors of the recorder's own, whatever the program does with descriptors.

A program may close any number, or all of them, and then open files of its own, which get the numbers that are free. So
no number is trusted: before it is written to, cut off or closed, its file must be the one that was opened (device and
inode); else the recorder's file is opened again by its path. Kept numbers are high ones, which the program's next files
do not get. Where the program has few left, none is kept.

Between a look at a number and its use another thread may get the interpreter's lock. So files are opened with
O_NONBLOCK, which means nothing to a file: that is asked last, for it takes no system call that gives the lock away.
What is asked again and again reads no file of `open` and no folder: they close their numbers without a look.

The functions are taken from `os` before the program runs, for it may replace them there.
"""

import errno
import os

from . import hooks

_open, _close, _write, _pread, _fstat, _stat = os.open, os.close, os.write, os.pread, os.fstat, os.stat
_dup, _dup2, _ftruncate = os.dup, os.dup2, os.ftruncate
open_file, rename, listdir, mkdir, remove = open, os.rename, os.listdir, os.mkdir, os.remove

_blocks = getattr(os, "get_blocking", None)

OURS = getattr(os, "O_CLOEXEC", 0) | (getattr(os, "O_NONBLOCK", 0) if _blocks else 0)
APPEND = os.O_WRONLY | os.O_APPEND
NUMBERS = "/proc/self/fd"
FEW = 64  # free descriptors; with fewer than that the recorder keeps none
HIGHEST = 8192  # kept numbers lie below: the kernel copies a table of this size in each fork
COUNTED = 1 << 16  # open files are counted up to this limit

_append_at_once = getattr(hooks.COMPILED, "append_at_once", None)
_close_own = getattr(hooks.COMPILED, "close_own", None)
_count_open = getattr(hooks.COMPILED, "count_open", None)
_few = [False]  # whether few were free at the last look
_largest = [None]  # type: list[int | None]  # bytes that a file may have, where the program has set a limit
_from = [None]  # type: list[int | None]  # kept numbers begin here


class LostError(OSError):
    """The recorder's file is gone, or another one has its path."""


class Descriptor:
    """A number, and which file it was opened for (device and inode)."""

    def __init__(self, number, identity):
        self.number, self.identity = number, identity

    def is_ours(self):
        """Whether it still is that file."""
        return is_file(self.number, self.identity)

    def read(self, size):
        """Its first bytes. Not looked at before: reading another file harms nobody."""
        return _pread(self.number, size, 0)

    def close(self):
        """Close it, unless it is the program's by now."""
        _close_if(self.number, self.identity, opened=False)

    def put_at(self, number):
        """Let another number be this file, too. Raises LostError where it is the program's by now."""
        if not self.is_ours():
            raise LostError(errno.EBADF, "descriptor %d was closed" % self.number)
        _dup2(self.number, number)

    def write_all(self, data):
        """Write, unless it is the program's by now; returns what was not written."""
        try:
            while data and self.is_ours():
                data = data[_write(self.number, data) :]
        except OSError:
            pass
        return data


class OwnFile:
    """A file of the recorder's, by its path. Raises OSError where it cannot be opened, LostError where it is gone."""

    def __init__(self, path, flags=APPEND):
        self._path = path
        self._flags = flags
        self.identity = None
        self._kept = None
        self._kept = self._opened(flags | os.O_CREAT)

    def write(self, data):
        """Append; returns how many bytes were taken."""
        if _few[0] and _append_at_once is not None and self.identity is not None:
            return self._write_at_once(data)
        number = self._descriptor().number
        if _largest[0] is not None:
            _refuse_beyond(_fstat(number).st_size + len(data))
        written = _write(number, data)
        if _few[0]:
            self.close()
        return written

    def _write_at_once(self, data):
        """Append by a descriptor that no other thread of Python's could want meanwhile."""
        self.close()
        if _largest[0] is not None:
            _refuse_beyond(_stat(self._path).st_size + len(data))
        try:
            return _append_at_once(self._path, *self.identity, data)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESTALE):
                raise LostError(*error.args) from None
            raise

    def take(self):
        """All that is in the file, which is empty then."""
        descriptor = self._descriptor()
        size = _fstat(descriptor.number).st_size
        if not size:
            return b""
        data = _pread(descriptor.number, size, 0)
        _ftruncate(self._descriptor().number, 0)
        return data

    def put_at(self, number):
        """Let another number be this file, too."""
        self._descriptor().put_at(number)

    def is_at(self, number):
        """Whether a number is this file."""
        return is_file(number, self.identity)

    def close(self):
        """Close it; a later use opens it again."""
        descriptor, self._kept = self._kept, None
        if descriptor is not None:
            descriptor.close()

    def _descriptor(self):
        descriptor = self._kept
        if descriptor is None or not descriptor.is_ours():  # the number is left alone: it may be the program's
            descriptor = self._kept = self._opened(self._flags)
        return descriptor

    def _opened(self, flags):
        try:
            number = _open(self._path, flags | OURS, 0o644)
        except FileNotFoundError as error:
            raise LostError(*error.args) from None
        identity = identity_at(self._path)
        descriptor = _moved(number, identity)
        if not descriptor.is_ours():
            raise OSError(errno.EAGAIN, "descriptor %d was closed while it was opened" % number)
        if self.identity is None:
            self.identity = identity
        elif identity != self.identity:
            descriptor.close()
            raise LostError(errno.ESTALE, "another file has its path")
        return descriptor


def identity_of(number):
    """Device and inode of the file that a number is; None when it is none."""
    try:
        facts = _fstat(number)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def identity_at(path):
    """Device and inode of what is at a path; None when nothing is."""
    try:
        facts = _stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def is_file(number, identity):
    """Whether a number is that file."""
    return identity is not None and identity_of(number) == identity


def _is_opened(number, identity):
    """Whether a number is that file, and was opened here. Nothing that may give the lock away comes after the look."""
    try:
        return is_file(number, identity) and (_blocks is None or not _blocks(number))
    except OSError:
        return False


def _close_if(number, identity, opened=True):
    """Close a number, unless it is the program's by now; `opened`: only one that was opened here, and not copied.

    In C no thread of Python's can come between the look and the close, for which `os.close` gives the lock away. In
    Python one can that closes everything again at that very moment: then a file that it opens next may be closed.
    """
    if identity is None:
        return
    if _close_own is not None:
        _close_own(number, *identity, opened)
    elif _is_opened(number, identity) if opened else is_file(number, identity):
        _close(number)


def write_once(path, data, flags=APPEND | os.O_CREAT):
    """Open, write and close. Raises OSError."""
    _refuse_beyond(len(data))
    number = _open(path, flags | OURS, 0o644)
    identity = identity_at(path)
    try:
        if _is_opened(number, identity):  # else it was closed meanwhile, and is the program's
            _write(number, data)
    finally:
        _close_if(number, identity)


def copy_of(number):
    """A Descriptor of what a number is now. Raises OSError."""
    identity = identity_of(number)
    return Descriptor(_high(number) or _dup(number), identity)


def to_read(path):
    """A Descriptor of a file. Raises OSError."""
    number = _open(path, os.O_RDONLY | OURS)
    return _moved(number, identity_of(number))


def read_at(path, size, offset=0):
    """Bytes of a file, without keeping it. Raises OSError."""
    number = _open(path, os.O_RDONLY | OURS)
    identity = identity_of(number)
    try:
        return _pread(number, size, offset)
    finally:
        _close_if(number, identity)


def say(text):
    """Print a line to stderr, if 2 still is that; returns whether it was printed."""
    try:
        return is_file(2, _STANDARD_ERROR) and _write(2, text.encode()) > 0
    except OSError:
        return False


def look():
    """Count the descriptors that are free; returns whether they are few."""
    limit = _limit("NOFILE")
    _largest[0] = _limit("FSIZE")
    _from[0] = None if limit is None else min(limit, HIGHEST) * 3 // 4
    _few[0] = _are_few(limit)
    return _few[0]


def are_limited():
    """Whether files had a largest size at the last look: MindSpore's own must not be written then."""
    return _largest[0] is not None


def few():
    """Whether few were free at the last look."""
    return _few[0]


def _are_few(limit):
    if limit is None or limit > COUNTED:
        return False
    try:
        if _count_open is not None:
            return limit - _count_open(limit) < FEW
        return limit - sum(int(number) < limit for number in listdir(NUMBERS)) < FEW
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)


def _refuse_beyond(size):
    """Raises OSError before the kernel would: it sends a signal, which may end the program."""
    if _largest[0] is not None and size > _largest[0]:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _limit(name):
    """What the program has set for a resource; None where that is not known, or not limited."""
    try:
        import resource

        limit = resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0]
    except Exception:
        return None
    return limit if limit >= 0 else None


def _moved(number, identity):
    """A Descriptor of a file that was opened, at a high number if there is one."""
    high = _high(number)
    if high is None:
        return Descriptor(number, identity)
    if not is_file(high, identity):  # the program took the number over just now
        _close(high)
    else:
        _close_if(number, identity)
    return Descriptor(high, identity)


def _high(number):
    """One more number for the same file, a high one; None where there is none, or few: it takes two for a moment."""
    if _from[0] is None or _few[0]:
        return None
    try:
        import fcntl

        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _from[0])
    except Exception:
        return None


_STANDARD_ERROR = identity_of(2)  # as it was when the recorder began
