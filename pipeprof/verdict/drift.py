"""Do the steps get slower as the training runs, since when, and what changed with them? Pure: rows of step/course in.

The blocks before and after each split are compared by their ranks (Mann and Whitney), and the split with the largest
score counts; docs/report.md says how often that errs.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.query.rows import Course

BLOCKS = 24
LEAST_BLOCKS, LEAST_SIDE = 12, 3
LEAST_STEPS = 2 * BLOCKS
Z = 3.4  # the largest score of 24 blocks without any order is above it in 0.1 % of trainings (simulated)
LEAST_SLOWER = 0.10  # of the median before

STEADY, STEP, DRIFT, UNCLEAR = "steady", "step", "drift", "unclear"
WAIT, WORK = "data_wait", "work"

_MOST_OF = 0.6  # of the slow-down: the phase that it is in
_COMPILE_SHARE = 0.5  # of the slow-down
_CORES, _THROTTLED, _GROWN, _GROWN_BYTES = 0.3, 0.05, 0.2, 50 << 20


def judge_course(rows: Sequence[Course]) -> list[dict[str, Any]]:
    """One verdict per (rep, rank), in that order.

    `verdict`: step (from `at_step` on: the last `late_steps` of the `steps` whose time counts), drift (over all of it),
    steady, or unclear (too few steps); `before_ns` and `after_ns`: median step; `phase`: data_wait, work or null for
    both; `causes`: what changed with it, codes.
    """
    ranks: dict[tuple[int, int], list[Course]] = {}
    for row in rows:
        ranks.setdefault((row.rep, row.rank), []).append(row)
    return [{"rep": rep, "rank": rank, **_judge(blocks)} for (rep, rank), blocks in sorted(ranks.items())]


def _judge(blocks: Sequence[Course]) -> dict[str, Any]:
    judged: dict[str, Any] = {"verdict": UNCLEAR, "steps": sum(row.steps for row in blocks)}
    judged |= dict.fromkeys(("at_step", "at_ns", "late_steps", "before_ns", "after_ns", "phase"))
    judged["causes"] = []
    if len(blocks) < LEAST_BLOCKS or judged["steps"] < LEAST_STEPS:
        return judged
    times = [row.dur_ns for row in blocks]
    split, score = _largest_split(times)
    before, after = blocks[:split], blocks[split:]
    first, last = _middle(before), _middle(after)
    if score < Z or last < (1 + LEAST_SLOWER) * first:
        return judged | {"verdict": STEADY}
    verdict = DRIFT if _is_straight(times, split) else STEP
    if verdict == DRIFT:
        third = len(blocks) // 3
        before, after = blocks[:third], blocks[-third:]
        first, last = _middle(before), _middle(after)
    else:
        judged |= {"at_step": after[0].first_step, "at_ns": after[0].start_ns}
        judged["late_steps"] = sum(row.steps for row in after)
    return judged | {
        "verdict": verdict,
        "before_ns": first,
        "after_ns": last,
        "phase": _phase(before, after, last - first),
        "causes": [code for code, holds in _CAUSES.items() if holds(before, after, last - first)],
    }


def _largest_split(times: Sequence[float]) -> tuple[int, float]:
    """Where the blocks after are slower than those before by the largest score, and that score."""
    n = len(times)
    ranks = [sum(other < one for other in times) + (sum(other == one for other in times) + 1) / 2 for one in times]
    best = (LEAST_SIDE, -math.inf)
    for k in range(LEAST_SIDE, n - LEAST_SIDE + 1):
        score = (k * (n + 1) / 2 - sum(ranks[:k])) / math.sqrt(k * (n - k) * (n + 1) / 12)
        best = max(best, (k, score), key=lambda one: one[1])
    return best


def _is_straight(times: Sequence[float], split: int) -> bool:
    """Whether a line leaves less of the course unexplained than two levels do; by absolute distances, for spikes."""
    n = len(times)
    slope = median((times[j] - times[i]) / (j - i) for i in range(n) for j in range(i + 1, n))
    start = median(time - slope * at for at, time in enumerate(times))
    line = sum(abs(time - start - slope * at) for at, time in enumerate(times))
    levels = sum(abs(time - median(part)) for part in (times[:split], times[split:]) for time in part)
    return line < levels


def _middle(blocks: Sequence[Course]) -> float:
    return median(row.dur_ns for row in blocks)


def _rise(before: Sequence[Course], after: Sequence[Course], value: Callable[[Course], float | None]) -> float | None:
    """How much higher the median is after; None where one side has nothing."""
    sides = [[one for row in side if (one := value(row)) is not None] for side in (before, after)]
    return median(sides[1]) - median(sides[0]) if all(sides) else None


def _phase(before: Sequence[Course], after: Sequence[Course], slower: float) -> str | None:
    waits = _rise(before, after, lambda row: row.wait_ns) or 0.0
    return WAIT if waits >= _MOST_OF * slower else WORK if slower - waits >= _MOST_OF * slower else None


def _compiles(before: Sequence[Course], after: Sequence[Course], slower: float) -> bool:
    more = [sum(row.compile_ns for row in side) / sum(row.steps for row in side) for side in (before, after)]
    return bool(more[1] - more[0] >= _COMPILE_SHARE * slower)


def _grows(before: Sequence[Course], after: Sequence[Course], _slower: float) -> bool:
    floors = [[row.floor_bytes for row in side if row.floor_bytes is not None] for side in (before, after)]
    if not all(floors):
        return False
    more = median(floors[1]) - median(floors[0])
    return bool(more >= max(_GROWN_BYTES, _GROWN * median(floors[0])))


_CAUSES: dict[str, Callable[[Sequence[Course], Sequence[Course], float], bool]] = {
    "recompilation": _compiles,
    "memory_growth": _grows,
    "neighbour": lambda before, after, _: (_rise(before, after, lambda row: row.neighbour_cores) or 0.0) >= _CORES,
    "throttling": lambda before, after, _: (_rise(before, after, lambda row: row.throttled_share) or 0.0) >= _THROTTLED,
}
