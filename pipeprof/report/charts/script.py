"""What makes charts live within a page: Vega's JavaScript once, and a chart's description as JSON."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.record.cache import cache_folder, forget_oldest, recall, remember

if TYPE_CHECKING:
    from pipeprof.report.charts.chart import Chart

TABLES = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numbers = head.classList.contains("number");
      const down = head.ariaSort ? head.ariaSort === "ascending" : numbers;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const known = [...body.rows].some((row) => row.cells[at].dataset.value !== undefined);
      const value = ({cells}) => known ? Number(cells[at].dataset.value) : cells[at].textContent;
      const rows = [...body.rows].sort((one, two) => {
        const a = value(one), b = value(two);
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("search ", input);
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = ` ${shown} of ${body.rows.length} rows`;
  });
  const line = document.createElement("p");
  line.className = "search";
  line.append(label, count);
  table.closest(".wide").before(line);
}
"""  # tables that are sorted and searched; a row whose number is not known is the last

# The answer is painted first, then a chart at a time, so that the first can be used while the others are drawn.
# Nothing is compiled from text (`ast`), nothing fetched (the loader refuses), and no style is added, so that the page's
# policy need allow nothing but this script.
_START = """
const refused = {load: () => Promise.reject("offline"), sanitize: () => Promise.reject("offline")};
const options = {ast: true, actions: false, defaultStyle: false, tooltip: false, renderer: "svg", loader: refused};
const widen = (part, width) => {
  if (typeof part.width === "number") part.width = width;
  for (const inner of [...(part.vconcat || []), ...(part.layer || [])]) widen(inner, width);
};
const unlabelled = (place) => {
  for (const bound of place.querySelectorAll(".vega-bind")) {
    const input = bound.querySelector("input, select");
    const name = bound.querySelector(".vega-bind-name");
    if (input && name) input.setAttribute("aria-label", name.textContent.trim());
  }
  for (const mark of place.querySelectorAll("[role='graphics-symbol']:not([aria-label])")) {
    mark.setAttribute("aria-hidden", "true");
  }
};
const reachable = (place) => {
  const marks = [...place.querySelectorAll("[aria-roledescription='frame']")];
  const seen = (mark) => {
    const [box, all] = [mark, place.querySelector("path.background")].map((one) => one.getBoundingClientRect());
    return box.right > all.left + 1 && box.left < all.right - 1;
  };
  const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  marks.forEach((mark, at) => {
    mark.setAttribute("role", "button");
    mark.setAttribute("tabindex", at ? -1 : 0);
    mark.addEventListener("keydown", (event) => {
      const does = {Enter: "click", " ": "click", Escape: "dblclick"}[event.key];
      let next = marks[at + steps[event.key]];
      while (next && !seen(next)) next = marks[marks.indexOf(next) + steps[event.key]];
      if (!does && !next) return;
      event.preventDefault();
      if (does) return mark.dispatchEvent(new MouseEvent(does, {bubbles: true}));
      mark.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  });
};
const waiting = [...document.querySelectorAll("script[type='application/json']")];
const drawNext = () => {
  const data = waiting.shift();
  const place = document.getElementById(data.dataset.chart);
  const spec = JSON.parse(data.textContent);
  widen(spec, Math.max(place.clientWidth - (Number(data.dataset.margin) || 70), 180));
  if (place.clientWidth < 900) spec.config.legend.columns = place.clientWidth < 600 ? 1 : 2;
  return vegaEmbed(place, spec, options).then(() => {
    unlabelled(place);
    reachable(place);
    place.dataset.drawn = "yes";
  });
};
const later = window.requestIdleCallback || setTimeout;
const drawAll = () => {
  if (waiting.length) drawNext().finally(() => later(drawAll));
};
addEventListener("beforeprint", () => { while (waiting.length) drawNext(); });
requestAnimationFrame(() => setTimeout(drawAll));
"""
_MARGINS = {
    "chart-operators": 180,
    "chart-run": 190,
    "chart-changes": 190,
    "chart-variants": 190,
    "chart-pipelines": 30,
    "chart-flame": 30,
}  # px beside the drawing itself: long labels of an axis
_MARGIN = 85
_LARGEST = 16 << 20  # bytes of a script
_KEPT = 4  # scripts, of as many versions


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed, and what draws the page's charts and sorts its tables: one script.

    It takes seconds to put together, and is kept in the cache.
    """
    place = cache_folder("charts") / bundle_name()
    kept = recall(place, str, _LARGEST)
    if kept is None:
        import vl_convert

        kept = str(vl_convert.javascript_bundle(_START + TABLES)).replace("</script", "<\\/script")
        remember(place, kept)
        forget_oldest(place.parent, _KEPT)
    return kept


def bundle_name() -> str:
    """The file's name in the cache, of all that the script is made of."""
    made_of = f"{version('vl-convert-python')}\0{_START}{TABLES}"
    return f"{hashlib.sha256(made_of.encode()).hexdigest()[:24]}.json"


def figure(chart: Chart) -> list[str]:
    """A chart's place, caption and data; no name in it can end the element that holds it."""
    lines = [f"<h3>{escape(chart.title)}</h3>"]
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
