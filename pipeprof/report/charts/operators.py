"""The types of operator that took most time, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, WIDTH, Chart, inline, sentence
from pipeprof.report.charts.op_table import table_of
from pipeprof.report.charts.steps import PHASES
from pipeprof.units import NS_PER_MS, format_count, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 20
UNKNOWN = "not known"
OTHERS = {"mixed": "#8fb8a9", "communication": COLOURS[3]}


def chart(rows: Sequence[dict[str, Any]], instances: Sequence[dict[str, Any]] = ()) -> Chart:
    """The first types of op/by_type of one rank, and below them a table of rows of op/by_instance."""
    title, timed = "Operators by type", [row for row in rows if row["self_ns"] is not None]
    first = timed[:MOST]
    if not first:
        lack = "The time of no operator is known." if rows else "No execution of an operator was recorded."
        return Chart("chart-operators", title, lack, table=table_of(instances))
    longest = f"most own time has {_name(first[0])}"
    said = longest if first[0]["share"] is None else f"{longest}: {format_ratio(first[0]['share'])} of all operators"
    more = f" The first {MOST} of {len(timed)} types are drawn." if len(timed) > MOST else ""
    if len(timed) < len(rows):
        more += f" The time of {format_count(len(rows) - len(timed), 'type')} is not known."
    return Chart("chart-operators", title, sentence(said) + more, said, _drawn(first), table_of(instances))


def _name(row: dict[str, Any]) -> str:
    return "(unknown)" if row["type"] is None else line(row["type"])


def _colour(phase: str) -> str:
    """That of the phase where steps are drawn."""
    return PHASES[phase][1] if phase in PHASES else OTHERS.get(phase, COLOURS[7])


def _drawn(rows: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    bars = [
        {"type": _name(row), "ms": round(row["self_ns"] / NS_PER_MS, 4), "phase": line(row["phase"] or UNKNOWN)}
        for row in rows
    ]
    phases = list(dict.fromkeys(bar["phase"] for bar in bars))
    scale = alt.Scale(domain=phases, range=[_colour(phase) for phase in phases])
    return alt.Chart(inline(bars), width=WIDTH, height={"step": 20}).mark_bar().encode(
        y=alt.Y("type:N", sort=None, title=None, axis=alt.Axis(labelLimit=130)),
        x=alt.X("ms:Q", title="own time, ms"),
        color=alt.Color("phase:N", title="phase", scale=scale),
    )  # fmt: skip
