"""The result of a sweep as one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.report.charts import MISSING, can_draw, variants
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.page import CHARTS, page
from pipeprof.report.section_html import STYLE, section_lines
from pipeprof.report.sweep.rows import sections

if TYPE_CHECKING:
    from collections.abc import Mapping


def text(content: Mapping[str, Any]) -> str:
    """The page; every name and sentence in it is escaped."""
    first, *others = sections(content)
    drawn = can_draw()
    body = section_lines(first)
    if drawn:
        body += ["<h2>Charts</h2>", *(line for chart in variants.charts_of(content) for line in figure(chart))]
    else:
        body.append(f"<p>{MISSING}</p>")
    for section in others:
        body += [f"<h2>{escape(section.title)}</h2>", *section_lines(section)]
    return page(first.title, body, CHARTS + STYLE, bundle() if drawn else "")
