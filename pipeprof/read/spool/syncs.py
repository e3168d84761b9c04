"""Calls that waited for the network, by step and line, from a process's marks."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.process import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.read.spool.process import Process
    from pipeprof.read.spool.steps import Step
    from pipeprof.read.tables.rows import RankRows

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
