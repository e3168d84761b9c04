"""Does memory grow from step to step? Pure: rows of the query memory/growth in, verdicts out.

docs/memory.md says how the slope is measured and why the thresholds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import MemoryGrowth

LEAST_BYTES = 1 << 20  # growth over all steps seen that counts: allocators move by pages and arenas
LEAST_SHARE = 0.01  # of the first floor; the larger of the two
PYNATIVE, PYNATIVE_BYTES = "pynative", 49 << 10  # that MindSpore 2.10 keeps of each step, also without a recorder
Z = 2.58  # the slope's interval is one of 99 %

TRAINER, HOST_POOL = "trainer", "CPU"
GROWING, STEADY, SHRINKING, UNCLEAR = "growing", "steady", "shrinking", "unclear"


def judge_growth(row: MemoryGrowth, mode: str | None = None) -> dict[str, Any]:
    """The row with `verdict`, `grown_bytes` (slope x steps seen), `threshold_bytes` and `why_code`.

    growing or shrinking: the interval of the slope leaves out 0, and the change over the steps seen is at least the
    threshold, also without its largest jump. steady: whatever the interval holds, the change is below the threshold, or
    no more than what MindSpore keeps of each PyNative step (`mode`) in the training's process, which is no leak of it.
    unclear: neither, or too few steps; it is never taken for steady.
    """
    threshold = max(LEAST_BYTES, LEAST_SHARE * (row.first_bytes or 0))
    slope, low, high = row.slope_bytes, row.slope_low_bytes, row.slope_high_bytes
    span = row.span_steps or 0
    keeps = PYNATIVE_BYTES if mode == PYNATIVE and row.device == "process" and row.name == TRAINER else 0
    verdict, why = _verdict(row, threshold, keeps)
    return {
        **asdict(row),
        "verdict": verdict,
        "grown_bytes": None if slope is None else slope * span,
        "grown_low_bytes": None if low is None else low * span,
        "grown_high_bytes": None if high is None else high * span,
        "threshold_bytes": threshold,
        "why_code": why,
    }


def _verdict(row: MemoryGrowth, threshold: float, keeps: int) -> tuple[str, str]:
    slope, low, high = row.slope_bytes, row.slope_low_bytes, row.slope_high_bytes
    rise, fall, span = row.most_rise_bytes, row.most_fall_bytes, row.span_steps
    if slope is None or low is None or high is None or rise is None or fall is None:
        return UNCLEAR, "few_parts"
    change, most = slope * span, max(abs(low), abs(high)) * span
    between = row.last_bytes - row.first_bytes  # a jump in the middle makes slope x steps larger than itself
    if low > 0 and min(change, between) - max(rise, 0) >= threshold:
        return _beyond(low, high, keeps, grows=(slope - keeps) * span >= threshold) if keeps else (GROWING, "grew")
    if high < 0 and min(-change, -between) - max(fall, 0) >= threshold:
        return SHRINKING, "shrank"
    if most < threshold:
        return STEADY, "below_threshold"
    if low > 0 and change >= threshold:
        return UNCLEAR, "one_jump"
    return UNCLEAR, "wide_interval"


def _beyond(low: float, high: float, keeps: int, *, grows: bool) -> tuple[str, str]:
    """Of memory that grows: whether by more than MindSpore keeps of each step. `grows`: without that by enough."""
    if low > keeps and grows:
        return GROWING, "grew"
    return (STEADY, "mindspores_own") if high <= 2 * keeps else (UNCLEAR, "mindspores_own")


def worst(judged: Sequence[Mapping[str, Any]]) -> str:
    """The verdict over the training's own series: growing wins, then unclear, then shrinking; none is `not_measured`.

    See `_counting` for what counts.
    """
    verdicts = {row["verdict"] for row in _counting(judged)}
    return next((verdict for verdict in (GROWING, UNCLEAR, SHRINKING, STEADY) if verdict in verdicts), "not_measured")


def why_unclear(judged: Sequence[Mapping[str, Any]]) -> str:
    """Why `worst` is unclear, as a code: of several, that of a series with enough samples."""
    codes = {row["why_code"] for row in _counting(judged) if row["verdict"] == UNCLEAR}
    return next(code for code in ("one_jump", "wide_interval", "mindspores_own", "few_parts") if code in codes)


def _counting(judged: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The training's own series, which the whole host and the launcher are not.

    Where the training's process has enough samples, pools of host memory and other processes that have too few of them
    do not count: what the pool holds is part of what the process holds, and dataset workers may live short.
    """
    own = [row for row in judged if is_own(row)]
    enough = {(row["rep"], row["rank"]) for row in own if row["name"] == TRAINER and row["slope_low_bytes"] is not None}
    return [
        row
        for row in own
        if row["slope_low_bytes"] is not None
        or row["device"] not in (HOST_POOL, "process")
        or (row["rep"], row["rank"]) not in enough
    ]


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether a series is the training's own: a pool of the framework, or one of its processes."""
    return bool(row["device"] != "host" and row["name"] != "launcher")
