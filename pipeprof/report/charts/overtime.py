"""What was measured over time, one panel below the other on one axis of time; a brush on the last narrows all."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.report.charts.chart import WIDTH, Chart, inline, sentence
from pipeprof.units import NS_PER_MS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

HEIGHT, HEIGHT_OF_STEPS, HEIGHT_OF_ALL = 90, 180, 40
MOST = 4  # times the usual height: what is higher is cut off, or would flatten the rest
# What the brush chose; without one what the two sliders say.
_CHOSEN = (
    "chosen.t && chosen.t[0] < chosen.t[1] ? chosen.t : [min(begin, end), max(begin, end, min(begin, end) + pace)]"
)


class Panel(NamedTuple):
    """One of the charts that share the axis of time."""

    drawn: Any  # Altair, without a width
    said: str  # what it shows
    notes: Sequence[str] = ()  # how it is drawn
    times: Sequence[tuple[float, float]] = ()  # of the first and last sample of what must be seen, s


def seconds(ns: float) -> float:
    """For the axis of time; there are trainings whose steps take microseconds."""
    return round(ns / NS_PER_S, 7)


def across(field: str) -> Any:
    """The shared axis of time, in s."""
    import altair as alt

    return alt.X(f"{field}:Q", title=None, scale=alt.Scale(domainRaw={"expr": _CHOSEN}, nice=False, zero=False))


def chart(
    panels: dict[str, Panel | None], steps: Sequence[Row], absent: Sequence[str], origin: str = "the launch"
) -> Chart:
    """All panels there are, by title; `steps` (of step/trace_curve) are what the brush is drawn over.

    `absent`: sentences about what was not measured. `origin`: what the times count from.
    """
    there = {title: panel for title, panel in panels.items() if panel is not None}
    title = "Over time"
    if not there or not steps:
        return Chart("chart-time", title, " ".join(absent))
    said = ". ".join(f"{name}: {panel.said}" for name, panel in there.items())
    notes = "; ".join(dict.fromkeys([*(note for panel in there.values() for note in panel.notes), *_cut(steps)]))
    how = (
        f"Time is in seconds since {origin}. Drag over the lowest chart, or move the sliders, to see a part of it in "
        f"all the others; drag over all of it to widen them. {sentence(notes) if notes else ''}"
    )
    parts = [sentence(said), how.strip(), *([" ".join(absent)] if absent else [])]
    return Chart("chart-time", title, "\n".join(parts), said, _drawn(there, steps, origin))


def without_those_outside(panels: dict[str, Panel | None], steps: Sequence[Row]) -> list[str]:
    """The panels of which a line has nothing between the first step and the last: they are None from now on."""
    if not steps:
        return []
    ends = [seconds(choose(row[f"{end}_ns"] for row in steps)) for choose, end in ((min, "start"), (max, "end"))]
    outside = [name for name, panel in panels.items() if panel is not None and not _within(panel, *ends)]
    panels.update(dict.fromkeys(outside))
    return outside


def _within(panel: Panel, first: float, last: float) -> bool:
    return all(begin <= last and end >= first for begin, end in panel.times)


def _drawn(panels: dict[str, Panel], steps: Sequence[Row], origin: str) -> Any:
    import altair as alt

    begin, end = min(row["start_ns"] for row in steps), max(row["end_ns"] for row in steps)
    digits = 3 if end - begin >= NS_PER_S else 7
    first, last = (round(ns / NS_PER_S, digits) for ns in (begin, end))
    pace = max(round((last - first) / 500, digits), 10**-digits)
    last = round(last + pace, digits)
    ends = [
        alt.param(
            name=name, value=value,
            bind=alt.binding_range(min=first, max=last, step=pace, name=f"{text}, s "),
        )
        for name, value, text in (("begin", first, "from"), ("end", last, "to"))
    ]  # fmt: skip
    ends.append(alt.param(name="pace", value=pace))
    charts = [
        panel.drawn.properties(
            title=title, width=WIDTH, height=HEIGHT_OF_STEPS if at == 0 and title.startswith("Steps") else HEIGHT
        )
        for at, (title, panel) in enumerate(panels.items())
    ]
    brush = alt.selection_interval(encodings=["x"], name="chosen")
    below = _all(steps, alt.Scale(domain=[first, last], nice=False), origin).add_params(brush)
    return alt.vconcat(*charts, below).add_params(*ends).resolve_scale(color="independent")


def _all(steps: Sequence[Row], scale: Any, origin: str) -> Any:
    """The longest step of each point, to brush over; where one is cut off there is a mark."""
    import altair as alt

    top = _top(steps)
    longest = [
        {"t": seconds(row["max_start_ns"]), "ms": round(min(row["max_ns"], top) / NS_PER_MS, 6)} for row in steps
    ]
    longest.append(longest[-1] | {"t": seconds(steps[-1]["end_ns"])})  # the last, or only, one has a width
    cut = [
        {"t": seconds(row["max_start_ns"] + row["max_ns"] / 2), "ms": top / NS_PER_MS}
        for row in steps
        if row["max_ns"] > top
    ]
    x = alt.X("t:Q", title=f"seconds since {origin}", scale=scale)
    y = alt.Y("ms:Q", title=None, axis=None, scale=alt.Scale(domain=[0, top / NS_PER_MS], nice=False))
    size = {"title": "All of it: drag here", "width": WIDTH, "height": HEIGHT_OF_ALL}
    area = alt.Chart(inline(longest)).mark_area(color="#8888", interpolate="step-after").encode(x=x, y=y)
    if not cut:
        return area.properties(**size)
    marks = alt.Chart(inline(cut)).mark_tick(color="#d7191c", thickness=3, orient="horizontal", size=8)
    return alt.layer(area, marks.encode(x=x, y=y)).properties(**size)


def _cut(steps: Sequence[Row]) -> list[str]:
    top = _top(steps)
    if all(row["max_ns"] <= top for row in steps):
        return []
    return [f"the lowest chart is cut off at {format_ns(top)}, where a red line is a longer step"]


def _top(steps: Sequence[Row]) -> float:
    """Where the lowest chart ends, in ns: one long step, mostly the first, would flatten all others."""
    lengths: list[float] = [row["max_ns"] for row in steps]
    return min(max(lengths), MOST * median(lengths)) or max(*lengths, 1)
