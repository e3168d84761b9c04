"""The length of the steps of every rank, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.charts.chart import WIDTH, Chart, spec_of
from pipeprof.units import NS_PER_MS, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

POINTS = 200


def chart(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """One row for each rank, from rows of step/curve of one repetition; None with fewer than two ranks."""
    ranks = {row["rank"] for row in rows}
    if len(ranks) < 2:
        return None
    slowest = max(rows, key=lambda row: (row["max_ns"], -row["rank"], -row["first_step"]))
    longest = f"the longest step is {format_ns(slowest['max_ns'])}, of rank {slowest['rank']}"
    said = f"{format_count(len(ranks), 'rank')}; {longest}"
    thinned = max(row["steps"] for row in rows)
    more = f" A cell is the longest of up to {thinned} steps in a row." if thinned > 1 else ""
    return Chart("chart-ranks", "Steps of every rank", f"{said}.{more}", said, spec_of(_drawn(rows, len(ranks)), said))


def _drawn(rows: Sequence[dict[str, Any]], ranks: int) -> Any:
    import altair as alt

    cells = [
        {
            "first": row["first_step"],
            "last": row["last_step"] + 1,
            "rank": row["rank"],
            "ms": round(row["max_ns"] / NS_PER_MS, 4),
        }
        for row in rows
    ]
    return alt.Chart(alt.Data(values=cells), width=WIDTH, height=max(12 * ranks, 60)).mark_rect().encode(
        x=alt.X("first:Q", title="step", scale=alt.Scale(nice=False)), x2="last:Q",
        y=alt.Y("rank:O", title="rank"),
        color=alt.Color("ms:Q", title="longest step, ms"),
    )  # fmt: skip
