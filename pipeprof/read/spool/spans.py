"""Intervals that the program named itself (`pipeprof.record_function`), with their Python stacks, if any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.spool.process import Process
    from pipeprof.read.spool.rank import RankRows


def add_named(process: Process, out: RankRows) -> None:
    """Write one span per interval, and one row of `stack` per source location that they share."""
    known: dict[tuple[int | None, str], int] = {}
    for event in process.all("span"):
        begin, end = int(event["begin"]), int(event["end"])
        out.add(
            "span", track=event.get("track"), category=event.get("category"), name=event["label"],
            start_ns=out.at(begin), dur_ns=max(0, end - begin),
            stack_id=_stack_id(event.get("stack") or (), known, out),
        )  # fmt: skip


def _stack_id(frames: Sequence[str], known: dict[tuple[int | None, str], int], out: RankRows) -> int | None:
    """Identity of a source location whose frames are given innermost first; None for an empty one."""
    parent: int | None = None
    for frame in reversed(frames):
        key = (parent, frame)
        if key not in known:
            known[key] = len(known)
            out.add("stack", stack_id=known[key], parent_id=parent, frame=frame)
        parent = known[key]
    return parent
