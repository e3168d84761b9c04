"""Intervals that the program named itself (`pipeprof.record_function`), and calls of cells, with their stacks."""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process
    from pipeprof.read.spool.sections import Structure
    from pipeprof.read.spool.steps import Step
    from pipeprof.read.tables.rows import RankRows


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
        paths: list[str] = []
        stacks: list[list[str]] = []
        for name, around, frame in event["kinds"]:
            outer = around if 0 <= around < len(paths) else None
            paths.append(name if outer is None else f"{paths[outer]}/{name}")
            stacks.append(([frame] if frame else []) + ([] if outer is None else stacks[outer]))
        for kind, begin, end in event["rows"]:
            if kind < len(paths):
                scope, _, name = paths[kind].rpartition("/")
                out.add(
                    "span", track="main", category="cell", name=name, start_ns=out.at(begin),
                    dur_ns=max(0, end - begin), stack_id=out.stack_id(stacks[kind]), scope=scope or None,
                )  # fmt: skip


def add_scopes(placed: Sequence[Placed], steps: Sequence[Step], out: RankRows) -> None:
    """Write the cells of graphs, which are in the names of their operators, of the first recorded step after warm-up.

    One span per stretch of operators of a cell, from the start of the first to the end of the last, in those around it.
    """
    of_step: dict[int, list[Placed]] = defaultdict(list)
    for item in placed:
        if item.step is not None and item.name.count("/") > 1 and steps[item.step].kind == "train":
            of_step[item.step].append(item)
    stretches: list[tuple[str, int, int]] = []
    around: list[tuple[str, int, int]] = []  # name, begin and end so far, the outermost first
    for item in of_step[min(of_step)] if of_step else ():
        names, begin = item.name.split("/")[:-1], item.execution.start_ns
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], zip(names, around, strict=False)))
        stretches += _closed(around, kept)
        around = [*around[:kept], *((name, begin, begin) for name in names[kept:])]
        around = [(name, first, max(last, begin + item.execution.dur_ns)) for name, first, last in around]
    for path, begin, end in stretches + _closed(around, 0):
        scope, _, name = path.rpartition("/")
        out.add(
            "span", track="modules", category="cell", name=name, start_ns=out.at(begin), dur_ns=end - begin,
            scope=scope or None,
        )  # fmt: skip


def _closed(around: Sequence[tuple[str, int, int]], kept: int) -> list[tuple[str, int, int]]:
    """The stretches behind the first `kept`, by their paths."""
    names = [name for name, _, _ in around]
    return [("/".join(names[: at + 1]), *around[at][1:]) for at in range(kept, len(around))]


def undisturbed(process: Process, steps: Sequence[Step], known: Mapping[int, Structure]) -> Mapping[int, Structure]:
    """The structures of steps in which no call of a cell was waited for; all of them where there is no other."""
    waited = [int(event["rows"][0][1]) for event in process.all("cells") if event["rows"]]
    left = {
        index: structure
        for index, structure in known.items()
        if not any(steps[index].start <= time < steps[index].end for time in waited)
    }
    return left or known
