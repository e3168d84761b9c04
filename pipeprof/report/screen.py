"""Where text for people goes: to stdout, as wide as it is, or into a text of its own."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from pipeprof.report.output import PLAIN_WIDTH, has_colours
from pipeprof.report.table import RULE

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[Console], None]


def print_drawn(draw: Draw) -> None:
    """Print to stdout: as wide as COLUMNS says, else as the terminal, else as plain text is."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else None
    console = Console(width=width, highlight=False, file=sys.stdout, no_color=not has_colours())
    if console.is_terminal:
        draw(console)
    else:
        text = plain_text(draw, width or PLAIN_WIDTH)
        sys.stdout.write(text if console.encoding.startswith("utf") else text.replace(RULE, "-"))


def plain_text(draw: Draw, width: int = PLAIN_WIDTH) -> str:
    """What `draw` prints, without colours, and without blanks at the ends of lines."""
    buffer = io.StringIO()
    draw(Console(file=buffer, width=width, highlight=False, no_color=True, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())
