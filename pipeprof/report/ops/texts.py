"""Operator tables as CSV, Arrow, and as the wiki tables that profile_analyze calls --confluence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.report.ops import cells
from pipeprof.report.ops.content import with_integers
from pipeprof.report.rows import csv_text as rows_as_csv

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipeprof.report.ops.content import Content, Part

_BAR = 15
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


def wiki_text(content: Content) -> str:
    """profile_analyze's --confluence: seconds, mega-operations, mebibytes, and bars scaled to the largest row shown."""
    lines: list[str] = []
    if content.summary:
        summary = [[name, _general(_seconds(value))] for name, value in content.summary.items()]
        lines += _table(["name", "value"], summary)
    for part in content.parts:
        lines += ["", *_table(*_wiki(part, aggregated=content.aggregated))]
    return "\n".join(lines).strip("\n") + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *(map(escape.wiki, row) for row in rows))
    ]


def _wiki(part: Part, *, aggregated: bool) -> tuple[Sequence[str], list[list[str]]]:
    named = ["opr type", "opr count"] if aggregated else ["opr name", "opr type"]
    head = [
        "#", "time", "ratio", "time bar", "cum-time", "cum-time ratio", *named, "opr id", "computation (MFLO)",
        "MFLOPS", "MFLOPS-bar", "memory (MB)", "bandwidth (MiB/s)", "bandwidth bar", "in_shapes", "out_shapes",
    ]  # fmt: skip
    most = {
        name: max((row[name] or 0.0 for row in part.rows), default=0.0) for name in ("self_ns", "flops", "bandwidth")
    }
    rows = []
    for row in part.rows:
        words = [row["type"], str(row["count"])] if aggregated else [row["name"], row["type"]]
        rows.append(
            [
                str(row["position"] - 1),
                _general(_seconds(row["self_ns"]), 3),
                cells.NOT_KNOWN if row["share"] is None else f"{row['share'] * 100:.1f}%",
                _bar(row["self_ns"], most["self_ns"]),
                _general(_seconds(row["cumulative_ns"])),
                _general(row["cumulative_share"]),
                *(word or cells.NOT_KNOWN for word in words),
                row["opr_id"] or cells.NOT_KNOWN,
                _tenths(row["computation"], 1e6),
                _tenths(row["flops"], 1e6),
                _bar(row["flops"], most["flops"]),
                _tenths(row["memory"], 1024.0**2),
                _tenths(row["bandwidth"], 1024.0**2),
                _bar(row["bandwidth"], most["bandwidth"]),
                ", ".join(cells.shapes(row["in_shapes"], row["in_strides"])),
                ", ".join(cells.shapes(row["out_shapes"])),
            ]
        )
    return head, rows


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e9


def _general(value: float | None, digits: int = 6) -> str:
    return cells.NOT_KNOWN if value is None else f"{value:.{digits}g}"


def _tenths(value: float | None, divisor: float) -> str:
    return _general(None if value is None else round(value / divisor, 1))


def _bar(value: float | None, most: float) -> str:
    return "#" * int((value or 0.0) / most * _BAR) if most > 0 else ""
