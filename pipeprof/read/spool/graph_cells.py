"""Cells of graphs as intervals, from the names of operators, which say in which cells an operator was written.

A graph does not record calls of cells: an interval reaches from the first to the last of operators in a row that have
the cell in their names, within a step.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.tables.rows import RankRows

TRACK = "cells of graphs, from operators' names"
_GRAPH = "Default"  # what every name in a graph begins with
_RULE = "Grad_"  # of an operator in a gradient: the rule that made it, which is no cell


def add_graph_cells(placed: Sequence[Placed], out: RankRows) -> None:
    """Write one span per cell and stretch of operators; `placed` are in order of time."""
    for _, members in groupby(placed, key=lambda item: item.step):
        open_cells: list[tuple[str, int, int]] = []  # cell, start, end; outermost first
        for item in members:
            cells, start = cells_of(item.name), item.execution.start_ns
            _close(open_cells, _shared(open_cells, cells), start, out)
            open_cells += [(cell, start, start) for cell in cells[len(open_cells) :]]
            end = start + item.execution.dur_ns
            open_cells[:] = [(cell, begin, max(last, end)) for cell, begin, last in open_cells]
        _close(open_cells, 0, None, out)


def cells_of(name: str) -> list[str]:
    """The cells in an operator's name, outermost first, in a gradient below `Gradients`; none outside of graphs."""
    parts = name.split("/")[:-1]
    return [part for part in parts if part != _GRAPH and not part.startswith(_RULE)] if _GRAPH in parts else []


def _shared(open_cells: Sequence[tuple[str, int, int]], cells: Sequence[str]) -> int:
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
