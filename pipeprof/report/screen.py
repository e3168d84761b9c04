"""Where text for people goes: to stdout, as wide as it is, or into a text of its own."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from pipeprof.report.output import PLAIN_WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[Console], None]


def stdout_console() -> Console:
    """Stdout: as wide as COLUMNS says, else as the terminal, else as plain text is."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else None
    if width is None and not sys.stdout.isatty():
        width = PLAIN_WIDTH
    return Console(width=width, highlight=False, file=sys.stdout)


def plain_text(draw: Draw, width: int = PLAIN_WIDTH) -> str:
    """What `draw` prints, without colours and blanks at the ends of lines."""
    buffer = io.StringIO()
    draw(Console(file=buffer, width=width, highlight=False, no_color=True, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())
