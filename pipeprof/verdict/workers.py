"""How many workers the operators of a dataset pipeline should have. Pure; formulas: docs/diagnosis.md."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.verdict.capacity import Change, Loop, lowest_rate, rate_with

if TYPE_CHECKING:
    from collections.abc import Sequence


def enough_workers(loop: Loop, op_id: int) -> int | None:
    """Smallest number of workers, at most the CPU count, with which the operator is not what limits the loop.

    W = ceil(target S_j / 1e9), target = the next lowest capacity. For a source, where more can be less, the
    numbers are tried in turn. When none is enough, the smallest that makes the most. None when it was not timed.
    """
    stage = next((stage for stage in loop.stages if stage.op_id == op_id), None)
    if stage is None or stage.rate is None:
        return None
    target, _ = lowest_rate(loop, stage, math.inf)
    numbers = range(1, max(1, loop.cpu_count) + 1)
    rates = [(rate, workers) for workers in numbers if (rate := rate_with(stage, workers)) is not None]
    enough = [workers for rate, workers in rates if rate >= target * (1 - 1e-9)]
    if enough:
        return min(enough)
    return max(rates, key=lambda item: (item[0], -item[1]))[1] if rates else None


def plan(loop: Loop) -> list[Change]:
    """Workers for each operator that should have more: the lowest is raised again and again while cores suffice.

    What Plumber (MLSys 2022) finds with a linear program: sum(kappa rho W) <= cores. CPU per batch is taken
    as constant. Ends at the consumer, at an operator that more workers do not help, or without free cores.
    """
    stages = {stage.op_id: stage for stage in loop.stages if stage.rate is not None}
    changed: dict[int, int] = {}
    while stages:
        lowest = min(stages.values(), key=lambda stage: (stage.rate or 0.0, stage.op_id))
        rate = lowest.rate or 0.0
        more = lowest.workers + 1
        better = rate_with(lowest, more)
        stop = (loop.consumer is not None and rate >= loop.consumer) or more > loop.cpu_count
        if stop or lowest.kind in ("gil", "burst") or better is None or better <= rate:
            break
        raised = replace(lowest, workers=more, rate=better)
        following = {**stages, lowest.op_id: raised}
        if _cores(loop, [stage.rate or 0.0 for stage in following.values()]) > loop.room:
            break
        stages = following
        changed[lowest.op_id] = more
    return [Change(op_id, workers=workers) for op_id, workers in sorted(changed.items())]


def _cores(loop: Loop, rates: Sequence[float]) -> float:
    """Cores that the whole loop would use at its new rate, at the same CPU time for each batch."""
    new = min([*rates, *([loop.consumer] if loop.consumer is not None else [])])
    used = loop.process_cores
    if used is None:
        used = sum(stage.cores or 0.0 for stage in loop.stages)
    return used * new / loop.rate if loop.rate else 0.0
