"""The types of operator that took most time, as bars, and the share of each as a ring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import COLOURS, WIDTH, Chart, cut, inline, sentence, time_unit
from pipeprof.report.charts.op_table import table_of
from pipeprof.report.charts.steps import PHASES
from pipeprof.units import format_count, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

TITLE = "Operators by type"
MOST = 20
SLICES = len(COLOURS) - 1  # of the ring; the last colour is for all other types
LETTERS = 26  # of a name in its legend, which a narrow page has room for
UNKNOWN = "not known"
OTHERS = {"mixed": "#8fb8a9", "communication": COLOURS[3]}


def chart(rows: Sequence[dict[str, Any]], instances: Sequence[dict[str, Any]] = (), title: str = TITLE) -> Chart:
    """The first types of op/by_type of one rank, and below them a table of rows of op/by_instance."""
    timed = [row for row in rows if row["self_ns"] is not None]
    first = timed[:MOST]
    if not first:
        lack = "The time of no operator is known." if rows else "No execution of an operator was recorded."
        return Chart("chart-operators", title, lack, table=table_of(instances))
    longest = f"most own time has {_name(first[0])}"
    said = longest if first[0]["share"] is None else f"{longest}: {format_ratio(first[0]['share'])} of all operators"
    more = "" if title != TITLE else " Executions in training steps count."
    more += f" The first {MOST} of {len(timed)} types are drawn." if len(timed) > MOST else ""
    if len(timed) < len(rows):
        more += f" The time of {format_count(len(rows) - len(timed), 'type')} is not known."
    return Chart("chart-operators", title, sentence(said) + more, said, _drawn(first, timed), table_of(instances))


def _name(row: dict[str, Any]) -> str:
    return "(unknown)" if row["type"] is None else line(row["type"])


def _colour(phase: str) -> str:
    """That of the phase where steps are drawn."""
    return PHASES[phase][1] if phase in PHASES else OTHERS.get(phase, COLOURS[7])


def slices(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ring: label and share (0..1) of the first SLICES of rows with a time, then of all others; no time, none."""
    parts = [(_name(row), row["self_ns"]) for row in rows[:SLICES]]
    rest = rows[SLICES:]
    if rest:
        parts.append((format_count(len(rest), "other type"), sum(row["self_ns"] for row in rest)))
    total = sum(own for _, own in parts)
    return [
        {"place": index, "label": f"{cut(name, LETTERS)} {format_ratio(own / total)}", "share": round(own / total, 6)}
        for index, (name, own) in enumerate(parts)
        if total
    ]


def _drawn(rows: Sequence[dict[str, Any]], timed: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    ring = slices(timed)
    return alt.vconcat(_bars(rows), _ring(ring)).resolve_scale(color="independent") if ring else _bars(rows)


def _ring(parts: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    places, labels = [part["place"] for part in parts], json.dumps([part["label"] for part in parts])
    colours = [*COLOURS[: len(parts) - 1], COLOURS[-1]] if len(parts) > SLICES else list(COLOURS[: len(parts)])
    return alt.Chart(inline(parts), width=WIDTH, height=180).mark_arc(innerRadius=45, outerRadius=85).encode(
        theta=alt.Theta("share:Q", stack=True),
        order="place:Q",
        color=alt.Color(
            "place:N", title="share of all own time", scale=alt.Scale(domain=places, range=colours),
            legend=alt.Legend(labelExpr=f"{labels}[datum.value]"),
        ),
        description="label:N",
    )  # fmt: skip


def _bars(rows: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    unit, size = time_unit(max(row["self_ns"] for row in rows))
    bars = [
        {"type": _name(row), "own": round(row["self_ns"] / size, 4), "phase": line(row["phase"] or UNKNOWN)}
        for row in rows
    ]
    phases = list(dict.fromkeys(bar["phase"] for bar in bars))
    scale = alt.Scale(domain=phases, range=[_colour(phase) for phase in phases])
    return alt.Chart(inline(bars), width=WIDTH, height={"step": 20}).mark_bar().encode(
        y=alt.Y("type:N", sort=None, title=None, axis=alt.Axis(labelLimit=130)),
        x=alt.X("own:Q", title=f"own time, {unit}"),
        color=alt.Color("phase:N", title="phase", scale=scale),
    )  # fmt: skip
