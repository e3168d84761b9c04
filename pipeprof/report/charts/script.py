"""What makes charts live within a page: Vega's JavaScript once, and a chart's description as JSON."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.record.cache import cached
from pipeprof.report.charts.chart import SPECS

if TYPE_CHECKING:
    from pipeprof.report.charts.chart import Chart

_MARGINS = {
    "chart-operators": 180,
    "chart-run": 190,
    "chart-changes": 190,
    "chart-variants": 190,
    "chart-pipelines": 30,
    "chart-flame": 30,
    "chart-step": 30,
    "chart-slowest": 30,
}  # px beside the drawing itself: long labels of an axis
_MARGIN = 85
_KEPT = 4  # scripts, of as many versions


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed, what draws the page's charts, and what every page has: one script.

    It takes seconds to put together, and is kept in the cache.
    """
    return cached("charts", made_of(), str, _put_together, _KEPT)


def made_of() -> bytes:
    """All that the script is made of."""
    return f"{version('vl-convert-python')}\0{_own()}".encode()


def _put_together() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle(_own())).replace("</script", "<\\/script")


def javascript(name: str) -> str:
    """What is in `specs/NAME.js`."""
    return SPECS.joinpath(f"{name}.js").read_text(encoding="utf-8")


def _own() -> str:
    return javascript("page") + javascript("charts")


def figure(chart: Chart, below: str = "") -> list[str]:
    """A chart's place, caption and data; no name in it can end the element that holds it. `below`: the title above."""
    lines = [f"<h3>{escape(chart.title)}</h3>"] if chart.title != below else []
    if chart.drawn is None:
        return [*lines, f"<p>{words(chart.caption)}</p>", *chart.table]
    spec = json.dumps(chart.spec, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    inert = spec.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    margin = _MARGINS.get(chart.name.rstrip("-0123456789"), _MARGIN)
    return [
        *lines,
        "<figure>",
        "<figcaption>",
        *(f"<p>{words(part)}</p>" for part in chart.caption.split("\n")),
        "</figcaption>",
        f'<div class="chart" id="{chart.name}"></div>',
        "</figure>",
        f'<script type="application/json" data-chart="{chart.name}" data-margin="{margin}">{inert}</script>',
        *chart.table,
    ]
