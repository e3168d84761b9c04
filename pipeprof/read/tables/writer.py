"""Parquet files written piece by piece: a whole table need not be in memory. Their arrays come from NumPy's memory.

pyarrow's own conversions import pandas, which costs time and memory.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.read.tables.rows import RankRows, Rows
from pipeprof.record import limits, store
from pipeprof.record.schema import BY_NAME
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Self

    from pipeprof.read.source.numbers import Bools, Ints
    from pipeprof.record.run import Run


def numbers(values: Ints | Sequence[int], valid: Bools | None = None) -> pa.Array:
    """int64; null where it is not valid."""
    array = np.ascontiguousarray(values, np.int64)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(array), [bits, pa.py_buffer(array)])


def optional(values: Ints | Sequence[int], none: int = -1) -> pa.Array:
    """int64 in which `none` becomes null."""
    array = np.ascontiguousarray(values, np.int64)
    return numbers(array, array != none)


def doubles(bits: Ints) -> pa.Array:
    """Double from its bits."""
    return pa.Array.from_buffers(pa.float64(), len(bits), [None, pa.py_buffer(np.ascontiguousarray(bits))])


def strings(values: Sequence[bytes | str | None]) -> pa.Array:
    """Texts (str, or bytes in UTF-8), null for None."""
    encoded = [value.encode("utf-8", "replace") if isinstance(value, str) else value or b"" for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    valid = pa.py_buffer(np.packbits(np.array([value is not None for value in values], bool), bitorder="little"))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def constant(value: str | None, length: int) -> pa.Array:
    """The same text in every row."""
    return (
        pa.nulls(length, pa.string()) if value is None else strings([value]).take(numbers(np.zeros(length, np.int64)))
    )


def pick(values: pa.Array, at: pa.Array) -> pa.Array:
    """values[at], null where `at` is. As `Array.take`, which imports more."""
    return pa.DictionaryArray.from_arrays(at, values).dictionary_decode()


def tables_of(rows: RankRows) -> Iterator[tuple[str, pa.Table]]:
    """Each table of a rank with all its rows, of which those that are columns are given up then."""
    for table, added in rows.rows.items():
        parts = [_block(table, count, columns) for count, columns in rows.blocks.pop(table, ())]
        if added:
            parts.append(store.arrow(table, list(zip(*added, strict=True))))
        if parts:
            yield table, parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks()


def _block(table: str, count: int, columns: Mapping[str, Any]) -> pa.Table:
    schema = BY_NAME[table].arrow()
    return pa.Table.from_arrays([_column(columns.get(one.name), one.type, count) for one in schema], schema=schema)


def _column(values: Any, wanted: pa.DataType, count: int) -> pa.Array:
    """An array of the wanted type from what `RankRows.add_block` takes."""
    if values is None:
        return pa.nulls(count, wanted)
    column, known = values if isinstance(values, tuple) else (values, None)
    if pa.types.is_string(wanted):
        at = np.asarray(column, np.int64)
        return pick(pa.array(known, wanted), numbers(at, at >= 0))
    if pa.types.is_boolean(wanted):
        return pa.Array.from_buffers(wanted, count, [None, pa.py_buffer(np.packbits(column, bitorder="little"))])
    return numbers(column, known)


ROWS_PER_GROUP = 1 << 15


class TableWriter:
    """One file of one table. It appears under its name when it is closed without an error, if it has any rows."""

    def __init__(self, run: Run, table: str, rep: int, rank: int) -> None:
        self.rows = 0
        self._table = table
        self._most = limits.most_imported_rows()
        self._schema = BY_NAME[table].arrow()
        self._final = store.partition(run, table, rep, rank) / store.part_name(0)
        self._temporary = self._final.with_name(f".{self._final.stem}.{os.getpid()}.tmp")
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Append rows: arrays or sequences of one length; columns that are not given are null.

        Integers may be NumPy arrays, anything else is an Arrow array. Raises RunError when the disk is full,
        SourceError when there are too many rows.
        """
        length = len(next(iter(columns.values())))
        if not length:
            return
        limits.refuse_rows(self._table, self.rows + length, self._most)
        arrays = [_array(columns.get(field.name), field.type, length) for field in self._schema]
        self._waiting.append(pa.Table.from_arrays(arrays, schema=self._schema))
        self._waiting_rows += length
        self.rows += length
        if self._waiting_rows >= ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        rows, self._waiting, self._waiting_rows = pa.concat_tables(self._waiting), [], 0
        try:
            if self._writer is None:
                self._writer = self._open()
            self._writer.write_table(rows, row_group_size=len(rows))
            pa.default_memory_pool().release_unused()  # or the peak creeps up with the length of a file
        except OSError as error:
            raise store.not_written(self._final, error) from error

    def _open(self) -> pq.ParquetWriter:
        self._final.parent.mkdir(parents=True, exist_ok=True)
        numbers = [field.name for field in self._schema if pa.types.is_int64(field.type)]
        few = [name for name in numbers if name in ("op_id", "step", "stack_id")]
        texts = [field.name for field in self._schema if not pa.types.is_int64(field.type)]
        return pq.ParquetWriter(
            str(reachable(self._temporary)), self._schema, compression="zstd", use_dictionary=texts + few,
            column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers if name not in few},
            write_statistics=numbers,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the file, or remove it."""
        failed = kind is not None
        if self._waiting and not failed:
            self._write()
        if self._writer is None:
            return
        try:
            self._writer.close()
            if not failed:
                self._temporary.replace(self._final)
        except OSError as error:
            raise store.not_written(self._final, error) from error
        finally:
            self._temporary.unlink(missing_ok=True)
            self._writer = None


def _array(values: Any, wanted: pa.DataType, length: int) -> pa.Array:
    if values is None:
        return pa.nulls(length, wanted)
    array = values if isinstance(values, pa.Array) else numbers(values)
    return array if array.type.equals(wanted) else array.cast(wanted)


ROWS = 1 << 14  # of a table, that wait
_TIMES = ("t_ns", "start_ns", "end_ns")


class Streamed(Rows):
    """As `Rows`, written piece by piece; times are moved by `by_ns`.

    The files get their names at the end of a `with` block, and only when it ends well.
    """

    def __init__(self, run: Run, rank: int, by_ns: int = 0) -> None:
        super().__init__(0, rank)
        self._run = run
        self._by_ns = by_ns
        self._writers: dict[str, TableWriter] = {}
        self._files = ExitStack()

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each table, those that are written already too."""
        return {table: count for table in {*self.rows, *self._writers} if (count := self.total(table))}

    def total(self, table: str) -> int:
        """Rows that were added to a table."""
        writer = self._writers.get(table)
        return len(self.rows.get(table, ())) + (writer.rows if writer else 0)

    def add(self, table: str, **values: Any) -> None:
        """Append a row; columns that are not given are null. Raises RunError when the disk is full."""
        if self._by_ns:
            values |= {name: values[name] + self._by_ns for name in _TIMES if name in values}
        super().add(table, **values)
        if len(self.rows[table]) >= ROWS:
            self._gather(table)

    def add_columns(self, table: str, columns: Mapping[str, Any], chosen: Bools) -> None:
        """Append the chosen rows by column; columns that are not given are null. Times are not moved."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return
        self._gather(table)
        if count < len(chosen):
            mask = pa.array(chosen)
            columns = {name: column.filter(mask) for name, column in columns.items()}
        self._append(table, columns)

    def _gather(self, table: str) -> None:
        """Rows that wait, to columns."""
        rows = self.rows.pop(table, None)
        if rows:
            data = store.arrow(table, list(zip(*rows, strict=True)))
            self._append(table, {name: data[name].chunk(0) for name in data.column_names})

    def _append(self, table: str, columns: Mapping[str, Any]) -> None:
        if table not in self._writers:
            self._writers[table] = self._files.enter_context(TableWriter(self._run, table, self.rep, self.rank))
        self._writers[table].add(columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._files.__exit__(kind, *error)  # type: ignore[arg-type]
            return
        with self._files:
            for table in list(self.rows):
                self._gather(table)
