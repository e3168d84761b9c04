"""Bars over time on top of each other: a rectangle for each, or of very many one area for all of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.charts.chart import inline
from pipeprof.report.charts.overtime import across

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = dict[str, Any]

MOST_BARS = 500  # a chart is some 800 px wide; a browser places each rectangle by itself, and an area at once


def bands(bars: Sequence[Row], colours: Mapping[str, str], up: Any) -> Any:
    """The chart of bars `{from, to, low, high, of}`: s, the unit of the axis `up`, and the kind, with its colour."""
    import altair as alt

    used = {bar["of"] for bar in bars}
    shown = {name: colour for name, colour in colours.items() if name in used}
    scale = alt.Scale(domain=list(shown), range=list(shown.values()))
    kinds = alt.Color("of:N", title=None, scale=scale, legend=alt.Legend() if len(colours) > 1 else None)
    if len(bars) <= MOST_BARS:
        mark = alt.Chart(inline(bars)).mark_rect(clip=True, aria=False)
        return mark.encode(x=across("from"), x2="to:Q", y=up, y2="high:Q", color=kinds)
    area = alt.Chart(inline(edges(bars))).mark_area(clip=True, aria=False, interpolate="step-after")
    return area.encode(x=across("t"), y=up, y2="high:Q", color=kinds)


def edges(bars: Sequence[Row]) -> Iterator[Row]:
    """Where the area of each kind changes: `{t, low, high, of}`; it has no height where the kind has no bar."""
    for kind in dict.fromkeys(bar["of"] for bar in bars):
        own = [bar for bar in bars if bar["of"] == kind]
        for bar, following in zip(own, [*own[1:], None], strict=True):
            yield {"t": bar["from"], "low": bar["low"], "high": bar["high"], "of": kind}
            if following is None or following["from"] > bar["to"]:
                yield {"t": bar["to"], "low": bar["low"], "high": bar["low"], "of": kind}
