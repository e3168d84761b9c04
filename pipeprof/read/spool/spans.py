"""Intervals that the program named itself (`pipeprof.record_function`), and calls of cells, with their stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def undisturbed(process: Process, steps: Sequence[Step], by_step: Mapping[int, Structure]) -> Mapping[int, Structure]:
    """The structures of steps in which no call of a cell was waited for; all of them where there is no other."""
    waited = [int(event["rows"][0][1]) for event in process.all("cells") if event["rows"]]
    left = {
        index: structure
        for index, structure in by_step.items()
        if not any(steps[index].start <= time < steps[index].end for time in waited)
    }
    return left or by_step
