"""The one way in which files of others are opened: regular ones alone, and no further than a limit.

A pipe would wait for ever, a device never end, and a link of a run that came from elsewhere may lead to anything. What
is written or removed in such a folder is guarded likewise: no link may lead outside.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import shutil
import stat
import threading
import time
from typing import TYPE_CHECKING, cast

from pipeprof.errors import RunError
from pipeprof.record import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from typing_extensions import Buffer

MOST = 1 << 36  # bytes of a file that is streamed
GZIP = b"\x1f\x8b"
_PIECE = 1 << 17
_BLOCK = 512  # bytes; a file with holes has fewer than its size says
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class RefusedError(OSError):
    """A file that is not opened, or not read on, and why. Its text is that reason alone."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EINVAL, why, str(path))

    def __str__(self) -> str:
        return str(self.strerror)


class TooLargeError(RefusedError):
    """A file that holds more than is read, or takes longer."""


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, reach the disk before anything that follows."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A name beside a file to write to, which becomes the file at the end; where that fails nothing is left of it.

    `durable`: it is on the disk before it gets the name of the file.
    """
    temporary = path.with_name(f".{path.name}.{threading.get_native_id()}.tmp")
    try:
        yield temporary
        if durable:
            sync(temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def refuse_outside(path: Path, folder: Path | None) -> None:
    """Raises RefusedError when links lead from a path in the folder to somewhere else."""
    if folder is not None and not _goes_on_from(folder, path):
        real, home = os.path.realpath(path), os.path.realpath(folder)
        if real != home and not real.startswith(home.rstrip(os.sep) + os.sep):
            raise RefusedError(path, f"it is a link to `{real}`, expected a file in `{folder}`")


def _goes_on_from(folder: Path, path: Path) -> bool:
    """Whether nothing between the folder and the path is a link; real paths need not be looked up then."""
    at, text = os.fspath(folder), os.fspath(path)
    if not text.startswith(f"{at}/"):
        return False
    for part in text[len(at) + 1 :].split("/"):
        at = f"{at}/{part}"
        if part == ".." or os.path.islink(at):  # noqa: PTH114 - of each file of a run: half of the time
            return False
    return True


def open_handle(path: Path, inside: Path | None = None) -> int:
    """A file descriptor of a regular file. Raises OSError, for anything else RefusedError."""
    refuse_outside(path, inside)
    _refuse_other_kinds(path, os.stat(path).st_mode)  # noqa: PTH116 - a device is not even opened
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse_other_kinds(path, os.fstat(handle).st_mode)
    except RefusedError:
        os.close(handle)
        raise
    return handle


def read_file(path: Path, most: int, *, inside: Path | None = None) -> bytes:
    """A whole file. Raises OSError; TooLargeError for more than `most` bytes (or what the user allows)."""
    return cut_file(path, most, inside=inside, must_fit=True)[0]


def cut_file(path: Path, most: int, *, inside: Path | None = None, must_fit: bool = False) -> tuple[bytes, bool]:
    """The first `most` bytes of a file (or what the user allows), and if that is all. Raises OSError."""
    with os.fdopen(open_handle(path, inside), "rb") as file:
        facts = os.fstat(file.fileno())
        most = min(limits.most_bytes(most), limits.most_with_holes(_BLOCK * facts.st_blocks))
        data = file.read(min(most, facts.st_size) + 1)  # `most` is reserved at once, however small the file is
        if len(data) > facts.st_size:  # it grew meanwhile, or does not say its size
            data += file.read(most + 1 - len(data))
    if must_fit and len(data) > most:
        raise _too_many(path, most, "")
    return data[:most], len(data) <= most


def file_end(path: Path, most: int, *, inside: Path | None = None) -> tuple[bytes, int]:
    """The last `most` bytes of a file, and where they begin in it. Raises OSError."""
    with os.fdopen(open_handle(path, inside), "rb") as file:
        begin = max(0, os.fstat(file.fileno()).st_size - most)
        file.seek(begin)
        return file.read(most), begin


def open_file(path: Path, *, packed: bool | None = None) -> BinaryIO:
    """A regular file to be streamed from its begin, unpacked when it is `packed` (None: when it begins as gzip does).

    Raises OSError; so does reading on, with TooLargeError, past what is allowed.
    """
    handle = open_handle(path)
    size = min(limits.most_bytes(MOST), limits.most_unpacked(_BLOCK * os.fstat(handle).st_blocks))
    raw = io.BufferedReader(_Meter(path, cast("io.RawIOBase", io.FileIO(handle, "rb")), size), _PIECE)
    if packed is None:
        packed = raw.peek(len(GZIP))[: len(GZIP)] == GZIP
    if not packed:
        return cast("BinaryIO", raw)
    size = limits.most_unpacked(os.fstat(raw.fileno()).st_size)
    return cast("BinaryIO", io.BufferedReader(_Unpacked(path, cast("BinaryIO", raw), size), _PIECE))


class _Meter(io.RawIOBase):
    """A file that may be read up to a size, and for a time."""

    _what = ""

    def __init__(self, path: Path, file: io.RawIOBase | BinaryIO, most: int) -> None:
        self._path = path
        self._file = file
        self._most = most
        self._seconds = limits.most_seconds()
        self._until = time.monotonic() + self._seconds
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = self._file.seek(offset, whence)
        return self._at

    def tell(self) -> int:
        return self._at

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Buffer) -> int:
        count = self._fill(buffer)
        self._at += count
        if self._at > self._most:
            raise _too_many(self._path, self._most, self._what)
        if time.monotonic() > self._until:
            raise TooLargeError(
                self._path, f"reading it took more than {self._seconds} s; {limits.raised_by(limits.SECONDS)}"
            )
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _fill(self, buffer: Buffer) -> int:
        return self._file.readinto(buffer) or 0  # type: ignore[union-attr]


class _Unpacked(_Meter):
    """What a gzipped file holds; its own bytes are behind `packed`."""

    _what = "unpacked, "

    def seekable(self) -> bool:
        """Seeking would unpack everything in between, without a limit."""
        return False

    def __init__(self, path: Path, packed: BinaryIO, most: int) -> None:
        super().__init__(path, cast("BinaryIO", gzip.GzipFile(fileobj=packed)), most)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()

    def _fill(self, buffer: Buffer) -> int:
        """What stands in front of damage comes before the error."""
        view = memoryview(buffer)
        data = self._file.read1(len(view))  # type: ignore[union-attr]
        view[: len(data)] = data
        return len(data)


def _too_many(path: Path, most: int, what: str) -> TooLargeError:
    return TooLargeError(path, f"{what}it has more than {most:,} bytes; {limits.raised_by(limits.BYTES)}")


def _refuse_other_kinds(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise RefusedError(path, f"it is {kind}, expected a regular file")


def remove(path: Path) -> None:
    """Remove a folder with all in it, or a file. Of a link the link alone goes. A failure leaves the rest in place."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def refuse_links_out(folder: Path, depth: int, but: Collection[str] = ()) -> None:
    """Raises RunError, naming it, when a link in a folder leads out of it.

    `depth`: so many levels are looked at. `but`: folders at the top whose content is the user's own.
    """
    for entry in _links(str(folder), depth, but):
        try:
            refuse_outside(folder / entry, folder)
        except RefusedError as error:
            raise RunError(f"`{folder / entry}` is a link out of `{folder}`", "remove the link") from error


def _links(folder: str, depth: int, but: Collection[str], inside: str = "") -> Iterator[str]:
    """The links in a folder, as paths from there; nothing where it is not there or may not be read."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = inside + entry.name
            if entry.is_symlink():
                yield name
            elif depth > 1 and entry.name not in but and entry.is_dir(follow_symlinks=False):
                yield from _links(entry.path, depth - 1, (), f"{name}/")
