"""Rows of any query to a table, CSV or JSON on stdout."""

from __future__ import annotations

import csv
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pipeprof.query.engine import Engine
from pipeprof.report.output import PLAIN_WIDTH
from pipeprof.report.sections import Block
from pipeprof.report.terminal import print_block

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeprof.record.run import Run

MOST_ROWS = 1000
CONTENTS = (
    "SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) AS columns "
    "FROM information_schema.columns GROUP BY table_name ORDER BY table_name"
)


def show(run: Run, query: str | None, form: str) -> None:
    """Print the rows of a query over a run; of the list of its tables and views when there is none."""
    with Engine.open(run) as engine:
        show_rows(engine.sql(query or CONTENTS), form)


def show_rows(data: pa.Table, form: str) -> None:
    """Print rows as `table` (at most 1000), `csv` or `json` (a list of objects; NaN and infinities as null)."""
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(data.column_names)
        for batch in data.to_batches():
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    elif form == "json":
        json.dump(
            [{name: _plain(value) for name, value in row.items()} for row in data.to_pylist()], sys.stdout, default=str
        )
        sys.stdout.write("\n")
    else:
        _table(data)


def _table(data: pa.Table) -> None:
    rows = data.slice(0, MOST_ROWS).to_pylist()
    numbers = frozenset(
        index
        for index, field in enumerate(data.schema)
        if str(field.type).startswith(("int", "double", "float", "decimal"))
    )
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    print_block(console, Block(data.column_names, cells, numbers))
    more = data.num_rows - len(rows)
    console.print(f"{data.num_rows} row(s)" + (f", {more} not shown: use --format csv" if more else ""))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
