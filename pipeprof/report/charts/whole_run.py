"""The whole run of one rank in parts, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import Chart, filled, sentence
from pipeprof.report.words.run_account import PARTS
from pipeprof.units import NS_PER_S, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]


def chart(rows: Sequence[Row]) -> Chart:
    """From rows of run/account of one rank: a bar for each part of the run, in the order of time."""
    title, parts = "The whole run", parts_of(rows)
    total = sum(part["ns"] for part in parts)
    if not total or all(row["part"] == "not_recorded" for row in rows):
        return Chart("chart-run", title, "What the run as a whole was spent on was not recorded.")
    largest = max(parts, key=lambda part: part["ns"])
    said = (
        f"of {format_ns(total)} from the launch to the end, {largest['part']} took "
        f"{format_ratio(largest['ns'] / total)}"
    )
    return Chart("chart-run", title, sentence(said), said, _drawn(parts))


def parts_of(rows: Sequence[Row]) -> list[Row]:
    """`{part, ns}`: the time of each part, in the order in which they began; they add up to the run."""
    spent: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row["start_ns"] is None, row["start_ns"] or 0)):
        name = line(PARTS.get(row["part"]) or row["part"])
        spent[name] = spent.get(name, 0) + row["dur_ns"]
    return [{"part": name, "ns": length} for name, length in spent.items()]


def _drawn(parts: Sequence[Row]) -> Row:
    bars = [
        {"part": part["part"], "s": round(part["ns"] / NS_PER_S, 4), "label": format_ns(part["ns"])} for part in parts
    ]
    return filled("whole_run", bars=bars, end=max(bar["s"] for bar in bars) * 1.2)
