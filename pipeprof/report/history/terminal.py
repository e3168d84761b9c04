"""A history on a terminal: the changes with their commits and causes, then a row per series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof import escape
from pipeprof.report.history import rows as said
from pipeprof.report.screen import plain_text, print_drawn
from pipeprof.report.sections import Block
from pipeprof.report.table import print_block
from pipeprof.report.wrap import wrap_text

if TYPE_CHECKING:
    from rich.console import Console


def show(content: dict[str, Any]) -> None:
    """Print to stdout."""
    print_drawn(lambda console: _print(content, console))


def text(content: dict[str, Any]) -> str:
    """The same, as plain text."""
    return plain_text(lambda console: _print(content, console))


def _print(content: dict[str, Any], console: Console) -> None:
    _line(console, said.title(content), style="bold")
    console.print()
    for sentence, below in said.changes(content):
        _line(console, sentence)
        for one in below:
            _line(console, f"  {one}")
        console.print()
    block = Block(said.HEAD, said.rows(content), said.NUMBERS, spare=said.SPARE)
    print_block(console, block, shows_all="--format json")
    notes = said.notes(content)
    if notes:
        console.print()
    for note in notes:
        _line(console, note)


def _line(console: Console, sentence: str, style: str = "") -> None:
    for part in wrap_text(escape.line(sentence), console.width):
        console.print(Text(part, style=style), soft_wrap=True)
