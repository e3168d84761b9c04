"""The facts of both sides of a comparison as the table `side_fact`, so that SQL can ask how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipeprof.query.engine import Engine
from pipeprof.read.tables.writer import numbers, strings

if TYPE_CHECKING:
    from pipeprof.record.measures import Measures


def engine_of(base: Measures, new: Measures) -> Engine:
    """An engine over the two sides. Close it, or use it in a `with`."""
    sides = {"base": base, "new": new}
    rows = [(side, 0, 0, name, text) for side, measures in sides.items() for name, text in measures.facts.items()]
    which, reps, ranks, names, texts = list(zip(*rows, strict=True)) or [()] * 5
    columns = [strings(which), numbers(reps), numbers(ranks), strings(names), strings(texts)]
    return Engine.of_tables({"side_fact": pa.Table.from_arrays(columns, ["side", "rep", "rank", "name", "value"])})
