"""The report for a terminal; readable without colour, and at any width from 80 columns on."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeprof.report.output import PLAIN_WIDTH
from pipeprof.report.sections import Block, Section, chosen, first_lines, sections

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

RULE = 4  # least columns of the line behind a title


def show(content: dict[str, Any], *, full: bool = False, names: Collection[str] = ()) -> None:
    """Print the report: its first screen; with `full` all sections behind it; or the sections `names` alone."""
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    _report(Console(width=width, highlight=False, soft_wrap=False), content, full=full, names=names)


def text(content: dict[str, Any], *, full: bool = True, names: Collection[str] = ()) -> str:
    """The same as plain text, 120 columns wide."""
    buffer = io.StringIO()
    _report(Console(file=buffer, width=PLAIN_WIDTH, highlight=False, no_color=True), content, full=full, names=names)
    return buffer.getvalue()


def print_block(console: Console, block: Block) -> None:
    """One table; cells fold rather than being cut."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for index, title in enumerate(block.head):
        right = index in block.right
        table.add_column(title, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in block.rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


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


def _report(console: Console, content: dict[str, Any], *, full: bool, names: Collection[str]) -> None:
    if not names:
        _first(console, first_lines(content))
    if names or full:
        _print(console, chosen(content, names) if names else sections(content))


def _print(console: Console, found: Iterable[Section]) -> None:
    for section in found:
        console.print()
        print_section(console, section)
    console.print()


def _first(console: Console, lines: Sequence[str]) -> None:
    """As they are: they fit 80 columns, and a command must stay as it is to be pasted."""
    for number, line in enumerate(lines):
        console.print(Text(line, style="bold" if number == 0 else ""), soft_wrap=True)
