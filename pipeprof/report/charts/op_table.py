"""The operators as a table that can be sorted and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import line
from pipeprof.report.charts.chart import cut
from pipeprof.report.section_html import block_lines
from pipeprof.report.sections import Block
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = dict[str, Any]

MOST = 500
_WORDS = (("operator", "name"), ("type", "type"), ("phase", "phase"), ("shapes", "in_shapes"), ("called from", "site"))
_NUMBERS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("executions", "count", str), ("own time", "self_ns", format_ns), ("mean", "mean_ns", format_ns),
    ("share", "share", format_ratio),
)  # fmt: skip
_MOST_LETTERS = 160  # of a cell


def table_of(rows: Sequence[Row]) -> list[str]:
    """HTML of rows of op/by_instance of one rank."""
    if not rows:
        return []
    own_types = any(row["type"] != row["name"] for row in rows)
    shown = [
        (title, field) for title, field in _WORDS if any(row[field] for row in rows) and (own_types or field != "type")
    ]
    cells = [
        [
            *(cut(line(row[field] or "-"), _MOST_LETTERS) for _, field in shown),
            *(worded(row[field]) for _, field, worded in _NUMBERS),
        ]
        for row in rows
    ]
    numbers = {title: [row[field] for row in rows] for title, field, _ in _NUMBERS}
    head = [*(title for title, _ in shown), *numbers]
    caption = f"The {MOST} operators with the most own time" if len(rows) == MOST else "Operators"
    return block_lines(Block(head, cells, frozenset(range(len(shown), len(head))), caption=[caption], numbers=numbers))
