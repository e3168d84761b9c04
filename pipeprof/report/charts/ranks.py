"""The steps of every rank, as a heat map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from pipeprof.report.charts.chart import Chart, filled, sentence
from pipeprof.report.words.names import INTERVALS
from pipeprof.units import NS_PER_MS, format_count, format_ns

MOST_CELLS = 6000
FAR = 2
MEASURES = {"max_ns": "longest step", "data_wait_ns": INTERVALS["data_wait"]}


def points_for(ranks: int) -> int:
    """Points of each rank for which the chart has a bearable number of cells."""
    return max(min(200, MOST_CELLS // max(ranks, 1)), 2)


def chart(rows: Sequence[dict[str, Any]]) -> Chart:
    """One row for each rank, from rows of step/curve of one repetition."""
    title, ranks = "Steps of every rank", sorted({row["rank"] for row in rows})
    if len(ranks) < 2:
        lacking = "Steps of more than one rank were not recorded, so there is nothing to compare."
        return Chart("chart-ranks", title, lacking)
    slowest = max(rows, key=lambda row: (row["max_ns"], -row["rank"], -row["first_step"]))
    said = (
        f"{format_count(len(ranks), 'rank')}; the longest step is {format_ns(slowest['max_ns'])}, of rank "
        f"{slowest['rank']} near step {slowest['first_kind_step']}; rank {_latest(rows)} takes the most time"
    )
    together = max(row["steps"] for row in rows)
    more = f" A cell stands for up to {together} steps in a row." if together > 1 else ""
    if any(_top(rows, field) < max(_measured(rows, field)) for field in MEASURES if _measured(rows, field)):
        more += f" Colours end at {FAR} times the median; what is longer has the last one."
    return Chart("chart-ranks", title, sentence(said) + more, said, _drawn(rows, len(ranks)))


def _measured(rows: Sequence[dict[str, Any]], field: str) -> list[float]:
    return [row[field] for row in rows if row[field] is not None]


def _top(rows: Sequence[dict[str, Any]], field: str) -> float:
    """Where the colours end, in ns: beside one very long step all others, and what a rank is late, would look alike."""
    times = _measured(rows, field)
    return min(max(times), FAR * median(times) or max(times))


def _latest(rows: Sequence[dict[str, Any]]) -> int:
    spent: dict[int, float] = {}
    for row in rows:
        spent[row["rank"]] = spent.get(row["rank"], 0) + row["dur_ns"] * row["steps"]
    return max(spent, key=lambda rank: (spent[rank], -rank))


def _drawn(rows: Sequence[dict[str, Any]], ranks: int) -> dict[str, Any]:
    cells = [
        {
            "first": row["first_kind_step"],
            "last": row["last_kind_step"] + 1,
            "rank": row["rank"],
            **{name: round(row[field] / NS_PER_MS, 4) for field, name in MEASURES.items() if row[field] is not None},
        }
        for row in rows
    ]
    names = [name for name in MEASURES.values() if any(name in cell for cell in cells)]
    tops = {name: round(_top(rows, field) / NS_PER_MS, 4) for field, name in MEASURES.items() if _measured(rows, field)}
    return filled(
        "ranks", cells=cells, names=names, first=names[0], height=max(12 * ranks, 60),
        end=f"({json.dumps(tops)})[shown]",
    )  # fmt: skip
