"""Reads stored tables a row group at a time, and merges them by time in bounded memory."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import RunError
from pipeprof.record import pages
from pipeprof.record.schema import PARTITIONS, TABLES
from pipeprof.record.text import reachable
from pipeprof.report.timeline.clock import FIRST, LAST
from pipeprof.report.timeline.text import NONE, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeprof.record.run import Share

_PIECE = 1 << 17
_LENGTHS = ("dur_ns", "wait_ns")
MOST_ROWS = 1 << 19  # held at one time, 48 bytes each


class Source(NamedTuple):
    """Part of a trace: the files of a table, the columns that are read, and what makes slices of them.

    `columns` begin with the time that the rows are ordered by. No slice begins before the time of its row.
    """

    files: Sequence[Share]
    columns: tuple[str, ...]
    slices: Callable[[pa.Table], Slices]


class Group(NamedTuple):
    """One row group of a file, with the first and last time in it, and one that nothing in it reaches beyond.

    `texts` are read as dictionaries: a long one may be that of every row.
    """

    source: Source
    share: Share
    number: int
    rows: int
    first: int
    last: int
    reach: int
    texts: Sequence[str]

    def read(self) -> pa.Table:
        """The columns of the share, each in one piece; texts as dictionaries. One that the file does not have is null.

        Raises RunError, naming the file, when it is damaged.
        """
        try:
            with pq.ParquetFile(reachable(self.share.path), read_dictionary=self.texts) as file:
                if not self.share.is_compact:
                    return _columns(file, self.number, self.source.columns)
                return _of_rank(_columns(file, self.number, (*self.source.columns, *PARTITIONS)), self.share)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self.share.path, error) from error


def groups(source: Source) -> list[Group]:
    """All row groups of a source. Raises RunError, naming the file, when one is damaged."""
    row_groups = []
    for share in source.files:
        path = share.path
        try:
            with pq.ParquetFile(reachable(path)) as file:
                metadata, schema = file.metadata, file.schema_arrow
            pages.check(metadata, path)
            _check_types(schema, source.columns)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from error
        names = schema.names
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        for number in range(metadata.num_row_groups):
            about = metadata.row_group(number)
            if share.is_compact and not _may_hold(about, names, share):
                continue
            first, last = _extent(about, names, source.columns[0])
            lasting = source.columns[1] if source.columns[1] in _LENGTHS else None
            reach = LAST if lasting is None else last + _extent(about, names, lasting)[1]
            row_groups.append(Group(source, share, number, about.num_rows, first, last, min(reach, LAST), texts))
    return row_groups


def _check_types(schema: pa.Schema, names: Sequence[str]) -> None:
    """Raises ValueError for a column that holds what no table of ours has under that name."""
    for name in names:
        if name in schema.names and name in _types():
            column_type = schema.field(name).type
            if (column_type.value_type if pa.types.is_dictionary(column_type) else column_type) not in _types()[name]:
                raise ValueError(f"the column `{name}` holds {column_type}")


@cache
def _types() -> dict[str, set[pa.DataType]]:
    types: dict[str, set[pa.DataType]] = {}
    for table in TABLES:
        for field in table.arrow():
            types.setdefault(field.name, set()).add(field.type)
    return types


def merged(
    sources: Sequence[Source], first_ns: int, last_ns: int, left_out: Callable[[int], None] = lambda _rows: None
) -> Iterator[Slices]:
    """Slices of all sources that lie, if only in part, between `first_ns` and `last_ns`: by start, the longest first.

    Of equal times the one with the smaller `order` comes first. What ends or begins at an edge lies outside of it.
    Row groups are read by their first time, and a row waits until no row group that is not read yet begins before it:
    little waits when files are nearly in order. When they are not, they are read several times, a window at a time.
    `left_out` is told, once for each row, of rows that have no time or no duration.
    """
    every = sorted((group for source in sources for group in groups(source)), key=lambda group: group.first)
    every = [group for group in every if group.first <= last_ns and group.reach >= first_ns]
    edges = _windows(every)
    for begin, stop in pairwise(edges):
        chosen = [group for group in every if group.last >= begin and group.first < stop]
        for rows in _ordered(chosen, begin, stop, left_out):
            inside = (rows.start < last_ns) & ((rows.start >= first_ns) | (rows.start + rows.dur > first_ns))
            yield rows if inside.all() else rows.take(inside)


def _ordered(chosen: Sequence[Group], begin: int, stop: int, left_out: Callable[[int], None]) -> Iterator[Slices]:
    waiting: list[Slices] = []
    for index, group in enumerate(chosen):
        rows = group.source.slices(group.read())
        timed = (rows.start != NONE) & (rows.dur >= 0)
        if not timed.all():
            if group.first >= begin:  # else an earlier window has read it
                left_out(int((~timed).sum()))
            rows = rows.take(timed)
        if begin > FIRST or stop < LAST:
            rows = rows.take((rows.start >= begin) & (rows.start < stop))
        if len(rows.start):
            waiting.append(rows)
        limit = chosen[index + 1].first if index + 1 < len(chosen) else LAST
        if (
            not waiting
            or min(int(part.start[0]) if _sorted(part) else int(part.start.min()) for part in waiting) >= limit
        ):
            continue
        held = Slices.joined(waiting)
        waiting = []
        if not _sorted(held):
            held = held.take(np.lexsort((held.order, -held.dur, held.start)))
        ready = len(held.start) if limit == LAST else int(np.searchsorted(held.start, limit, "left"))
        for first in range(0, ready, _PIECE):
            yield held.take(slice(first, min(first + _PIECE, ready)))
        waiting = [held.take(slice(ready, None))] if ready < len(held.start) else []


def _sorted(rows: Slices) -> bool:
    later, shorter = np.diff(rows.start), -np.diff(rows.dur)
    if (later < 0).any() or (shorter[later == 0] < 0).any():
        return False
    return bool((np.diff(rows.order)[(later == 0) & (shorter == 0)] >= 0).all())


def _windows(every: Sequence[Group]) -> list[int]:
    """Edges of windows of time such that about MOST_ROWS rows at most have to wait in one of them."""
    begins = np.array([group.first for group in every], np.float64)
    ends = np.array([group.last for group in every], np.float64)
    rows = np.array([group.rows for group in every], np.float64)
    if not len(rows):
        return [FIRST, LAST]
    changes = np.concatenate([rows, -rows])[np.argsort(np.concatenate([begins, ends]), kind="stable")]
    most = float(np.cumsum(changes).max())
    if most <= MOST_ROWS:
        return [FIRST, LAST]
    count = int(rows.sum() / MOST_ROWS) + 1
    grid = np.linspace(begins.min(), ends.max(), 8 * count + 1)
    share = np.array([(rows * np.clip((at - begins) / np.maximum(ends - begins, 1), 0, 1)).sum() for at in grid])
    inner = np.interp(np.linspace(0, rows.sum(), count + 1)[1:-1], share, grid)
    return [FIRST, *sorted({int(edge) for edge in inner}), LAST]


def batches(
    files: Sequence[Share], columns: tuple[str, ...], first: int = FIRST, last: int = LAST
) -> Iterator[pa.Table]:
    """Rows in the order of the files, a row group at a time (see Group.read).

    Row groups that have nothing from `first` to `last` in their first column are left out.
    """
    for group in groups(Source(files, columns, _nothing)):
        if group.first <= last and group.last >= first:
            yield group.read()


def integers(table: pa.Table, name: str, missing: int = 0) -> NDArray[np.int64]:
    """An integer column; null becomes `missing`."""
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(missing)
    values: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return values


def distinct(table: pa.Table, names: Sequence[str]) -> tuple[NDArray[np.int64], list[tuple[object, ...]]]:
    """Number of each row's combination of values, and the combinations by number."""
    combined = np.zeros(table.num_rows, np.int64)
    for name in names:
        column = table.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        combined = combined * (len(column.dictionary) + 1) + codes + 1
    encoded = pa.array(combined).dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64)
    first = np.zeros(len(encoded.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    chosen = table.select(list(names)).take(pa.array(first))
    return numbers, list(zip(*(chosen.column(name).to_pylist() for name in names), strict=True))


def _columns(file: pq.ParquetFile, number: int, wanted: Sequence[str]) -> pa.Table:
    there = set(file.schema_arrow.names)
    table = file.read_row_group(number, columns=[name for name in wanted if name in there], use_threads=False)
    arrays = []
    for name in wanted:
        if name not in there:
            arrays.append(pa.chunked_array([pa.nulls(table.num_rows, pa.int64())]))
            continue
        column = table.column(name)
        arrays.append(column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column)
    return pa.table(arrays, names=list(wanted)).combine_chunks()


def _extent(about: pq.RowGroupMetaData, names: Sequence[str], column: str) -> tuple[int, int]:
    """The least and the most in a column of integers; the whole range when the file does not say."""
    statistics = about.column(names.index(column)).statistics if column in names else None
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else (FIRST, LAST)


def _may_hold(about: pq.RowGroupMetaData, names: Sequence[str], share: Share) -> bool:
    """Whether a row group of a compact file may have rows of a rank, as far as its statistics say."""
    wanted = {"rep": share.rep, "rank": share.rank}
    extents = {name: _extent(about, names, name) for name in PARTITIONS}
    return all(extents[name][0] <= wanted[name] <= extents[name][1] for name in PARTITIONS)


def _of_rank(table: pa.Table, share: Share) -> pa.Table:
    """The rows of one rank, without the columns that say so."""
    mine = pc.and_(pc.equal(table.column("rep"), share.rep), pc.equal(table.column("rank"), share.rank))
    return table.filter(mine).drop_columns(list(PARTITIONS)).combine_chunks()


def _nothing(_table: pa.Table) -> Slices:
    empty = np.zeros(0, np.int64)
    return Slices(empty, empty, empty, empty, empty, empty)


def _damaged(path: Path, error: Exception) -> RunError:
    return RunError(f"damaged file `{path}`: {error}", "collect or import the run again, or restore the file")
