"""The bytes of a file of another program, whether it lies there plain, gzipped, or with a byte order mark in front.

A file is unpacked when it begins as gzip does; its name does not count. Small JSON documents are read whole.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.record.document import BAD_JSON, refuse_many_values
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typing_extensions import Self

BROKEN = (OSError, EOFError, zlib.error)  # what `open_file` raises, and reading on
HINT = "restore the file, or remove it"
MARK = b"\xef\xbb\xbf"
LONG_LINE = 1 << 20
MESSAGE = 2_000  # characters
_CHUNK = 1 << 20


def cannot_read(path: Path, error: BaseException, where: str = "") -> SourceError:
    """The error for a file that is cut off or not what it should be."""
    return SourceError(f"cannot read `{path}`{where}: {getattr(error, 'strerror', None) or error}", HINT)


def one_line(text: str) -> str:
    """A message without what names and damaged files may bring into it: line ends, control characters, and no end."""
    shown = text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= MESSAGE else f"{shown[:MESSAGE]}..."


def whole_text(path: Path, most: int) -> str:
    """A short text, read whole; what is not UTF-8 is replaced.

    Raises SourceError when it cannot be read or has more than `most` bytes.
    """
    return whole_bytes(path, most).decode("utf-8", "replace")


def whole_bytes(path: Path, most: int) -> bytes:
    """The bytes of a short file. Raises SourceError when it cannot be read or has more than `most` of them."""
    try:
        with open_file(path) as file:
            data = file.read(most + 1)
    except BROKEN as error:
        raise cannot_read(path, error) from error
    if len(data) > most:
        raise SourceError(f"`{path}` is larger than {most >> 20} MiB, which no such file is", "remove it")
    return data.removeprefix(MARK)


def lines(path: Path, *, most: int | None = None, longest: int | None = None) -> Iterator[str]:
    """Lines of a text file, one at a time, without their ends (LF or CRLF).

    A line of more than `LONG_LINE` bytes comes in pieces, unless `longest` is given. Raises SourceError for a file that
    cannot be read, has more than `most` bytes, or a line of more than `longest`.
    """
    size, piece = 0, LONG_LINE if longest is None else longest + 1
    try:
        with open_file(path) as file:
            first = True
            while line := file.readline(piece):
                size += len(line)
                if longest is not None and len(line) > longest:
                    raise SourceError(f"`{path}` has a line of more than {longest >> 20} MiB", HINT)
                if most is not None and size > most:
                    raise SourceError(f"`{path}` is larger than {most >> 20} MiB, which no such file is", "remove it")
                yield (line.removeprefix(MARK) if first else line).decode("utf-8", "replace").rstrip("\r\n")
                first = False
    except BROKEN as error:
        raise cannot_read(path, error) from error


class Content:
    """A file to read from its begin. Every method raises SourceError for what cannot be read or unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = open_file(path)
        except BROKEN as error:
            raise cannot_read(path, error) from error
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        data = self._read(size)
        if not self._begun:
            data = data.removeprefix(MARK)
            self._begun = True
        return data

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
        except BROKEN as error:
            if not pieces:
                raise cannot_read(self._path, error) from error
        return b"".join(pieces)


BYTES = 1 << 23
_T = TypeVar("_T")


def document(path: Path, most: int = BYTES, number: Callable[[str], Any] = str) -> Any:
    """A JSON document.

    NaN and infinity are None. What has a fraction or an exponent is what `number` makes of its text: by default that
    text, so that nothing is lost. Raises SourceError for a file that is empty, cut off or no JSON, and for one of more
    than `most` bytes, or of more values than memory may hold.
    """
    data = whole_bytes(path, most)
    if not data.strip():
        raise SourceError(f"`{path}` is empty, expected a JSON object", HINT)
    try:
        refuse_many_values(data)
    except msgspec.DecodeError as error:
        raise cannot_read(path, error) from error
    try:
        return msgspec.json.Decoder(float_hook=number).decode(data)
    except (*BAD_JSON, ValueError) as error:
        if b"NaN" not in data and b"Infinity" not in data:
            raise cannot_read(path, error) from error
    try:
        content = json.loads(data.decode(), parse_float=number, parse_constant=lambda _name: None)
        msgspec.json.encode(content)  # refuses half of a pair of surrogates
    except (ValueError, RecursionError) as error:
        raise cannot_read(path, error) from error
    return content


def json_lines(path: Path, kind: type[_T]) -> Iterator[tuple[int, _T | None]]:
    """(number from 1, value) of the lines of a file that has a JSON value in each; None for one that is no `kind`.

    Empty lines are passed over. Raises SourceError for a file that cannot be read, after what stood in front of that.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, line in enumerate(lines(path), 1):
        if line:
            try:
                yield number, decoder.decode(line)
            except BAD_JSON:
                yield number, None


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A number or a text of a JSON document as text; empty for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 1 << 64 else ""
    return value if isinstance(value, str) else ""
