"""Tables of load_and_run's options and what they cost, as CSV: one row per variant, variants grouped into tables.

Columns: table_id, row_in_table, variant, options, is_baseline, configure_ms, warmup_first_ms, warmup_second_ms,
inference_ms, and others that stay text. A warm-up cell may hold both steps, `30.1/410.1`; `----` is a step that was not
made. A row is named by its table and its number there: a table may have the same variant twice. Numbers compare within
a table only; two tables may be of two machines.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = ("table_id", "row_in_table", "variant", "is_baseline", "inference_ms")
_FIRST, _SECOND = "warmup_first_ms", "warmup_second_ms"
_STAGES = {"configure_ms": "configure", _FIRST: "warmup_first", _SECOND: "warmup_second", "inference_ms": "steady"}
_NS_PER_MS = 1e6
_NONE = frozenset(["", "-", "--", "---", "----"])


@dataclass(frozen=True)
class Variant:
    """One row: `times` by stage in ns, as far as the table has them; `facts` are the other columns as text.

    `halves`: stage -> half of the last digit of its time, in ns: so much it may be rounded by.
    """

    table: str
    row: int
    name: str
    options: str
    is_baseline: bool
    times: dict[str, float]
    halves: dict[str, float]
    facts: dict[str, str]


def read_option_table(path: Path) -> list[Variant]:
    """Rows in file order. Raises SourceError, with the line, for a missing column or a cell that is no number."""
    try:
        with io.TextIOWrapper(open_file(path, packed=False), encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            _check_columns(path, list(reader.fieldnames or ()))
            rows = [_variant(path, reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"cannot read `{path}`: {getattr(error, 'strerror', '') or error}") from error
    names: set[tuple[str, int]] = set()
    for row in rows:
        if (row.table, row.row) in names:
            raise SourceError(f"two rows of table `{row.table}` in `{path}` have the place {row.row}")
        names.add((row.table, row.row))
    return rows


def _check_columns(path: Path, names: list[str]) -> None:
    """Raises SourceError unless all that is needed is there, and nothing twice."""
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise SourceError(
            f"no column {', '.join(missing)} in `{path}`: found {', '.join(names) or 'nothing'}",
            "expected a table of load_and_run's options",
        )
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise SourceError(f"the column `{double}` is there twice in `{path}`", "remove one, or give it another name")


def _variant(path: Path, line: int, row: dict[str, Any]) -> Variant:
    try:
        cells = _cells(row)
        figures = {stage: cells[name].strip() for name, stage in _STAGES.items() if cells.get(name)}
        figures = {stage: figure for stage, figure in figures.items() if figure not in _NONE}
        times = {stage: _time(figure) * _NS_PER_MS for stage, figure in figures.items()}
        halves = {stage: _half(figure) * _NS_PER_MS for stage, figure in figures.items()}
        number = int(row["row_in_table"])
    except (ValueError, ArithmeticError) as error:
        raise SourceError(f"damaged row in `{path}`, line {line}: {error}") from error
    return Variant(
        table=row["table_id"], row=number, name=row["variant"], options=row.get("options") or "",
        is_baseline=row["is_baseline"] == "1",
        times=times, halves=halves,
        facts={name: text for name, text in row.items() if name not in {*_NEEDED, *_STAGES, "options"}},
    )  # fmt: skip


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """The cells by column, each with one number at most."""
    if None in row or None in row.values():
        raise ValueError("its number of cells is not that of the table's header")
    first, slash, second = (row.get(_FIRST) or "").partition("/")
    if slash and row.get(_SECOND):
        raise ValueError("two numbers for the second warm-up step")
    return row | ({_FIRST: first, _SECOND: second} if slash else {})


def _time(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"expected a time, 0 or more, found {text}")
    return value


def _half(number: str) -> float:
    exponent = Decimal(number).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)
