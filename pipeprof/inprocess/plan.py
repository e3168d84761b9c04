"""From the settings of a profile to what is recorded, and where."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pipeprof.collect import LONGEST_MS
from pipeprof.collect.session import default_name
from pipeprof.errors import UsageError
from pipeprof.inprocess.actions import ProfilerAction, ProfilerActivity, Schedule, chosen
from pipeprof.inprocess.recording import Plan


def always(_step: int) -> ProfilerAction:
    """The plan without a schedule: record everything."""
    return ProfilerAction.RECORD


def plan_of(
    activities: Iterable[Any] | None,
    schedule: Callable[[int], ProfilerAction] | None,
    *,
    memory: bool,
    queue_interval_ms: int,
    shapes: bool,
    stacks: bool,
    device: bool = False,
    sample_rate: int = 0,
) -> Plan:
    """What is recorded. Raises UsageError for activities, intervals and rates that cannot be."""
    parts, notes = chosen((activities or "cpu") if device else activities)
    notes += chosen(["CUDA"])[1] if device else []
    if type(queue_interval_ms) is not int or not 1 <= queue_interval_ms <= LONGEST_MS:
        raise UsageError(f"queue_interval_ms is {queue_interval_ms!r}, expected 1 to {LONGEST_MS}")
    if type(sample_rate) is not int or sample_rate < 0:
        raise UsageError(f"sample_rate is {sample_rate!r}, expected a number of operators", "0: every change")
    if schedule is not None and not callable(schedule):
        raise UsageError("schedule is not a function", "use pipeprof.schedule(wait=..., warmup=..., active=...)")
    ops, pipeline = ProfilerActivity.OPS in parts, ProfilerActivity.PIPELINE in parts
    mode = "off" if not ops else "all" if schedule is None else "hand"
    probe = {
        "ops": mode,
        "memory": memory,
        "service": pipeline,
        "stacks": stacks,
        "graph_lines": stacks,
        "shapes": shapes or memory,  # blocks of memory are told apart by what operators write
        "queue_interval_ms": queue_interval_ms if pipeline else 0,
    }
    manifest = {
        "ops": "all" if ops else "off",
        "memory": memory,
        "service": pipeline,
        "queue_interval": queue_interval_ms if pipeline else 0,
        "schedule": _schedule_facts(schedule),
        "activities": sorted(part.value for part in parts),
        "sample_rate": sample_rate,
        "record_shapes": shapes,
        "with_stack": stacks,
    }
    return Plan(probe, manifest, ProfilerActivity.HOST in parts, notes)


def folder_of(out: Path | None, uses: int, *, scheduled: bool) -> Path:
    """Where the runs of the `uses`-th block go: each process of a distributed job has a folder of its own."""
    rank = os.environ.get("RANK_ID", "")
    several = os.environ.get("RANK_SIZE", "1") not in ("", "1")
    ending = f"-rank{rank}" if several and rank else ""
    if out is None:
        return default_name("pipeprof-profiles-" if scheduled else "pipeprof-profile-", ending).absolute()
    path = out.absolute()  # `.` alone has no name
    path = path.with_name(path.name + ending) if path.name else path
    if uses > 1 and not scheduled:
        path = path.with_name(f"{path.name}-{uses}")
    return path


def _schedule_facts(schedule: Callable[[int], ProfilerAction] | None) -> Any:
    if schedule is None:
        return None
    if isinstance(schedule, Schedule):
        return {name: getattr(schedule, name) for name in ("skip_first", "wait", "warmup", "active", "repeat")}
    return getattr(schedule, "__qualname__", type(schedule).__name__)
