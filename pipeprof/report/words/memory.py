"""Why memory is said to grow, to shrink or to stay, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Row = Mapping[str, Any]

LEAST_PARTS = 7  # that the query memory/growth needs for an interval


def worded(row: Row) -> dict[str, Any]:
    """A row of verdict/memory.judge_growth with `why`, a sentence."""
    return {**row, "why": WHY[row["why_code"]](row)}


def _moved(verb: str, sign: int) -> Callable[[Row], str]:
    def said(row: Row) -> str:
        ends = sorted((sign * row["slope_low_bytes"], sign * row["slope_high_bytes"]))
        interval = f"99 % interval {format_bytes(ends[0])} to {format_bytes(ends[1])}"
        return f"{verb} by {format_bytes(sign * row['slope_bytes'])} per step ({interval})"

    return said


def _wide(row: Row) -> str:
    ends = f"{format_bytes(row['slope_low_bytes'])} and {format_bytes(row['slope_high_bytes'])}"
    parts = f"{row['rises']} of {row['blocks'] - 1} parts of the training began higher than the one before"
    return f"between {ends} per step: {parts}; record more steps"


WHY: dict[str, Callable[[Row], str]] = {
    "few_parts": lambda row: (
        f"only {format_count(row['blocks'], 'part')} of the training {'has' if row['blocks'] == 1 else 'have'} samples,"
        f" at least {LEAST_PARTS} are needed: record more steps"
    ),
    "grew": _moved("grew", 1),
    "shrank": _moved("shrank", -1),
    "below_threshold": lambda row: (
        f"changed by less than {format_bytes(row['threshold_bytes'])} over {format_count(row['steps'], 'step')}"
    ),
    "one_jump": lambda row: f"most of it is one jump of {format_bytes(row['most_rise_bytes'])}; record more steps",
    "wide_interval": _wide,
}
