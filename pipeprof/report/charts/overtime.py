"""What was measured over time, one panel below the other on one axis of time; a brush on the last narrows all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from pipeprof.report.charts.chart import Chart, coloured, filled, sentence
from pipeprof.units import NS_PER_MS, NS_PER_S, format_ns

Row = dict[str, Any]

WIDTH, HEIGHT, HEIGHT_OF_STEPS = 800, 90, 180  # px; the page makes a chart as wide as its column
MOST = 4  # times the usual height: what is higher is cut off, or would flatten the rest
# The shared axis of time, in s: what the brush chose; without one what the two sliders say.
ALONG = {
    "domainRaw": {
        "expr": "chosen.t && chosen.t[0] < chosen.t[1] ? chosen.t : "
        "[min(begin, end), max(begin, end, min(begin, end) + pace)]"
    },
    "nice": False,
    "zero": False,
}
OWN = {"nice": False, "zero": False}  # the axis of a panel by itself
TIMELINE = "Single executions and spans are on the timeline that `pipeprof timeline` writes for Perfetto."


class Panel(NamedTuple):
    """One of the charts that share the axis of time."""

    drawn: Row  # Vega-Lite, without a width
    said: str  # what it shows
    notes: Sequence[str] = ()  # how it is drawn
    times: Sequence[tuple[float, float]] = ()  # of the first and last sample of what must be seen, s
    params: Sequence[Row] = ()  # that it is drawn by: switches below the chart


def seconds(ns: float) -> float:
    """For the axis of time; there are trainings whose steps take microseconds."""
    return round(ns / NS_PER_S, 7)


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
        f"all the others; drag over all of it to widen them. {sentence(notes) if notes else ''} {TIMELINE}"
    )
    parts = [sentence(said), " ".join(how.split()), *([" ".join(absent)] if absent else [])]
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


def _drawn(panels: dict[str, Panel], steps: Sequence[Row], origin: str) -> Row:
    begin, end = min(row["start_ns"] for row in steps), max(row["end_ns"] for row in steps)
    digits = 3 if end - begin >= NS_PER_S else 7
    first, last = (round(ns / NS_PER_S, digits) for ns in (begin, end))
    pace = max(round((last - first) / 500, digits), 10**-digits)
    below = filled(
        "time", first=first, last=round(last + pace, digits), pace=pace, since=f"seconds since {origin}",
        top=_top(steps) / NS_PER_MS, **_all(steps, _top(steps)),
    )  # fmt: skip
    charts = [
        {**panel.drawn, "title": title, "width": WIDTH,
         "height": HEIGHT_OF_STEPS if at == 0 and title.startswith("Steps") else HEIGHT}
        for at, (title, panel) in enumerate(panels.items())
    ]  # fmt: skip
    params = [*below["params"], *(param for panel in panels.values() for param in panel.params)]
    return {**below, "params": params, "vconcat": [*charts, *below["vconcat"]]}


def _all(steps: Sequence[Row], top: float) -> dict[str, list[Row]]:
    """The longest step of each point, to brush over; where one is cut off there is a mark."""
    longest = [
        {"t": seconds(row["max_start_ns"]), "ms": round(min(row["max_ns"], top) / NS_PER_MS, 6)} for row in steps
    ]
    longest.append(longest[-1] | {"t": seconds(steps[-1]["end_ns"])})  # the last, or only, one has a width
    cut = [
        {"t": seconds(row["max_start_ns"] + row["max_ns"] / 2), "ms": top / NS_PER_MS}
        for row in steps
        if row["max_ns"] > top
    ]
    return {"longest": longest, "cut": cut}


def _cut(steps: Sequence[Row]) -> list[str]:
    top = _top(steps)
    if all(row["max_ns"] <= top for row in steps):
        return []
    return [f"the lowest chart is cut off at {format_ns(top)}, where a red line is a longer step"]


def _top(steps: Sequence[Row]) -> float:
    """Where the lowest chart ends, in ns: one long step, mostly the first, would flatten all others."""
    lengths: list[float] = [row["max_ns"] for row in steps]
    return min(max(lengths), MOST * median(lengths)) or max(*lengths, 1)


MOST_BARS = 500  # a chart is some 800 px wide; a browser places each rectangle by itself, and an area at once


def bands(bars: Sequence[Row], colours: Mapping[str, str], title: str, scale: Row | None = None, **marks: Any) -> Row:
    """The chart of bars `{from, to, low, high, of}`: s, the unit in `title`, and the kind, with its colour.

    `scale`: that of the upright axis. `marks`: rows that are drawn over the bars, see `specs/bands.json`.
    """
    used = {bar["of"] for bar in bars}
    few = len(bars) <= MOST_BARS
    over = {"far": [], "warmup": [], "slower": [], "most": [], **marks}
    return filled(
        "bands", bars=bars if few else [], edges=[] if few else list(edges(bars)), along=ALONG,
        up={"field": "low", "type": "quantitative", "title": title, **({"scale": scale} if scale else {})},
        kinds=coloured({name: colour for name, colour in colours.items() if name in used}),
        legend={} if len(colours) > 1 else None, **over,
    )  # fmt: skip


def edges(bars: Sequence[Row]) -> Iterator[Row]:
    """Where the area of each kind changes: `{t, low, high, of}`; it has no height where the kind has no bar."""
    for kind in dict.fromkeys(bar["of"] for bar in bars):
        own = [bar for bar in bars if bar["of"] == kind]
        for bar, following in zip(own, [*own[1:], None], strict=True):
            yield {"t": bar["from"], "low": bar["low"], "high": bar["high"], "of": kind}
            if following is None or following["from"] > bar["to"]:
                yield {"t": bar["to"], "low": bar["low"], "high": bar["low"], "of": kind}
