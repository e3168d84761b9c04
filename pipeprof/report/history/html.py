"""A history as one HTML page: what the terminal shows, and a chart of each series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.charts import MISSING, can_draw, history
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.history import rows as said
from pipeprof.report.page import CHARTS, page, table
from pipeprof.report.section_html import STYLE, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

_STYLE = """
pre { margin: .2em 0 1em 1em; white-space: pre-wrap; }
"""


def text(content: Row) -> str:
    """The page; every name and sentence in it is escaped."""
    body: list[str] = []
    for sentence, below in said.changes(content):
        lines = "\n".join(escape(line) for line in below)
        body += [f'<p class="headline">{words(sentence)}</p>', f"<pre>{lines}</pre>"]
    body += [f"<p>{words(note)}</p>" for note in said.notes(content)]
    body += ["<h2>Series</h2>", *wide(table(said.HEAD, map(_cells, said.rows(content)), said.NUMBERS))]
    drawn = can_draw() and bool(content["series"])
    if drawn:
        body += ["<h2>Charts</h2>", *(line for chart in history.charts_of(content) for line in figure(chart))]
    elif content["series"]:
        body.append(f"<p>{MISSING}</p>")
    return page(said.title(content), body, CHARTS + STYLE + _STYLE, bundle() if drawn else "")


def _cells(row: Sequence[str]) -> str:
    cells = (
        f'<td class="number">{escape(cell)}</td>' if at in said.NUMBERS else f"<td>{escape(cell)}</td>"
        for at, cell in enumerate(row)
    )
    return f"<tr>{''.join(cells)}</tr>"
