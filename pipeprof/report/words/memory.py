"""Why memory is said to grow, to shrink or to stay, and how its blocks are known, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeprof.units import format_bytes, format_count, format_ratio
from pipeprof.verdict.memory import PYNATIVE_BYTES, is_own

Row = Mapping[str, Any]

LEAST_PARTS = 7  # that the query memory/growth needs for an interval


def worded(row: Row) -> dict[str, Any]:
    """A row of verdict/memory.judge_growth with `why`, a sentence."""
    others = "" if is_own(row) else "; not the training itself, so not a leak of it"
    return {**row, "why": WHY[row["why_code"]](row) + others}


def reconstructed(rows: Sequence[Row]) -> str:
    """How the lifetimes of blocks were found, from rows of memory/evidence; empty for recorded ones."""
    if not rows:
        return ""
    released = sum(row["released_bytes"] for row in rows)
    said = "Lifetimes are reconstructed from the changes of MindSpore's pool, by size"
    if not released:
        return f"{said}; no block was released."
    parts = (
        ("matched", "match a block exactly"),
        ("inferred", "are of a size that was chosen"),
        ("earlier", "were there before the op window"),
    )
    shares = [f"{format_ratio(sum(row[f'{name}_bytes'] for row in rows) / released)} {what}" for name, what in parts]
    return f"{said}: of the bytes released, {shares[0]}, {shares[1]}, {shares[2]}."


def one_device(peaks: Sequence[Row]) -> list[str]:
    """Of which device the blocks are that are shown, where there are several, from rows of memory/peak."""
    devices = [row["device"] or "an unnamed device" for row in peaks if row["devices"] > 1]
    shown = ", ".join(dict.fromkeys(devices))
    return [f"peak and blocks are those of the device that held the most: {shown}"] if devices else []


def maker(row: Row, *, pool: bool) -> str:
    """The name of what made a block; `pool`: lifetimes are reconstructed, so that the first blocks are of before."""
    return row["name"] or ("(before the op window)" if pool else "(unknown)")


def _moved(verb: str, sign: int) -> Callable[[Row], str]:
    def said(row: Row) -> str:
        ends = sorted((sign * row["slope_low_bytes"], sign * row["slope_high_bytes"]))
        interval = f"99 % interval {format_bytes(ends[0])} to {format_bytes(ends[1])}"
        return f"{verb} by {format_bytes(sign * row['slope_bytes'])} per step ({interval})"

    return said


def _wide(row: Row) -> str:
    ends = f"{format_bytes(row['slope_low_bytes'])} and {format_bytes(row['slope_high_bytes'])}"
    parts = f"{row['rises']} of {row['blocks'] - 1} parts of the training began higher than the one before"
    return f"between {ends} per step (99 % interval): {parts}; record more steps"


WHY: dict[str, Callable[[Row], str]] = {
    "few_parts": lambda row: (
        f"only {format_count(row['blocks'], 'part')} of the training {'has' if row['blocks'] == 1 else 'have'} samples,"
        f" at least {LEAST_PARTS} are needed: record more steps"
    ),
    "grew": _moved("grew", 1),
    "shrank": _moved("shrank", -1),
    "mindspores_own": lambda row: (
        f"{_moved('grew', 1)(row)}, about what MindSpore itself keeps of each PyNative step "
        f"({format_bytes(PYNATIVE_BYTES)}): not a leak of the training"
    ),
    "below_threshold": lambda row: (
        f"changed by less than {format_bytes(row['threshold_bytes'])} over {format_count(row['steps'], 'step')}"
    ),
    "one_jump": lambda row: f"most of it is one jump of {format_bytes(row['most_rise_bytes'])}; record more steps",
    "wide_interval": _wide,
}
