"""The report of a run for a terminal; readable without colour, and at any width from 60 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from pipeprof import escape
from pipeprof.report.answer import answer_of
from pipeprof.report.answer.screen import verdict_lines
from pipeprof.report.pictures.bars import bars_of
from pipeprof.report.pictures.flow import stages_of
from pipeprof.report.section_text import print_section
from pipeprof.report.sections.of_run import chosen, first_lines, sections
from pipeprof.report.table import plain_text, print_drawn

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import Console

    from pipeprof.report.sections import Section

PROMPT = 3  # lines of a terminal beside the answer and the picture: the command, a blank line, the next prompt


def show(content: dict[str, Any], *, full: bool = False, names: Collection[str] = ()) -> None:
    """Print the report: its first screen; with `full` all sections behind it; or the sections `names` alone."""
    print_drawn(lambda console: _report(console, content, full=full, names=names))


def text(content: dict[str, Any], *, full: bool = True, names: Collection[str] = ()) -> str:
    """The same as plain text, 120 columns wide."""
    return plain_text(lambda console: _report(console, content, full=full, names=names))


def _report(console: Console, content: dict[str, Any], *, full: bool, names: Collection[str]) -> None:
    if not names:
        _first(console, content)
    if names or full:
        _print(console, chosen(content, names) if names else sections(content))


def _print(console: Console, parts: Sequence[Section]) -> None:
    for section in parts:
        console.print()
        print_section(console, section)
    if parts:
        console.print()


def _first(console: Console, content: dict[str, Any]) -> None:
    """As they are: they fit 80 columns, and a command must stay as it is to be pasted."""
    answer = answer_of(content)
    lines = first_lines(content, answer)
    after = verdict_lines(answer, lines)
    for number, line in enumerate(lines):
        if number == after and console.is_terminal:
            _picture(console, content, console.height - len(lines) - PROMPT, is_apart=not line)
        console.print(Text(escape.line(line), style="bold" if number == 0 else ""), soft_wrap=True)


def _picture(console: Console, content: dict[str, Any], rows: int, *, is_apart: bool) -> None:
    """The data pipeline as bars, where the first screen stays one with it. `is_apart`: a blank line comes behind it."""
    bars = bars_of(stages_of(content), rows - (not is_apart), utf=console.encoding.startswith("utf"))
    for bar in [Text(), *bars, *([] if is_apart else [Text()])] if bars else []:
        console.print(bar)
