"""The result of a sweep for a terminal; readable without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.screen import plain_text, print_drawn
from pipeprof.report.sweep.rows import sections
from pipeprof.report.terminal import print_section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


def show(content: Mapping[str, Any]) -> None:
    """Print the result to stdout."""
    print_drawn(lambda console: _print(console, content))


def text(content: Mapping[str, Any]) -> str:
    """The result as plain text, 120 columns wide."""
    return plain_text(lambda console: _print(console, content))


def _print(console: Console, content: Mapping[str, Any]) -> None:
    for section in sections(content):
        print_section(console, section)
        console.print()
