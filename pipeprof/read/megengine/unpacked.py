"""The bytes of a file of MegEngine, whether it lies there plain, gzipped, or with a byte order mark in front."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Self

from pipeprof.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_BROKEN = (OSError, EOFError, zlib.error)


class Unpacked:
    """A file to read from its begin. Every method raises SourceError for what cannot be read or unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise self._unreadable(error) from error
        if self._file.peek(2)[:2] == _GZIP:  # type: ignore[attr-defined]
            self._file.close()
            self._file = gzip.open(path, "rb")  # type: ignore[assignment]
        self._ahead = self._read(len(_MARK)).removeprefix(_MARK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        if not self._ahead:
            return self._read(size)
        found, self._ahead = self._ahead[:size], self._ahead[size:]
        return found + (self._read(size - len(found)) if size > len(found) else b"")

    def end(self, size: int) -> bytes:
        """The last bytes, and nothing is left to read then. A packed file is unpacked up to its end."""
        if not isinstance(self._file, gzip.GzipFile):
            self._file.seek(max(self._file.tell(), self._path.stat().st_size - size))
        tail = b""
        while block := self.read(_CHUNK):
            tail = (tail + block)[-size:]
        return tail

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except _BROKEN as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> SourceError:
        why = getattr(error, "strerror", None) or error
        return SourceError(f"cannot read `{self._path}`: {why}", "was it copied to the end?")
