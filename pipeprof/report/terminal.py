"""The report for a terminal; readable without colour, and at any width from 60 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof.report.screen import plain_text, print_drawn
from pipeprof.report.sections import Section, sections
from pipeprof.report.table import print_block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

RULE = 4  # least columns of the line behind a title


def show(content: dict[str, Any]) -> None:
    """Print the report to stdout."""
    print_drawn(lambda console: _print(console, sections(content)))


def text(content: dict[str, Any]) -> str:
    """The report as plain text, 120 columns wide."""
    return plain_text(lambda console: _print(console, sections(content)))


def print_section(console: Console, section: Section) -> None:
    """Title, sentences, tables."""
    title = Text(section.title, style="bold")
    if title.cell_len + RULE > console.width:
        console.print(title)  # a rule would cut it off
    else:
        console.rule(title, align="left")
    for sentence in section.strong:
        console.print(Text(sentence, style="bold"))
    for sentence in section.notes:
        console.print(Text(sentence))
    for block in section.blocks:
        console.print()
        print_block(console, block)


def _print(console: Console, found: Iterable[Section]) -> None:
    for section in found:
        console.print()
        print_section(console, section)
    console.print()
