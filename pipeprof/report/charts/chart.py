"""What a chart is, and the look that all have in common."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import altair as alt

WIDTH = 800  # px; the page makes a chart as wide as its column
_INK = "currentColor"  # the page's own, light or dark
_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#1f78b4", "#888888")


class Chart(NamedTuple):
    """A chart of a page. Without a `spec` there is nothing to draw, and the caption says what was not measured."""

    name: str  # its id
    title: str
    caption: str  # what is drawn, and what was thinned: sentences
    said: str = ""  # what the chart shows, for those who do not see it
    drawn: alt.TopLevelMixin | None = None
    table: Sequence[str] = ()  # HTML below it

    @property
    def spec(self) -> dict[str, Any]:
        """The chart as Vega-Lite, in the page's colours."""
        assert self.drawn is not None  # noqa: S101 - for mypy
        spec: dict[str, Any] = self.drawn.to_dict(validate=False)
        spec["description"] = self.said
        spec["config"] = {
            "background": "transparent",
            "view": {"stroke": None},
            "text": {"color": _INK},
            "axis": {
                "labelColor": _INK, "titleColor": _INK, "tickColor": _INK, "domainColor": _INK, "gridOpacity": 0.3,
                "titlePadding": 6, "labelSeparation": 4,
            },
            "legend": {
                "labelColor": _INK, "titleColor": _INK, "orient": "top", "columns": 4, "labelLimit": 300,
            },
            "title": {"color": _INK, "anchor": "start", "frame": "group", "fontSize": 12},
        }  # fmt: skip
        return spec


def counted(last: int) -> alt.Axis:
    """An axis from 1 to `last` whose ticks are whole numbers; `tickMinStep` does not hold where there are few."""
    import altair as alt

    step = -(-last // 10)
    return alt.Axis(values=sorted({1, *range(step, last + 1, step)}), format="d")


def alone(points: Sequence[dict[str, Any]], line: str) -> list[dict[str, Any]]:
    """Points of a line (the name that they have as `line`) with nothing to be joined to: it would not be seen."""
    many = Counter(point[line] for point in points)
    return [point for point in points if many[point[line]] == 1]


def time_unit(largest_ns: float) -> tuple[str, float]:
    """The unit of an axis that reaches so far, and how many ns it is."""
    return next(((name, size) for name, size in _UNITS if largest_ns >= size), _UNITS[-1])


def cut(text: str, most: int, *, end: bool = False) -> str:
    """Its first letters, at most so many, or its last ones."""
    if len(text) <= most:
        return text
    return f"\u2026{text[-most + 1 :]}" if end else f"{text[: most - 1]}\u2026"


class _Rows:
    """Values of a chart as they are: Altair copies lists value by value each time that two charts are put together."""

    _schema = {"type": "array"}  # noqa: RUF012 - by this name Altair knows what can tell its own values

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = list(rows)
        self._name = hashlib.sha256(json.dumps(self._rows, default=str).encode()).hexdigest()

    def to_dict(self) -> list[Any]:
        """What stands in the page."""
        return self._rows

    def __repr__(self) -> str:
        """Altair names a part of a chart for what its data look like."""
        return self._name


def inline(rows: Iterable[Any]) -> Any:
    """Rows of a chart, as its data."""
    import altair as alt
    from altair.utils.schemapi import debug_mode

    with debug_mode(arg=False):
        return alt.Data(values=_Rows(rows))


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
