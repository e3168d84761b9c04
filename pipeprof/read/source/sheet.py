"""CSV files of others: rows by column name, and blocks of lines for Arrow."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from pipeprof.errors import SourceError
from pipeprof.read.source.content import BROKEN, HINT, cannot_read
from pipeprof.record.plain_file import open_file

FIELD_BYTES = 1 << 24  # a step's links, or a call stack, are one field
csv.field_size_limit(max(FIELD_BYTES, csv.field_size_limit()))


def line_blocks(path: Path, size: int) -> Iterator[bytes]:
    """Whole lines, about `size` bytes at a time: what is not UTF-8 is replaced, a mark in front is left out.

    Raises one of BROKEN, and SourceError for a line of `FIELD_BYTES` or more.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = b""
    with open_file(path) as file:
        while data := file.read(size):
            rest += decoder.decode(data).encode("utf-8", "replace")
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) >= FIELD_BYTES:
                raise _too_long(path)
    if rest := rest + decoder.decode(b"", final=True).encode("utf-8", "replace"):
        yield rest


def _too_long(path: Path) -> SourceError:
    return SourceError(f"`{path}` has a line of {FIELD_BYTES >> 20} Mi characters or more", HINT)


class Sheet:
    """A CSV file: column names, then rows with their line numbers. Rows may be shorter than the header."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = io.TextIOWrapper(open_file(path), encoding="utf-8-sig", errors="replace", newline="")
        except BROKEN as error:
            raise cannot_read(path, error) from error
        self._reader = csv.reader(_lines(self._file, path), skipinitialspace=True)
        try:
            self.names = [name.strip() for name in next(self._raw(), (0, []))[1]]
        except SourceError:
            self.close()
            raise
        if not self.names:
            self.close()
            raise SourceError(f"`{path}` is empty, expected a header", HINT)

    def index(self, *names: str) -> int | None:
        """Position of the first of these columns that there is."""
        return next((self.names.index(name) for name in names if name in self.names), None)

    def need(self, *names: str) -> int:
        """As `index`. Raises SourceError when none of them is there."""
        index = self.index(*names)
        if index is None:
            self.close()
            raise SourceError(f"no column `{names[0]}` in `{self.path}`, found {', '.join(self.names[:12])}", HINT)
        return index

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

    def _raw(self) -> Iterator[tuple[int, list[str]]]:
        try:
            for row in self._reader:
                yield self._reader.line_num, row
        except (csv.Error, *BROKEN) as error:
            raise cannot_read(self.path, error, f", line {self._reader.line_num}") from error


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file. Not a method: a sheet that refers to itself would keep its file open until a collection."""
    while line := file.readline(FIELD_BYTES):
        if len(line) == FIELD_BYTES:
            raise _too_long(path)
        yield line


def field(row: Sequence[str], index: int | None) -> str:
    """A field of a row; empty when its column is not there."""
    return "" if index is None or index >= len(row) else row[index].strip()
