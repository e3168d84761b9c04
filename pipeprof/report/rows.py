"""Rows of any query on stdout: as a table, CSV or JSON; and the CSV of any report."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.errors import QueryError
from pipeprof.query import odd_times
from pipeprof.query.engine import Engine
from pipeprof.report.sections import Block
from pipeprof.report.table import print_block, print_drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from rich.console import Console

    from pipeprof.record.run import Run

MOST_ROWS = 100  # on a terminal; files and pipes get all
SHOWS_ALL = "--format csv"
_NUMBERS = ("int", "uint", "double", "float", "halffloat", "decimal")
CONTENTS = (
    "SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) AS columns "
    "FROM information_schema.columns GROUP BY table_name ORDER BY table_name"
)


def show(run: Run, query: str | None, form: str, *, asking: AbstractContextManager[None] | None = None) -> None:
    """Print the rows of a query over a run; of the list of its tables and views when there is none.

    `asking` is around the question, and not around the printing, which waits for whoever reads.
    """
    with Engine.open(run, lazily=True) as engine:
        with asking or nullcontext():
            data = engine.sql(query or CONTENTS)
        show_rows(data, form)


def show_rows(data: pa.Table, form: str) -> None:
    """Print rows as `terminal`, `csv` or `json` (a list of objects; NaN and infinities as null)."""
    data = odd_times.as_text(data)
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(escape.csv_cell, data.column_names))
        for batch in data.to_batches():
            columns = (map(escape.csv_cell, column.to_pylist()) for column in batch.columns)
            writer.writerows(zip(*columns, strict=True))
    elif form == "json":
        _refuse_same_names(data.column_names)
        plain = [{name: _plain(value) for name, value in row.items()} for row in data.to_pylist()]
        sys.stdout.write(escape.json(json.dumps(plain, default=str)) + "\n")
    else:
        print_drawn(lambda console: _print(console, data))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A line for each row, below the columns; what is not known is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: escape.csv_cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _refuse_same_names(names: list[str]) -> None:
    """Raises QueryError for columns of one name, of which an object of JSON would keep the last alone."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise QueryError(f"two columns are called `{twice}`", "give them names of their own with AS, or --format csv")


def _print(console: Console, data: pa.Table) -> None:
    shown = data.slice(0, MOST_ROWS) if console.is_terminal else data
    columns = [["" if value is None else str(value) for value in column.to_pylist()] for column in shown.columns]
    numbers = frozenset(at for at, field in enumerate(data.schema) if str(field.type).startswith(_NUMBERS))
    rows = [list(cells) for cells in zip(*columns, strict=True)]
    print_block(console, Block(data.column_names, rows, numbers), shows_all=SHOWS_ALL)
    console.print()
    if shown.num_rows < data.num_rows:
        console.print(f"{shown.num_rows} of {data.num_rows:,} rows; {SHOWS_ALL} shows all")
    else:
        console.print(f"{data.num_rows:,} row" + ("" if data.num_rows == 1 else "s"))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
