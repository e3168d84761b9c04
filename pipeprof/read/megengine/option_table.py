"""Tables of load_and_run's options and what they cost, as CSV: one row per variant, variants grouped into tables.

Columns: table_id, row_in_table, variant, options, is_baseline, configure_ms, warmup_first_ms, warmup_second_ms,
inference_ms, and others that are kept as text. A row is known by its table and its place in it: a table may have the
same variant twice. Numbers compare within a table only; two tables may be of two machines.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.source.content import open_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NEEDED = ("table_id", "row_in_table", "variant", "is_baseline", "inference_ms")
_NUMBERS = ("configure_ms", "warmup_first_ms", "warmup_second_ms", "inference_ms")


@dataclass(frozen=True)
class Variant:
    """One row: times in ms, None where the table has none; `facts` are the other columns as text."""

    table: str
    row: int
    name: str
    options: str
    is_baseline: bool
    configure_ms: float | None
    warmup_first_ms: float | None
    warmup_second_ms: float | None
    inference_ms: float | None
    facts: dict[str, str]


def read_option_table(path: Path) -> list[Variant]:
    """Rows in file order. Raises SourceError, with the line, for a missing column or a cell that is no number."""
    try:
        with io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise SourceError(
                    f"no column {', '.join(missing)} in `{path}`: found {', '.join(reader.fieldnames or ['nothing'])}",
                    "expected a table of load_and_run's options",
                )
            return _told_apart([_variant(path, reader.line_num, row) for row in reader], path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"cannot read `{path}`: {error}") from error


def _told_apart(rows: list[Variant], path: Path) -> list[Variant]:
    known: set[tuple[str, int]] = set()
    for row in rows:
        if (row.table, row.row) in known:
            raise SourceError(f"two rows of table `{row.table}` in `{path}` have the place {row.row}")
        known.add((row.table, row.row))
    return rows


def speedups(variants: list[Variant]) -> dict[tuple[str, int], float]:
    """Baseline's inference time / the variant's, by (table, row); rows of tables without one baseline are left out."""
    found = {}
    for table in {variant.table for variant in variants}:
        rows = [variant for variant in variants if variant.table == table]
        bases = [row.inference_ms for row in rows if row.is_baseline and row.inference_ms]
        if len(bases) == 1:
            found.update({(table, row.row): bases[0] / row.inference_ms for row in rows if row.inference_ms})
    return found


def _variant(path: Path, line: int, row: dict[str, str]) -> Variant:
    try:
        check_cells(row)
        numbers = {name: _time(row[name]) if row.get(name) else None for name in _NUMBERS}
        place = int(row["row_in_table"])
    except (TypeError, ValueError) as error:
        raise SourceError(f"damaged row in `{path}`, line {line}: {error}") from error
    known = {*_NEEDED, *_NUMBERS, "options"}
    facts = {name: text for name, text in row.items() if name and name not in known and isinstance(text, str)}
    return Variant(
        table=row["table_id"],
        row=place,
        name=row["variant"],
        options=row.get("options") or "",
        is_baseline=row["is_baseline"] == "1",
        facts=facts,
        **numbers,
    )


def check_cells(row: Mapping[Any, Any]) -> None:
    """Raises ValueError for a row of `csv.DictReader` with fewer or more cells than the head of the table."""
    if None in row or None in row.values():
        raise ValueError("its number of cells is not that of the table's header")


def _time(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"expected a time, 0 or more, found {text}")
    return value
