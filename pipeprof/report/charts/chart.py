"""What a chart is, and the look that all have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import altair as alt

WIDTH = 800  # px; the page makes a chart as wide as its column
_INK = "currentColor"  # the page's own, light or dark


class Chart(NamedTuple):
    """A chart of a page."""

    name: str  # its id
    title: str
    caption: str  # what is drawn, and what was thinned: a sentence
    said: str  # what the chart shows, for those who do not see it
    spec: dict[str, Any]  # Vega-Lite


def spec_of(chart: alt.TopLevelMixin, said: str) -> dict[str, Any]:
    """The chart as Vega-Lite, in the page's colours."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["description"] = said
    spec["config"] = {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {"labelColor": _INK, "titleColor": _INK, "tickColor": _INK, "domainColor": _INK, "gridOpacity": 0.3},
        "legend": {"labelColor": _INK, "titleColor": _INK, "orient": "top", "columns": 3, "labelLimit": 300},
        "title": {"color": _INK},
    }
    return spec
