"""Operator tables as CSV and Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.ops.content import with_integers
from pipeprof.report.rows import csv_text as rows_as_csv

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipeprof.report.ops.content import Content

_HIDDEN = ("side_ns", "all_ns")


def csv_text(content: Content) -> str:
    """One line per row; of all parts, one below the other, told apart by the column `side`."""
    rows = _flat(content)
    return rows_as_csv(_columns(rows), rows)


def arrow(content: Content) -> pa.Table:
    """The rows as an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import; texts do without

    rows = _flat(content)
    return pa.table({name: _column([row.get(name) for row in rows]) for name in _columns(rows)})


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)


def _flat(content: Content) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in with_integers(row).items() if name not in _HIDDEN}
        for part in content.parts
        for row in part.rows
    ]
