"""The result of a sweep for a terminal; readable without colour."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pipeprof.report.output import PLAIN_WIDTH
from pipeprof.report.sweep_rows import sections
from pipeprof.report.terminal import print_section

if TYPE_CHECKING:
    from collections.abc import Mapping


def show(content: Mapping[str, Any]) -> None:
    """Print the result to stdout."""
    _print(Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False), content)


def text(content: Mapping[str, Any]) -> str:
    """The result as plain text, 120 columns wide."""
    buffer = io.StringIO()
    _print(Console(file=buffer, width=PLAIN_WIDTH, highlight=False, no_color=True), content)
    return buffer.getvalue()


def _print(console: Console, content: Mapping[str, Any]) -> None:
    for section in sections(content):
        print_section(console, section)
        console.print()
