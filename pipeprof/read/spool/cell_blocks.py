"""Cells as intervals where no call of them was recorded, from operators: from the first to the last in a row of a cell.

The cells of an operator of a graph are those in its name; of a function that was compiled (`ms.jit`), whose operators
have none, those of the parameters that it reads. PyNative's are those in which the operator of the same name ran in the
step whose calls were recorded, for steps that launch the same operators.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import groupby, takewhile
from typing import TYPE_CHECKING

from pipeprof.read.spool.spans import calls_of_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.read.spool.amounts import Amounts
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process
    from pipeprof.read.tables.rows import RankRows

    Cells = Sequence[str]

TRACK = "cells, from operators"
_GRAPH = "Default"  # what every name in a graph begins with
_BACKWARD = "Gradients"
_RULE = "Grad_"  # of an operator in a gradient: the rule that made it, which is no cell


def add_cell_blocks(process: Process, placed: Sequence[Placed], amounts: Amounts, out: RankRows) -> None:
    """Write one span per cell and stretch of operators, but for steps whose calls were recorded."""
    called = [call for event in process.all("cells") for call in calls_of_cells(event)]
    recorded, known = _recorded(called, placed)
    forward = _forward(placed)
    cells: list[Cells] = []
    for item in placed:
        if item.step in recorded:
            cells.append(())
        elif item.step is not None and forward[item.step] in recorded.values():
            cells.append(known.get(item.name) or ())
        else:
            cells.append(cells_of(item.name) or _of_parameters(item, amounts.parameters_of(item)))
    add_stretches(placed, cells, out)


def _forward(placed: Iterable[Placed]) -> dict[int | None, Counter[str]]:
    """The operators of each step's forward passes."""
    forward: dict[int | None, Counter[str]] = {}
    for item in placed:
        forward.setdefault(item.step, Counter())[item.name] += item.phase == "forward"
    return forward


def _recorded(
    calls: Sequence[tuple[Cells, int, int]], placed: Sequence[Placed]
) -> tuple[dict[int | None, Counter[str]], Mapping[str, Cells]]:
    """Steps in which calls were recorded, with their forward operators; the innermost cells of each name there.

    A name that ran in several cells has those that are around all of them.
    """
    inner: dict[str, list[Cells]] = {}
    steps = set()
    for item in placed:
        at = item.execution.start_ns
        around = [(begin, cells) for cells, begin, end in calls if begin <= at < end]
        if around:
            steps.add(item.step)
            inner.setdefault(item.name, []).append(max(around)[1])
    forward = _forward(item for item in placed if item.step in steps)
    return forward, {name: reduce(_common, cells) for name, cells in inner.items()}


def _common(one: Cells, two: Cells) -> Cells:
    """The cells, from the outermost on, that both have."""
    return [cell for cell, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False))]


def _of_parameters(item: Placed, parameters: Sequence[str]) -> list[str]:
    """The cell that the first parameter belongs to (`head.fc.weight`), where the operator is of a pass."""
    cells = parameters[0].split(".")[:-1] if parameters and item.phase in ("forward", "backward") else []
    return [*([_BACKWARD] if cells and item.phase == "backward" else []), *cells]


def add_stretches(placed: Sequence[Placed], cells_of_items: Sequence[Cells], out: RankRows) -> None:
    """Write the spans; all in order of time."""
    for _, members in groupby(zip(placed, cells_of_items, strict=True), key=lambda pair: pair[0].step):
        open_cells: list[tuple[str, int, int]] = []  # cell, start, end; outermost first
        for item, cells in members:
            start = item.execution.start_ns
            _close(open_cells, _shared(open_cells, cells), start, out)
            open_cells += [(cell, start, start) for cell in cells[len(open_cells) :]]
            end = start + item.execution.dur_ns
            open_cells[:] = [(cell, begin, max(last, end)) for cell, begin, last in open_cells]
        _close(open_cells, 0, None, out)


def cells_of(name: str) -> list[str]:
    """The cells in an operator's name, outermost first, in a gradient below `Gradients`; none outside of graphs."""
    parts = name.split("/")[:-1]
    cells = [part for part in parts if part != _GRAPH and not part.startswith(_RULE)] if _GRAPH in parts else []
    return [] if cells == [_BACKWARD] else cells


def _shared(open_cells: Sequence[tuple[str, int, int]], cells: Cells) -> int:
    """How many of the open cells the next operator is in, too."""
    count = 0
    while count < min(len(open_cells), len(cells)) and open_cells[count][0] == cells[count]:
        count += 1
    return count


def _close(open_cells: list[tuple[str, int, int]], keep: int, before: int | None, out: RankRows) -> None:
    """Write what ends, at the latest when the next operator begins, so that intervals lie one inside the other."""
    names = [cell for cell, _, _ in open_cells]
    while len(open_cells) > keep:
        name, start, end = open_cells.pop()
        end = end if before is None else min(end, before)
        scope = "/".join(names[: len(open_cells)]) or None
        out.add(
            "span", track=TRACK, category="cell", name=name, start_ns=out.at(start), dur_ns=max(0, end - start),
            scope=scope,
        )  # fmt: skip
