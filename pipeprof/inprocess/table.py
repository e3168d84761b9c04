"""The table of `key_averages()` as text: the columns that other profilers' users know."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pipeprof.report import page
from pipeprof.report.ops import cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.inprocess.averages import Average

NAME_WIDTH, SHAPE_WIDTH, FRAME_WIDTH = 55, 80, 75
HEAD = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
GAP = "  "


def render(rows: Sequence[Average], all_ns: int, count: int, *, shapes: bool = False, stacks: bool = False) -> str:
    """The rows as text; shares are of `all_ns`, the own time of all `count` rows."""
    head = [*HEAD, *(["Input Shapes"] if shapes else []), *(["Source Location"] if stacks else [])]
    lines: list[list[str]] = []
    for row in rows:
        frames = [_cut(frame, FRAME_WIDTH, keep_end=True) for frame in row.stack.splitlines()] or [""]
        cut = [_cut(row.in_shapes, SHAPE_WIDTH)] if shapes else []
        lines.append([*_figures(row, all_ns), *cut, *(frames[:1] if stacks else [])])
        if stacks:
            lines += [[""] * (len(head) - 1) + [frame] for frame in frames[1:]]
    widths = [max(len(line[index]) for line in [head, *lines]) for index in range(len(head))]
    rule = GAP.join("-" * width for width in widths)
    text = [rule, _line(head, widths), rule, *(_line(line, widths) for line in lines), rule]
    text.append(f"Self CPU time total: {cells.time(all_ns)}")
    if count > len(rows):
        text.append(f"{count - len(rows)} more rows: row_limit=-1 shows all")
    return "\n".join(text) + "\n"


def html(rows: Sequence[Average], all_ns: int, count: int, *, shapes: bool = False, stacks: bool = False) -> str:
    """The rows of `render` as an HTML table, for notebooks."""
    head = [*HEAD, *(["Input Shapes"] if shapes else []), *(["Source Location"] if stacks else [])]
    body = []
    for row in rows:
        cells_of_row = [*_figures(row, all_ns), *([row.in_shapes] if shapes else []), *([row.stack] if stacks else [])]
        body.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells_of_row) + "</tr>")
    more = [f"<p>{count - len(rows)} more rows</p>"] if count > len(rows) else []
    return "\n".join([*page.table(head, body), *more])


def _figures(row: Average, all_ns: int) -> list[str]:
    return [
        _cut(row.name, NAME_WIDTH),
        f"{100 * row.self_ns / all_ns:.2f}%" if all_ns else cells.NOT_KNOWN,
        cells.time(row.self_ns),
        f"{100 * row.total_ns / all_ns:.2f}%" if all_ns else cells.NOT_KNOWN,
        cells.time(row.total_ns),
        cells.time(row.mean_ns),
        str(row.count),
    ]


def _line(line: Sequence[str], widths: Sequence[int]) -> str:
    """Figures to the right, words to the left."""
    parts = [
        text.ljust(width) if index == 0 or index >= len(HEAD) else text.rjust(width)
        for index, (text, width) in enumerate(zip(line, widths, strict=True))
    ]
    return GAP.join(parts).rstrip()


def _cut(text: str, width: int, *, keep_end: bool = False) -> str:
    if len(text) <= width:
        return text
    return "..." + text[3 - width :] if keep_end else text[: width - 3] + "..."
