"""The types of operator that took most time, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import WIDTH, Chart, spec_of
from pipeprof.units import NS_PER_MS, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 15


def chart(rows: Sequence[dict[str, Any]]) -> Chart | None:
    """The first types of op/by_type of one rank; None when no operator was recorded."""
    first = list(rows[:MOST])
    if not first:
        return None
    longest = f"{_name(first[0])} has the most own time"
    said = longest if first[0]["share"] is None else f"{longest}: {format_ratio(first[0]['share'])} of all operators"
    more = f" The first {MOST} of {len(rows)} types." if len(rows) > MOST else ""
    return Chart("chart-operators", "Operators by type", f"{said}.{more}", said, spec_of(_drawn(first), said))


def _name(row: dict[str, Any]) -> str:
    return "(unknown)" if row["type"] is None else line(row["type"])


def _drawn(rows: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    bars = [
        {"type": _name(row), "ms": row["self_ns"] / NS_PER_MS, "phase": line(row["phase"] or "not known")}
        for row in rows
    ]
    return alt.Chart(alt.Data(values=bars), width=WIDTH, height={"step": 20}).mark_bar().encode(
        y=alt.Y("type:N", sort=None, title=None, axis=alt.Axis(labelLimit=160)),
        x=alt.X("ms:Q", title="own time, ms"),
        color=alt.Color("phase:N", title=None),
    )  # fmt: skip
