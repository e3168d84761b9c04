"""Bars over time on top of each other: a rectangle for each, or of very many one area for all of a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.charts.chart import coloured, filled
from pipeprof.report.charts.overtime import ALONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = dict[str, Any]

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
