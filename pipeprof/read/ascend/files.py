"""Opening these files, plain or gzipped: rows of a CSV by column name, small JSON documents, chunks of bytes."""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from typing import IO, TYPE_CHECKING, Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FIELD_BYTES = 1 << 24  # a step's links, or a call stack, are one field
JSON_BYTES = 1 << 23  # of a document that is read whole; others are streamed
MESSAGE = 2_000  # characters
SHORT_LINE = 1 << 20
TEXT_BYTES = 1 << 26  # of a text that is read whole
HINT = "restore the file, or remove it"
BROKEN = (OSError, EOFError, zlib.error)
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
csv.field_size_limit(max(FIELD_BYTES, csv.field_size_limit()))


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked when its name ends in `.gz`."""
    return open_file(path, packed=path.suffix == ".gz")


def one_line(text: str) -> str:
    """A message without what names and damaged files may bring into it: line ends, control characters, and no end."""
    shown = text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= MESSAGE else f"{shown[:MESSAGE]}..."


def cannot_read(path: Path, error: object, place: str = "") -> SourceError:
    """The error for a file that is cut off or not what it should be."""
    return SourceError(f"cannot read `{path}`{place}: {error}", HINT)


def lines_of(path: Path, most: int = SHORT_LINE) -> Iterator[str]:
    """Lines of a text without their ends (LF or CRLF).

    Raises SourceError for what cannot be read, and for a line of more than so many bytes.
    """
    try:
        with open_bytes(path) as file:
            first = True
            while line := file.readline(most + 1):
                if len(line) > most:
                    raise SourceError(f"`{path}` has a line of more than {most >> 20} MiB", HINT)
                yield line.decode("utf-8-sig" if first else "utf-8", "replace").rstrip("\r\n")
                first = False
    except BROKEN as error:
        raise cannot_read(path, error) from error


class Utf8:
    """The bytes of a file for Arrow: what is not UTF-8 is replaced, a mark in front is left out."""

    closed = False

    def __init__(self, path: Path) -> None:
        self._file = open_bytes(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = b""

    def read(self, count: int) -> bytes:
        """At most so many bytes; none at the end."""
        while not self._rest:
            data = self._file.read(count)
            self._rest = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                break
        found, self._rest = self._rest[:count], self._rest[count:]
        return found

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._file.close()


class Sheet:
    """A CSV file: column names, then rows with their line numbers. Rows may be shorter than the header."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="replace", newline="")
        except BROKEN as error:
            raise cannot_read(path, error) from error
        self._reader = csv.reader(self._lines(), skipinitialspace=True)
        self.names: list[str] = []
        for row in self._raw():
            self.names = [name.strip() for name in row[1]]
            break
        if not self.names:
            self.close()
            raise SourceError(f"`{path}` is empty, expected a header", HINT)

    def index(self, *names: str) -> int | None:
        """Position of the first of these columns that there is."""
        return next((self.names.index(name) for name in names if name in self.names), None)

    def need(self, *names: str) -> int:
        """As `index`. Raises SourceError when none of them is there."""
        found = self.index(*names)
        if found is None:
            self.close()
            raise SourceError(f"no column `{names[0]}` in `{self.path}`, found {', '.join(self.names[:12])}", HINT)
        return found

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, fields) of the rows that are left, padded to the header's length, without empty ones."""
        width = len(self.names)
        with self._file:
            for line, row in self._raw():
                if any(row):
                    yield line, row + [""] * (width - len(row))

    def close(self) -> None:
        """Close the file before its end."""
        self._file.close()

    def _lines(self) -> Iterator[str]:
        while line := self._file.readline(FIELD_BYTES):
            if len(line) == FIELD_BYTES:
                raise SourceError(f"`{self.path}` has a line of {FIELD_BYTES >> 20} Mi characters or more", HINT)
            yield line

    def _raw(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for row in self._reader:
                yield self._reader.line_num, row
        except (csv.Error, *BROKEN) as error:
            raise cannot_read(self.path, error, f", line {self._reader.line_num}") from error


def field(row: Sequence[str], index: int | None) -> str:
    """A field of a row; empty when its column is not there."""
    return "" if index is None or index >= len(row) else row[index].strip()


def document(path: Path) -> Any:
    """A JSON document, read whole. Numbers with a fraction or an exponent are their text, so that nothing is lost.

    Raises SourceError for what is not JSON or larger than 8 MiB.
    """
    try:
        with open_bytes(path) as file:
            data = file.read(JSON_BYTES + 1)
        if len(data) > JSON_BYTES:
            raise SourceError(f"`{path}` is larger than {JSON_BYTES >> 20} MiB, expected a small document", HINT)
        return _DECODER.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (*BROKEN, *NOT_JSON, ValueError) as error:
        raise cannot_read(path, error) from error


_DECODER = msgspec.json.Decoder(float_hook=str)


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """A number or a text of a JSON document as text; empty for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 1 << 64 else ""
    return value if isinstance(value, str) else ""
