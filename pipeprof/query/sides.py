"""Both sides of a comparison as the tables `side_measure` and `side_fact`, so that SQL can ask how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from pipeprof.query.engine import Engine
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.record.measures import Measures


def engine_of(base: Measures, new: Measures) -> Engine:
    """An engine over the two sides. Close it, or use it in a `with`."""
    sides = {"base": base, "new": new}
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    for name, rows in (("side_measure", _measures(sides)), ("side_fact", _facts(sides))):
        connection.register("given", rows)
        columns = ", ".join(
            f'CAST("{column.name}" AS {column.type}) AS "{column.name}"' for column in BY_NAME[name].columns
        )
        connection.execute(f'CREATE TABLE "{name}" AS SELECT rep, rank, {columns} FROM given')  # noqa: S608 - names of the schema
        connection.unregister("given")
    return Engine(connection, None)


def _measures(sides: Mapping[str, Measures]) -> pa.Table:
    rows = [
        (side, rep, 0, metric, value)
        for side, measures in sides.items()
        for metric, values in measures.values.items()
        for rep, value in values.items()
    ]
    return _table(rows, metric=pa.string(), value=pa.float64())


def _facts(sides: Mapping[str, Measures]) -> pa.Table:
    rows = [(side, 0, 0, name, text) for side, measures in sides.items() for name, text in measures.facts.items()]
    return _table(rows, name=pa.string(), value=pa.string())


def _table(rows: Sequence[tuple[Any, ...]], **columns: pa.DataType) -> pa.Table:
    """Rows of side, rep, rank and two `columns`."""
    schema = pa.schema({"side": pa.string(), "rep": pa.int64(), "rank": pa.int64(), **columns})
    parts = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(part, kind) for part, kind in zip(parts, schema.types, strict=True)], schema=schema
    )
