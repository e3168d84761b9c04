"""Times that SQL has and Python has not: infinity, 24:00:00, years beyond 9999.

Python's own conversion ends with an error that names no column, or shows another time: 24:00:00 as 00:00:00.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import duckdb

from pipeprof.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EPOCH = dt.date(1970, 1, 1)
_FIRST, _LAST = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days  # of Python's calendar, in days
_INFINITE = (1 << 63) - 1


def as_text(rows: pa.Table) -> pa.Table:
    """Copy of the rows with such times as DuckDB's text."""
    for at, field in enumerate(rows.schema):
        if _is_odd(rows.column(at), calendar=True):
            column = rows.select([at]).rename_columns(["value"])
            text = duckdb.from_arrow(column).project("CAST(value AS VARCHAR) AS value").to_arrow_table()
            rows = rows.set_column(at, field.name, text.column(0))
    return rows


def refuse(rows: pa.Table) -> None:
    """Raises QueryError that names the first column with a time that pandas cannot hold; later years it can."""
    for at, name in enumerate(rows.column_names):
        if _is_odd(rows.column(at), calendar=False):
            raise QueryError(
                f"the column `{name}` holds a time that Python has not, such as infinity or 24:00:00",
                "ask for it as text: CAST(... AS VARCHAR)",
            )


def _is_odd(column: pa.ChunkedArray, *, calendar: bool) -> bool:
    """Whether a column holds such a time, in lists and structs too; `calendar`: also a timestamp beyond Python's."""
    return any(_is_beyond(leaf, calendar=calendar) for chunk in column.chunks for leaf in _leaves(chunk))


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The arrays that hold times within an array."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    kind = array.type
    if pa.types.is_temporal(kind):
        yield array
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_struct(kind) or pa.types.is_union(kind):
        for at in range(kind.num_fields):
            yield from _leaves(array.field(at))


def _is_beyond(array: pa.Array, *, calendar: bool) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.compute as pc  # noqa: PLC0415

    kind = array.type
    if not len(array) or not (pa.types.is_date32(kind) or pa.types.is_time64(kind) or pa.types.is_timestamp(kind)):
        return False
    ends = pc.min_max(array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())).as_py()
    least, most = ends["min"], ends["max"]
    if most is None:
        return False
    if pa.types.is_time64(kind):
        return bool(most >= _PER_DAY[kind.unit])
    if pa.types.is_date32(kind):
        return bool(least < _FIRST or most > _LAST)
    if calendar:
        return bool(least < _FIRST * _PER_DAY[kind.unit] or most >= (_LAST + 1) * _PER_DAY[kind.unit])
    return bool(least == -_INFINITE or most == _INFINITE)
