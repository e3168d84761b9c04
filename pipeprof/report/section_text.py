"""Sections on a terminal, of any report; readable without colour, and at any width from 60 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pipeprof import escape
from pipeprof.report.table import print_block

if TYPE_CHECKING:
    from rich.console import Console

    from pipeprof.report.sections import Section

RULE = 4  # least columns of the line behind a title


def print_section(console: Console, section: Section) -> None:
    """Title, sentences, tables."""
    title = Text(escape.line(section.title), style="bold")
    if title.cell_len + RULE > console.width:
        console.print(title)  # a rule would cut it off
    elif section.title:
        console.rule(title, align="left")
    for sentence in section.strong:
        console.print(Text(escape.line(sentence), style="bold"), soft_wrap=section.unbroken)
    for sentence in section.notes:
        console.print(Text(escape.line(sentence)), soft_wrap=section.unbroken)
    for row in section.code:
        console.print(Text(f"  {escape.line(row)}"), soft_wrap=True)
    for block in section.blocks:
        console.print()
        for sentence in block.caption:
            console.print(Text(escape.line(sentence)))
        print_block(console, block.fitted(console.width) if block.fitted else block)
