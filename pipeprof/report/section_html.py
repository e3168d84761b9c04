"""Sections of any report as HTML, and a page of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.charts import MISSING, can_draw
from pipeprof.report.charts.script import bundle, figure
from pipeprof.report.page import CHARTS, SORTABLE, page, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeprof.report.sections import Block, Section

STYLE = (
    SORTABLE
    + """
p.strong { font-size: 1.15em; font-weight: 600; margin: .3em 0; }
td.tree { white-space: pre; } summary { cursor: pointer; font-weight: 600; margin: .5em 0; }
.wide td:first-child:not(.number) { min-width: 10em; }
.sortable td:not(.number) { min-width: 6em; max-width: 24em; overflow-wrap: anywhere; }
.sortable td:first-child:not(.number) { min-width: 14em; }
.bold { font-weight: bold; } .red, .magenta { color: var(--bad); } .green { color: var(--good); }
.yellow { color: var(--unsure); }
"""
)


def page_of(title: str, sections: Iterable[Section], style: str = "") -> str:
    """The page; every name and sentence in it is escaped. `style` is that of the title."""
    shown = [one for one in sections if one.says_something or one.charts]
    drawn = any(one.charts for one in shown) and can_draw()
    body = [line for one in shown for line in section_lines(one)]
    return page(title, body, CHARTS + STYLE, bundle() if drawn else "", look=style)


def section_lines(section: Section) -> list[str]:
    """A section with its title."""
    charts = section.charts() if section.charts and can_draw() else []
    if section.charts and not charts and can_draw() and not section.says_something:
        return []
    before, behind = ("<details><summary>", "</summary>") if section.folded else ("<h2>", "</h2>")
    lines = [f"{before}{escape(section.title)}{behind}"] if section.title else []
    lines += [f'<p class="strong">{words(sentence)}</p>' for sentence in section.strong]
    if section.notes:
        lines += ["<ul>", *(f"<li>{words(sentence.strip())}</li>" for sentence in section.notes), "</ul>"]
    if section.code:
        lines.append(f'<pre class="wide" tabindex="0">{chr(10).join(map(escape, section.code))}</pre>')
    for block in section.blocks:
        lines += block_lines(block)
    lines += [line for chart in charts for line in figure(chart)]
    if section.charts and not can_draw():
        lines.append(f"<p>{MISSING}</p>")
    return [*lines, "</details>"] if section.folded else lines


def block_lines(block: Block) -> list[str]:
    """A table that is scrolled by itself where the page is narrower, below its caption."""
    caption = [f"<p>{words(' '.join(block.caption))}</p>"] if block.caption else []
    body = [
        f"<tr>{''.join(_cell(block, cell, at, index) for index, cell in enumerate(row))}</tr>"
        for at, row in enumerate(block.rows)
    ]
    lines = table(block.head, body, block.right)
    if block.numbers:
        lines[0] = '<table class="sortable">'
    return [*caption, '<div class="wide" tabindex="0">', *lines, "</div>"]


def _cell(block: Block, cell: str, row: int, column: int) -> str:
    kind = "number" if column in block.right else "tree" if cell.startswith(" ") else block.styles.get(cell)
    look = f' class="{kind}"' if kind else ""
    numbers = block.numbers.get(block.head[column])
    order = f' data-value="{numbers[row]}"' if numbers and numbers[row] is not None else ""
    lines = cell.split("\n") if block.tall else [cell]
    return f"<td{look}{order}>{'<br>'.join(map(words, lines))}</td>"
