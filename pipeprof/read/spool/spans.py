"""Intervals that the program named itself (`pipeprof.record_function`), calls of cells, waits, and sampled stacks.

Cells as intervals where no call of them was recorded, from operators: from the first to the last in a row of a cell.

The cells of an operator of a graph are those in its name; of a function that was compiled (`ms.jit`), whose operators
have none, those of the parameters that it reads. PyNative's are those in which the operator of the same name ran in the
step whose calls were recorded, for steps that launch the same operators.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from functools import lru_cache, reduce
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.step_rows import Step, StepRows
from pipeprof.read.spool.whole_run import timed_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.read.spool.amounts import Amounts
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process
    from pipeprof.read.spool.sections import Structure
    from pipeprof.read.tables.rows import RankRows

    Cells = Sequence[str]


def add_named(process: Process, out: RankRows) -> None:
    """Write one span per interval, and one row of `stack` per source location that they share."""
    for event in process.all("span"):
        begin, end = int(event["begin"]), int(event["end"])
        out.add(
            "span", track=event.get("track"), category=event.get("category"), name=event["label"],
            start_ns=out.at(begin), dur_ns=max(0, end - begin),
            stack_id=out.stack_id(event.get("stack") or ()),
        )  # fmt: skip


def add_cells(process: Process, out: RankRows) -> None:
    """Write one span per call of a cell, in the cells that called it, with where each is written."""
    for event in process.all("cells"):
        stacks: list[list[str]] = []
        for _, around, frame in event["kinds"]:
            stacks.append(([frame] if frame else []) + (stacks[around] if 0 <= around < len(stacks) else []))
        for (kind, _, _), (path, begin, end) in zip(event["rows"], calls_of_cells(event), strict=True):
            out.add(
                "span", track="main", category="cell", name=path[-1], start_ns=out.at(begin),
                dur_ns=max(0, end - begin), stack_id=out.stack_id(stacks[kind]), scope="/".join(path[:-1]) or None,
            )  # fmt: skip


def calls_of_cells(event: Mapping[str, Any]) -> list[tuple[tuple[str, ...], int, int]]:
    """Of an event `cells`, the cells of each call, outermost first, its begin and its end."""
    paths: list[tuple[str, ...]] = []
    for name, around, _ in event["kinds"]:
        paths.append((*(paths[around] if 0 <= around < len(paths) else ()), name))
    return [(paths[kind], begin, end) for kind, begin, end in event["rows"]]


def undisturbed(process: Process, steps: Sequence[Step], by_step: Mapping[int, Structure]) -> Mapping[int, Structure]:
    """The structures of steps in which no call of a cell was waited for; all of them where there is no other."""
    waited = [int(event["rows"][0][1]) for event in process.all("cells") if event["rows"]]
    left = {
        index: structure
        for index, structure in by_step.items()
        if not any(steps[index].start <= time < steps[index].end for time in waited)
    }
    return left or by_step


def add_stacks(process: Process, out: RankRows) -> None:
    """Write one row per look at the stack of the thread that trains; frames that were lost leave their looks out."""
    stacks: list[list[str]] = []
    timed = timed_parts(process)
    for event in process.all("stacks"):
        for caller, frame in event["sites"]:
            stacks.append([frame, *(stacks[caller] if 0 <= caller < len(stacks) else [])])
        for at, dur_ns, number in event["rows"]:
            if number < len(stacks):
                part = next((one.part for one in timed if one.begin <= at < one.end), None)
                out.add(
                    "stack_sample", t_ns=out.at(at), dur_ns=dur_ns, stack_id=out.stack_id(stacks[number]), part=part
                )  # fmt: skip


_UNKNOWN: Mapping[str, Any] = {}


def add_syncs(process: Process, steps: Iterable[Step], out: RankRows, first_step: int) -> None:
    """One row per step, call and line; a call belongs to the step that it began in, or to none."""
    sites = process.by_number("sync_site")
    steps = StepRows.of(steps)
    begins, ends = steps.start.data, steps.end.data
    waits: dict[tuple[int | None, int], list[int]] = {}
    for mark in process.marks.only(Kind.SYNC):
        at = bisect_right(begins, mark.begin) - 1
        inside = at >= 0 and mark.begin < ends[at]
        waits.setdefault((first_step + at if inside else None, mark.subject), []).append(mark.end - mark.begin)
    for (step, subject), times in waits.items():
        site = sites.get(subject, _UNKNOWN)
        out.add(
            "sync", step=step, call=site.get("call"), site=site.get("site") or None, via=site.get("via") or None,
            count=len(times), total_ns=sum(times), max_ns=max(times),
        )  # fmt: skip


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


@lru_cache(maxsize=1 << 14)
def cells_of(name: str) -> Cells:
    """The cells in an operator's name, outermost first, in a gradient below `Gradients`; none outside of graphs."""
    parts = name.split("/")[:-1]
    cells = [part for part in parts if part != _GRAPH and not part.startswith(_RULE)] if _GRAPH in parts else []
    return () if cells == [_BACKWARD] else tuple(cells)


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
