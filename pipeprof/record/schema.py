"""The record: every table, column, type and unit, as `tables.txt` says it. The table reference page is made from it.

`table: what a row is` stands before its columns, which are written as in the headers of queries: two or more spaces
between name, type, unit (where there is one) and meaning, and a deeper line goes on with the meaning above it.
`from TABLE: COLUMN` stands for that column of an earlier table and all behind it.

Times are int64 ns since the repetition's zero (the launch of the command). Unknown is null, never 0. Every table
also has the columns `rep` and `rank` (bigint), which come from the folder names (`rep=0/rank=0`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1

PARTITIONS = ("rep", "rank")


class Column(NamedTuple):
    """One column: its SQL type (bigint, double, varchar, boolean), unit and meaning."""

    name: str
    type: str
    unit: str
    doc: str


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names without the partition columns."""
        return tuple(column.name for column in self.columns)

    def arrow(self) -> pa.Schema:
        """The Arrow schema of a stored file (without `rep` and `rank`)."""
        import pyarrow as pa  # noqa: PLC0415 - the launcher imports this module and must stay light

        types = {"bigint": pa.int64(), "double": pa.float64(), "varchar": pa.string(), "boolean": pa.bool_()}
        return pa.schema([pa.field(column.name, types[column.type]) for column in self.columns])


def _read(text: str) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for block in text.split("\n\n"):
        head, *lines = re.sub(r"\n {3,}", " ", block.strip()).split("\n")
        name, _, row = head.partition(": ")
        columns: list[Column] = []
        for line in lines:
            if line.startswith("  from "):
                other, _, first = line.split(maxsplit=1)[1].partition(": ")
                known = tables[other]
                columns += known.columns[known.column_names.index(first) :]
            else:
                column, kind, *unit, doc = re.split(" {2,}", line.strip())
                columns.append(Column(column, kind, "".join(unit), doc))
        tables[name] = Table(name, row, tuple(columns))
    return tables


BY_NAME = _read(Path(__file__).with_name("tables.txt").read_text(encoding="utf-8"))
TABLES = tuple(BY_NAME.values())
