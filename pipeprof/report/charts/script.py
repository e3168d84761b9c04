"""What makes charts live within a page: Vega's JavaScript once, and a chart's description as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape

if TYPE_CHECKING:
    from pipeprof.report.charts.chart import Chart

# Nothing is compiled from text (`ast`), nothing fetched (the loader refuses), and no style is added, so that the page's
# policy need allow nothing but this script.
_START = """
const refused = {load: () => Promise.reject("offline"), sanitize: () => Promise.reject("offline")};
const options = {ast: true, actions: false, defaultStyle: false, tooltip: false, renderer: "svg", loader: refused};
for (const data of document.querySelectorAll("script[type='application/json']")) {
  const place = document.getElementById(data.dataset.chart);
  const spec = JSON.parse(data.textContent);
  for (const part of spec.vconcat || [spec]) part.width = Math.max(place.clientWidth - 90, 200);
  for (const part of (spec.vconcat || []).flatMap((part) => part.layer || [])) delete part.width;
  vegaEmbed(place, spec, options);
}
"""


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed, and what draws the page's charts: one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle(_START))


def figure(chart: Chart) -> list[str]:
    """A chart's place, caption and data; no name in it can end the element that holds it."""
    spec = json.dumps(chart.spec, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    inert = spec.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return [
        f"<h3>{escape(chart.title)}</h3>",
        "<figure>",
        f'<div class="chart" id="{chart.name}"></div>',
        f"<figcaption>{escape(chart.caption)}</figcaption>",
        "</figure>",
        f'<script type="application/json" data-chart="{chart.name}">{inert}</script>',
    ]
