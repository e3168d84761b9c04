"""The data pipeline as bars of text, for a terminal: a line for each stage, from the source to the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pipeprof.escape import line
from pipeprof.report.charts.chart import middle_cut
from pipeprof.report.pictures.flow import MOST_STAGES, busiest
from pipeprof.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.pictures.flow import Stage

LEAST_ROWS = 3  # stages, below which the picture says nothing
BAR, NAME = 28, 28  # columns
EIGHTHS = " ▏▎▍▌▋▊▉"
HEIGHTS = "▁▂▃▄▅▆▇█"
FULL, EMPTY, PLAIN = "█", "░", "#"


def bars_of(stages: Sequence[Stage], rows: int, *, utf: bool) -> list[Text]:
    """At most `rows` lines of 80 columns; none where no stage was timed, or where too few lines have room."""
    most = min(rows, MOST_STAGES)
    if most < min(LEAST_ROWS, len(stages)) or all(stage.busy is None for stage in stages):
        return []
    return [_row(stage, utf=utf) for stage in busiest(stages, most)]


def _row(stage: Stage, *, utf: bool) -> Text:
    name = middle_cut(line(stage.name), NAME)
    share = "not timed" if stage.busy is None else f"busy {format_ratio(stage.busy)}"
    text = Text(f"{name:<{NAME}} ")
    text.append(bar(stage.busy or 0.0, BAR, utf=utf), style="bold red" if stage.limits else "cyan")
    said = ", ".join(filter(None, (f" {share}", stage.limits)))
    return text.append(said, style="bold" if stage.limits else "")


def bar(share: float, wide: int, *, utf: bool) -> str:
    """A bar of so many columns; in ASCII where the terminal has no others."""
    filled = round(min(max(share, 0.0), 1.0) * wide * 8)
    if not utf:
        return (PLAIN * round(filled / 8)).ljust(wide, ".")
    part = EIGHTHS[filled % 8].strip()
    return (FULL * (filled // 8) + part).ljust(wide, EMPTY)


def sparkline(values: Sequence[float]) -> str:
    """A sign for each value, as high as it is beside the largest."""
    most = max(values, default=0.0) or 1.0
    return "".join(HEIGHTS[round(max(value, 0.0) / most * (len(HEIGHTS) - 1))] for value in values)
