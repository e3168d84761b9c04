"""What a Parquet file unpacks to, as its pages say: to be known before any of them is unpacked.

The footer may say anything. What a reader makes room for is what the head of each page says, and how many values.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.record import limits
from pipeprof.record.plain_file import open_handle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

MOST_OF_GROUP = 1 << 20  # rows of a part of a file, which is read as a whole; no writer of ours makes larger ones
_VALUE = 8  # bytes that a value takes at least when it is read
_KINDS = frozenset(["BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY"])
# PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, DELTA_BINARY_PACKED, RLE_DICTIONARY, BYTE_STREAM_SPLIT. In others a text
# may be a few bytes and the text before it.
_ENCODINGS = frozenset([0, 2, 3, 4, 5, 8, 9])
_SIZE, _PACKED = 2, 3  # fields of a page's head
_HEADS = (5, 7, 8)  # of data, of a dictionary, of data in the second form
_DICTIONARY, _SECOND_FORM = 7, 8
_HEAD_BYTES = (1 << 8, 1 << 20)  # most have fewer than the first; with long statistics no more than the last
_NESTED = 8  # structs in each other
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12


class Part(NamedTuple):
    """A row group: its rows, and the bytes that it takes when all of it is read."""

    rows: int
    bytes: int


def check(file: pq.FileMetaData, path: Path) -> list[Part]:
    """The row groups of a file, by the heads of its pages.

    Raises ValueError for one that is too large to be read and for what no file of ours has, OSError when it is gone.
    """
    handle = open_handle(path)
    try:
        return _parts(file, lambda at, count: os.pread(handle, count, at), os.fstat(handle).st_size)
    finally:
        os.close(handle)


def parts_of_bytes(file: pq.FileMetaData, data: bytes) -> list[Part]:
    """As `check`, of a file that is in memory."""
    return _parts(file, lambda at, count: data[at : at + count], len(data))


def refuse_wide(parts: Sequence[Part], rows: int) -> None:
    """Raises ValueError when row groups that follow each other take too much, of which so many rows are read ahead."""
    most = 2 * limits.most_memory()
    first = ahead = size = 0
    for part in parts:
        ahead, size = ahead + part.rows, size + part.bytes
        while ahead - parts[first].rows > rows:
            ahead, size, first = ahead - parts[first].rows, size - parts[first].bytes, first + 1
        if size > most:
            raise ValueError(f"{ahead:,} rows of it take more than {most >> 20} MiB; {limits.raised_by(limits.MEMORY)}")


def refuse_long_texts(data: pa.Table) -> None:
    """Raises ValueError when texts that are stored once take too much where each row has its own."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.compute as pc  # noqa: PLC0415

    most, size = limits.most_memory(), 0
    for column in data.columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices).cast(pa.int64())
            size += pc.sum(lengths).as_py() or 0
    if size > most:
        raise ValueError(f"its texts take more than {most >> 20} MiB; {limits.raised_by(limits.MEMORY)}")


def _parts(file: pq.FileMetaData, read: Callable[[int, int], bytes], size: int) -> list[Part]:
    most, parts = limits.most_memory(), []
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        if not 0 <= group.num_rows <= MOST_OF_GROUP:
            raise ValueError(f"a part of it holds more than {MOST_OF_GROUP:,} rows")
        unpacked = sum(_chunk(group.column(column), read, size) for column in range(group.num_columns))
        if unpacked > most:
            raise ValueError(f"a part of it unpacks to more than {most >> 20} MiB; {limits.raised_by(limits.MEMORY)}")
        parts.append(Part(group.num_rows, unpacked))
    return parts


def _chunk(about: pq.ColumnChunkMetaData, read: Callable[[int, int], bytes], size: int) -> int:
    """Bytes that one column of a row group takes when it is read."""
    kind = about.physical_type
    if kind not in _KINDS or (kind == "BYTE_ARRAY" and "." in about.path_in_schema):
        raise ValueError(f"its column `{about.path_in_schema}` holds {kind}, which no table has")
    begin, dictionary = about.data_page_offset, about.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < begin:
        begin = dictionary
    end = begin + about.total_compressed_size
    if not 0 <= begin <= end <= size:
        raise ValueError(f"its column `{about.path_in_schema}` lies outside of it")
    unpacked = values = 0
    for head in _heads(read, begin, end, about.num_values):
        form = next((form for form in _HEADS if form in head), 0)
        inner = head.get(form, {})
        encoding = inner.get(4 if form == _SECOND_FORM else 2, 0)
        if encoding not in _ENCODINGS:
            raise ValueError(f"its column `{about.path_in_schema}` is written in a way that no table is ({encoding})")
        unpacked += head[_SIZE]
        values += inner.get(1, 0)
    return int(max(unpacked, _VALUE * max(values, about.num_values)))


def _heads(read: Callable[[int, int], bytes], at: int, end: int, wanted: int) -> Iterator[dict[int, Any]]:
    """The heads of the pages of a column, until they have as many values as are wanted."""
    seen = 0
    while at < end and seen < wanted:
        head, length = _head(read, at)
        _refuse_odd(head)
        packed = head[_PACKED]
        yield head
        seen += max((head[kind].get(1, 0) for kind in _HEADS if kind in head and kind != _DICTIONARY), default=0)
        at += length + packed


def _refuse_odd(head: dict[int, Any]) -> None:
    """Raises ValueError for the head of a page whose sizes, counts and encodings are not what they have to be."""
    if any(not isinstance(head.get(field), int) or head[field] < 0 for field in (_SIZE, _PACKED)):
        raise ValueError("a page of it has no size")
    for inner in (head[form] for form in _HEADS if form in head):
        if not isinstance(inner, dict) or any(not isinstance(inner.get(field, 0), int) for field in (1, 2, 4)):
            raise ValueError("the head of a page of it cannot be read")


def _head(read: Callable[[int, int], bytes], at: int) -> tuple[dict[int, Any], int]:
    for most in _HEAD_BYTES:
        reader = _Reader(read(at, most))
        try:
            return reader.struct(), reader.at
        except (IndexError, RecursionError):
            continue
    raise ValueError("the head of a page of it cannot be read")


class _Reader:
    """Reads Thrift's compact form. Raises IndexError past the end, ValueError for what is none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Values by the numbers of their fields; of texts and lists nothing is kept."""
        if depth > _NESTED:
            raise ValueError("the head of a page of it cannot be read")
        fields: dict[int, Any] = {}
        number = 0
        while mark := self._byte():
            step, kind = mark >> 4, mark & 15
            number = number + step if step else self._integer()
            fields[number] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _BOOLEANS:
            return kind == _BOOLEANS[0]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._skip(self._varint())
        if kind in (_BYTE, _DOUBLE):
            return self._skip(1 if kind == _BYTE else 8)
        if kind in _LISTS:
            mark = self._byte()
            count = mark >> 4 if mark >> 4 != 15 else self._varint()
            for _ in range(count):
                self._value(mark & 15, depth + 1)
            return None
        raise ValueError("the head of a page of it cannot be read")

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("the head of a page of it cannot be read")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
