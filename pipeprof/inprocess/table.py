"""The table of `key_averages()` as text: the columns that other profilers' users know."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pipeprof.escape import html as escape
from pipeprof.escape import line
from pipeprof.report import page
from pipeprof.report.ops import cells
from pipeprof.report.ops.sections import torch_block
from pipeprof.report.table import draw
from pipeprof.report.wrap import wrap_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.inprocess.averages import Average, Further
    from pipeprof.report.sections import Block

WIDTHS = {"Name": 55, "Input Shapes": 80, "Source Location": 75}  # from which on a text goes on in the next line
ALWAYS = ("name", "self_ns", "share", "total_ns", "total_share", "mean_ns", "count")
MEMORY = ("memory_bytes", "self_memory_bytes")
ANY_WIDTH = 10_000  # who prints it is not known


def render(rows: Sequence[Average], all_ns: int, count: int, further: Further) -> str:
    """The rows as text; shares are of `all_ns`, the own time of all `count` rows."""
    block = _block(rows, all_ns, further)
    block.rows = [[_wrapped(*named) for named in zip(block.head, row, strict=True)] for row in block.rows]
    block.tall = True
    drawn = draw(block, ANY_WIDTH)
    text = [*drawn.head, *drawn.body, f"Self CPU time total: {cells.torch_time(all_ns)}"]
    if count > len(rows):
        text.append(f"{count - len(rows)} more rows: row_limit=-1 shows all")
    return "\n".join(text) + "\n"


def html(rows: Sequence[Average], all_ns: int, count: int, further: Further) -> str:
    """The rows of `render` as an HTML table, for notebooks."""
    block = _block(rows, all_ns, further)
    body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in block.rows]
    more = [f"<p>{count - len(rows)} more rows</p>"] if count > len(rows) else []
    return "\n".join([*page.table(block.head, body), *more])


def _block(rows: Sequence[Average], all_ns: int, further: Further) -> Block:
    """With memory where it was recorded."""
    memory = any(row.memory_bytes is not None for row in rows)
    wanted = [*ALWAYS, *(MEMORY if memory else ()), *(["computation"] if further.flops else [])]
    wanted += [*(["in_shapes"] if further.shapes else []), *(["stack"] if further.stacks else [])]
    shares = [(row.self_ns / all_ns, row.total_ns / all_ns) if all_ns else (None, None) for row in rows]
    shown = [
        asdict(row) | {"mean_ns": row.mean_ns, "share": own, "total_share": total}
        for row, (own, total) in zip(rows, shares, strict=True)
    ]
    return torch_block(shown, wanted)


def _wrapped(title: str, cell: str) -> str:
    if title not in WIDTHS:
        return cell
    lines = cell.split("\n") if title == "Source Location" else [cell]
    return "\n".join(wrapped for part in lines for wrapped in wrap_text(line(part), WIDTHS[title]))
