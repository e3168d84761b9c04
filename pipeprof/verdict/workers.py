"""How many workers the operators of a dataset pipeline should have. Pure; formulas: docs/diagnosis.md."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipeprof.verdict.capacity import lowest_rate, rate_with

if TYPE_CHECKING:
    from pipeprof.verdict.capacity import Loop


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
