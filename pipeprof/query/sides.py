"""Both sides of a comparison as the tables `side_measure` and `side_fact`, so that SQL can ask how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from pipeprof.query.engine import Engine
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        {"side": side, "metric": metric, "rep": rep, "rank": 0, "value": value}
        for side, measures in sides.items()
        for metric, values in measures.values.items()
        for rep, value in values.items()
    ]
    return pa.Table.from_pylist(rows, _schema(metric=pa.string(), value=pa.float64()))


def _facts(sides: Mapping[str, Measures]) -> pa.Table:
    rows = [
        {"side": side, "name": name, "rep": 0, "rank": 0, "value": text}
        for side, measures in sides.items()
        for name, text in measures.facts.items()
    ]
    return pa.Table.from_pylist(rows, _schema(name=pa.string(), value=pa.string()))


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({"side": pa.string(), "rep": pa.int64(), "rank": pa.int64(), **columns})
