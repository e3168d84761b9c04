"""The table of `key_averages()` as text: the columns that other profilers' users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import line
from pipeprof.report import page
from pipeprof.report.ops import cells
from pipeprof.report.sections import Block
from pipeprof.report.table import draw
from pipeprof.report.wrap import wrap_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.inprocess.averages import Average, Further

NAME_WIDTH, SHAPE_WIDTH, FRAME_WIDTH = 55, 80, 75  # from which on a text goes on in the next line
HEAD = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
MEMORY = ("CPU Mem", "Self CPU Mem")
FLOPS = "Total FLOPs"
ANY_WIDTH = 10_000  # who prints it is not known


def render(rows: Sequence[Average], all_ns: int, count: int, further: Further) -> str:
    """The rows as text; shares are of `all_ns`, the own time of all `count` rows."""
    head, memory = _head(rows, further)
    lines = [
        [
            _wrapped(row.name, NAME_WIDTH),
            *_figures(row, all_ns, memory=memory, flops=further.flops),
            *([_wrapped(row.in_shapes, SHAPE_WIDTH)] if further.shapes else []),
            *(["\n".join(_wrapped(frame, FRAME_WIDTH) for frame in row.stack.split("\n"))] if further.stacks else []),
        ]
        for row in rows
    ]
    figures = frozenset(range(1, len(head) - further.shapes - further.stacks))
    drawn = draw(Block(head, lines, figures, tall=True), ANY_WIDTH)
    text = [*drawn.head, *drawn.body, f"Self CPU time total: {cells.torch_time(all_ns)}"]
    if count > len(rows):
        text.append(f"{count - len(rows)} more rows: row_limit=-1 shows all")
    return "\n".join(text) + "\n"


def html(rows: Sequence[Average], all_ns: int, count: int, further: Further) -> str:
    """The rows of `render` as an HTML table, for notebooks."""
    head, memory = _head(rows, further)
    body = []
    for row in rows:
        texts = [*([row.in_shapes] if further.shapes else []), *([row.stack] if further.stacks else [])]
        cells_of_row = [row.name, *_figures(row, all_ns, memory=memory, flops=further.flops), *texts]
        body.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells_of_row) + "</tr>")
    more = [f"<p>{count - len(rows)} more rows</p>"] if count > len(rows) else []
    return "\n".join([*page.table(head, body), *more])


def _head(rows: Sequence[Average], further: Further) -> tuple[list[str], bool]:
    """The columns, and whether memory is among them: where it was recorded."""
    memory = any(row.memory_bytes is not None for row in rows)
    work = [FLOPS] if further.flops else []
    texts = [*(["Input Shapes"] if further.shapes else []), *(["Source Location"] if further.stacks else [])]
    return [*HEAD[:-1], *(MEMORY if memory else ()), HEAD[-1], *work, *texts], memory


def _figures(row: Average, all_ns: int, *, memory: bool, flops: bool) -> list[str]:
    return [
        cells.torch_share(row.self_ns / all_ns if all_ns else None),
        cells.torch_time(row.self_ns),
        cells.torch_share(row.total_ns / all_ns if all_ns else None),
        cells.torch_time(row.total_ns),
        cells.torch_time(row.mean_ns),
        *([cells.torch_size(row.memory_bytes), cells.torch_size(row.self_memory_bytes)] if memory else []),
        str(row.count),
        *([cells.amount(row.computation, "FLO")] if flops else []),
    ]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(wrap_text(line(text), width))
