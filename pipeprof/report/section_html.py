"""Sections of any report as HTML, and a page of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.charts import MISSING, can_draw
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.page import CHARTS, SORTABLE, page, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeprof.report.sections import Block, Section

STYLE = (
    SORTABLE
    + """
p.strong { font-size: 1.15em; font-weight: 600; margin: .3em 0; }
td.tree { white-space: pre; }
"""
)


def page_of(title: str, sections: Iterable[Section]) -> str:
    """The page; every name and sentence in it is escaped."""
    shown = [one for one in sections if one.says_something or one.charts]
    drawn = any(one.charts for one in shown) and can_draw()
    body = [line for one in shown for line in section_lines(one)]
    return page(title, body, CHARTS + STYLE, bundle() if drawn else "")


def section_lines(section: Section) -> list[str]:
    """A section with its title."""
    charts = section.charts() if section.charts and can_draw() else []
    if section.charts and not charts and can_draw() and not section.says_something:
        return []
    lines = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    lines += [f'<p class="strong">{words(sentence)}</p>' for sentence in section.strong]
    if section.notes:
        lines += ["<ul>", *(f"<li>{words(sentence.strip())}</li>" for sentence in section.notes), "</ul>"]
    if section.code:
        lines.append(f'<pre class="wide" tabindex="0">{chr(10).join(map(escape, section.code))}</pre>')
    for block in section.blocks:
        lines += [f"<p>{words(' '.join(block.caption))}</p>"] if block.caption else []
        lines += _block(block)
    lines += [line for chart in charts for line in figure(chart)]
    if section.charts and not can_draw():
        lines.append(f"<p>{MISSING}</p>")
    return lines


def _block(block: Block) -> list[str]:
    shown = (lambda cell: "<br>".join(map(words, cell.split("\n")))) if block.tall else words
    body = []
    for row in block.rows:
        cells = [
            f'<td class="{"number" if index in block.right else "tree" if cell.startswith(" ") else ""}">'
            f"{shown(cell)}</td>"
            for index, cell in enumerate(row)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>".replace(' class=""', ""))
    return wide(table(block.head, body, block.right))


def wide(lines: Sequence[str]) -> list[str]:
    """A table that is scrolled by itself where the page is narrower."""
    return ['<div class="wide" tabindex="0">', *lines, "</div>"]
