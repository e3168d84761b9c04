"""A section of any report as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import html_words as words
from pipeprof.report.page import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.sections import Block, Section


def section_lines(section: Section) -> list[str]:
    """What stands below its title."""
    lines = [f'<p class="strong">{words(sentence)}</p>' for sentence in section.strong]
    if section.notes:
        lines += ["<ul>", *(f"<li>{words(sentence.strip())}</li>" for sentence in section.notes), "</ul>"]
    for block in section.blocks:
        lines += [f"<p>{words(' '.join(block.caption))}</p>"] if block.caption else []
        lines += _block(block)
    return lines


def _block(block: Block) -> list[str]:
    body = []
    for row in block.rows:
        cells = [
            f'<td class="{"number" if index in block.right else "tree" if cell.startswith(" ") else ""}">'
            f"{escape(cell)}</td>"
            for index, cell in enumerate(row)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>".replace(' class=""', ""))
    return wide(table(block.head, body, block.right))


def wide(lines: Sequence[str]) -> list[str]:
    """A table that is scrolled by itself where the page is narrower."""
    return ['<div class="wide" tabindex="0">', *lines, "</div>"]
