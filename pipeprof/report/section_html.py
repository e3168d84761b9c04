"""Sections of any report as HTML, and a page of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.charts import MISSING, can_draw
from pipeprof.report.charts.script import figure
from pipeprof.report.code_html import code_lines
from pipeprof.report.page import page, shortened, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeprof.report.sections import Block, Section

MANY_COLUMNS = 4  # from which on the rows of a table are cards on a narrow page


def page_of(title: str, sections: Iterable[Section], style: str = "") -> str:
    """The page; every name and sentence in it is escaped. `style` is that of the title.

    What has a picture stands first: a comparison's cause.
    """
    shown = [one for one in sections if one.says_something or one.charts or one.picture]
    shown.sort(key=lambda one: one.picture is None)
    drawn = any(one.charts for one in shown) and can_draw()
    body = [line for one in _cards(shown) for line in one]
    return page(title, body, drawn=drawn, look=style)


def _cards(sections: Iterable[Section]) -> list[list[str]]:
    """The lines of each part of the page.

    Sections without a title belong to what stands above them; beside a picture is no room for a table more.
    """
    cards: list[list[str]] = []
    ends: list[list[str]] = []
    for section in sections:
        lines = section_lines(section)
        if not lines and not section.picture:
            continue
        beside = ["</div>", *section.picture()] if section.picture else []
        full = not ends or not ends[-1] or (len(ends[-1]) > 1 and section.blocks)
        if section.folded or section.title or section.picture or full:
            cards.append([] if section.folded else ['<section class="first">', "<div>"] if beside else ["<section>"])
            ends.append([] if section.folded else [*beside, "</section>"])
        cards[-1] += lines
    return [card + end for card, end in zip(cards, ends, strict=True)]


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
        lines += code_lines(section.code, section.language)
    for block in section.blocks:
        lines += block_lines(block)
    lines += [line for chart in charts for line in figure(chart)]
    if section.charts and not can_draw():
        lines.append(f"<p>{MISSING}</p>")
    return [*lines, "</details>"] if section.folded else lines


def block_lines(block: Block) -> list[str]:
    """A table below its caption; on a narrow page the rows of many columns become cards, a few are scrolled."""
    caption = [f"<p>{words(' '.join(block.caption))}</p>"] if block.caption else []
    body = [
        f"<tr>{''.join(_cell(block, cell, at, index) for index, cell in enumerate(row))}</tr>"
        for at, row in enumerate(block.rows)
    ]
    lines = table(block.head, body, block.right)
    kinds = [*(["rows"] if len(block.head) >= MANY_COLUMNS else []), *(["sortable"] if block.numbers else [])]
    if kinds:
        lines[0] = f'<table class="{" ".join(kinds)}">'
    return [*caption, '<div class="wide" tabindex="0">', *lines, "</div>"]


def _cell(block: Block, cell: str, row: int, column: int) -> str:
    kind = "number" if column in block.right else "tree" if cell.startswith(" ") else block.styles.get(cell)
    look = f' class="{kind}"' if kind else ""
    numbers = block.numbers.get(block.head[column])
    order = f' data-value="{numbers[row]}"' if numbers and numbers[row] is not None else ""
    lines = cell.split("\n") if block.tall else [cell]
    titled = column and len(block.head) >= MANY_COLUMNS and block.head[column]
    of = f' data-of="{escape(block.head[column])}"' if titled else ""
    return f"<td{look}{order}{of}>{'<br>'.join(map(shortened, lines))}</td>"
