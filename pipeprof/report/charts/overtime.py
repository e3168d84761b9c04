"""What was measured over time, one panel below the other on one axis of time; a brush on the last narrows all."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.report.charts.chart import WIDTH, Chart, sentence
from pipeprof.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

HEIGHT, HEIGHT_OF_STEPS, HEIGHT_OF_ALL = 90, 180, 40
# What the brush chose; without one what the two sliders say.
_CHOSEN = "chosen.t && chosen.t[0] < chosen.t[1] ? chosen.t : [min(begin, end), max(begin, end) + 0.001]"


class Panel(NamedTuple):
    """One of the charts that share the axis of time."""

    drawn: Any  # Altair, without a width
    said: str  # what it shows
    notes: Sequence[str] = ()  # how it is drawn


def across(field: str) -> Any:
    """The shared axis of time, in s."""
    import altair as alt

    return alt.X(f"{field}:Q", title=None, scale=alt.Scale(domainRaw={"expr": _CHOSEN}, nice=False, zero=False))


def chart(panels: dict[str, Panel | None], steps: Sequence[Row], absent: Sequence[str]) -> Chart:
    """All panels there are, by title; `steps` (of step/trace_curve) are what the brush is drawn over.

    `absent`: sentences about what was not measured.
    """
    there = {title: panel for title, panel in panels.items() if panel is not None}
    title = "Over time"
    if not there or not steps:
        return Chart("chart-time", title, " ".join(["No step of a training was recorded.", *absent]))
    said = ". ".join(f"{name}: {panel.said}" for name, panel in there.items())
    notes = "; ".join(note for panel in there.values() for note in panel.notes)
    caption = (
        f"{sentence(said)} Time is in seconds since the launch. Drag over the lowest chart, or move the sliders, to "
        "see a part of it in all the others; drag over all of it to widen them."
    )
    return Chart(
        "chart-time", title, " ".join([caption, *([sentence(notes)] if notes else []), *absent]), said,
        _drawn(there, steps),
    )  # fmt: skip


def _drawn(panels: dict[str, Panel], steps: Sequence[Row]) -> Any:
    import altair as alt

    first = round(min(row["start_ns"] for row in steps) / NS_PER_S, 3)
    last = round(max(row["end_ns"] for row in steps) / NS_PER_S + 0.001, 3)
    pace = round(max((last - first) / 500, 0.001), 3)
    ends = [
        alt.param(
            name=name, value=value,
            bind=alt.binding_range(min=first, max=last, step=pace, name=f"{text}, s "),
        )
        for name, value, text in (("begin", first, "from"), ("end", last, "to"))
    ]  # fmt: skip
    charts = [
        panel.drawn.properties(
            title=title, width=WIDTH, height=HEIGHT_OF_STEPS if at == 0 and title.startswith("Steps") else HEIGHT
        )
        for at, (title, panel) in enumerate(panels.items())
    ]
    brush = alt.selection_interval(encodings=["x"], name="chosen")
    longest = [
        {"t": round(row["max_start_ns"] / NS_PER_S, 4), "ms": round(row["max_ns"] / NS_PER_MS, 4)} for row in steps
    ]
    below = (
        alt.Chart(alt.Data(values=longest), title="All of it: drag here", width=WIDTH, height=HEIGHT_OF_ALL)
        .mark_area(color="#8888", interpolate="step")
        .encode(
            x=alt.X("t:Q", title="time, s", scale=alt.Scale(domain=[first, last], nice=False)),
            y=alt.Y("ms:Q", title=None, axis=None, scale=alt.Scale(domain=[0, top_ms(steps)], nice=False, clamp=True)),
        )
        .add_params(brush)
    )
    return alt.vconcat(*charts, below).add_params(*ends).resolve_scale(color="independent")


def top_ms(rows: Sequence[Row]) -> float:
    """Where the axis ends, in ms: far steps are marked at its end, so that the others are not flat."""
    usual: float = median(row["dur_ns"] for row in rows)
    longest: float = max(row["max_ns"] for row in rows)
    return round(min(longest, 4 * usual) * 1.05 / NS_PER_MS, 4) or 1
