"""Intervals that the program named itself (`pipeprof.record_function`), calls of cells, waits, and sampled stacks."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.process import Kind
from pipeprof.read.spool.whole_run import timed_parts

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


def add_syncs(process: Process, steps: Sequence[Step], out: RankRows, first_step: int) -> None:
    """One row per step, call and line; a call belongs to the step that it began in, or to none."""
    sites = {int(event["number"]): event for event in process.all("sync_site")}
    begins = [step.start for step in steps]
    waits: dict[tuple[int | None, int], list[int]] = {}
    for mark in process.marks:
        if mark.kind == Kind.SYNC:
            at = bisect_right(begins, mark.begin) - 1
            inside = at >= 0 and mark.begin < steps[at].end
            waits.setdefault((first_step + at if inside else None, mark.subject), []).append(mark.end - mark.begin)
    for (step, subject), times in waits.items():
        site = sites.get(subject, _UNKNOWN)
        out.add(
            "sync", step=step, call=site.get("call"), site=site.get("site") or None, via=site.get("via") or None,
            count=len(times), total_ns=sum(times), max_ns=max(times),
        )  # fmt: skip
