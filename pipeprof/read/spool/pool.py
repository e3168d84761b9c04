"""Memory of operators from MindSpore's pool, whose use is recorded whenever it changes, but not for whom."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.mindspore_ops import Execution, PoolSample
    from pipeprof.read.spool.operators import Placed, Recorded


def changes_of(placed: Sequence[Placed], recorded: Recorded) -> list[int | None]:
    """Bytes allocated less freed for each placed execution; what ran in the warm-up steps of windows has its own."""
    executions = sorted((*recorded.led, *recorded.executions), key=lambda execution: execution.start_ns)
    net_bytes = changes(recorded.pool, executions, sorted(recorded.windows))
    of_start = {(one.start_ns, one.name): change for one, change in zip(executions, net_bytes, strict=True)}
    return [of_start[item.execution.start_ns, item.execution.name] for item in placed]


def changes(
    pool: Sequence[PoolSample], executions: Sequence[Execution], windows: Sequence[tuple[int, int]]
) -> list[int | None]:
    """Bytes allocated less freed for each execution; None in a window without samples. All in order of time, ns.

    MindSpore allocates what a kernel writes before it starts it, and frees what nothing reads any more behind it. So a
    change while an operator runs is of that one; between two, what is allocated is for the later one, and what is freed
    is of the one before.
    """
    begins = [begin for begin, _ in windows]
    starts = [execution.start_ns for execution in executions]
    recorded = {_window(begins, sample.t_ns) for sample in pool}
    net_bytes = [0 if _window(begins, start) in recorded else None for start in starts]
    for before, sample in pairwise(pool):
        change = sample.allocated - before.allocated
        window = _window(begins, sample.t_ns)
        if not change or window != _window(begins, before.t_ns):
            continue
        at = bisect_right(starts, sample.t_ns) - 1
        runs = at >= 0 and sample.t_ns <= starts[at] + executions[at].dur_ns
        owner = at if runs or change < 0 else at + 1
        if 0 <= owner < len(starts) and _window(begins, starts[owner]) == window:
            net_bytes[owner] = (net_bytes[owner] or 0) + change
    return net_bytes


def _window(begins: Sequence[int], at: int) -> int:
    """The number of the window that began last."""
    return bisect_right(begins, at) - 1
