"""The facts of both sides of a comparison as the table `side_fact`, so that SQL can ask how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipeprof.query.engine import Engine

if TYPE_CHECKING:
    from pipeprof.record.measures import Measures


def engine_of(base: Measures, new: Measures) -> Engine:
    """An engine over the two sides. Close it, or use it in a `with`."""
    sides = {"base": base, "new": new}
    rows = [(side, 0, 0, name, text) for side, measures in sides.items() for name, text in measures.facts.items()]
    schema = pa.schema(
        {"side": pa.string(), "rep": pa.int64(), "rank": pa.int64(), "name": pa.string(), "value": pa.string()}
    )
    parts = list(zip(*rows, strict=True)) or [()] * len(schema)
    given = pa.Table.from_arrays(
        [pa.array(part, kind) for part, kind in zip(parts, schema.types, strict=True)], schema=schema
    )
    return Engine.of_tables({"side_fact": given})
