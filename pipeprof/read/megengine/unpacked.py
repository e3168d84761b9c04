"""The bytes of a file of MegEngine, whether it lies there plain, gzipped, or with a byte order mark in front."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from pathlib import Path

_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_BROKEN = (OSError, EOFError, zlib.error)


class Unpacked:
    """A file to read from its begin. Every method raises SourceError for what cannot be read or unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = open_file(path)
        except OSError as error:
            raise self._unreadable(error) from error
        self._begun = False

    def __enter__(self) -> Unpacked:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        found = self._read(size)
        if not self._begun:
            found = found.removeprefix(_MARK)
            self._begun = True
        return found

    def end(self, size: int) -> bytes:
        """The last bytes, and nothing is left to read then. A packed file is unpacked up to its end."""
        if self._file.seekable():
            self._file.seek(max(self._file.tell(), self._path.stat().st_size - size))
        tail = b""
        while block := self.read(_CHUNK):
            tail = (tail + block)[-size:]
        return tail

    def _read(self, size: int) -> bytes:
        """What stands in front of damage comes first; the next call raises."""
        pieces, left = [], size
        try:
            while left > 0 and (piece := self._file.read1(left)):  # type: ignore[attr-defined]
                pieces.append(piece)
                left -= len(piece)
        except _BROKEN as error:
            if not pieces:
                raise self._unreadable(error) from error
        return b"".join(pieces)

    def _unreadable(self, error: Exception) -> SourceError:
        why = getattr(error, "strerror", None) or error
        return SourceError(f"cannot read `{self._path}`: {why}", "was it copied to the end?")
