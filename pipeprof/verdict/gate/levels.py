"""Base, new and change of one metric from one estimator: the one that its verdict rests on. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.verdict.gate.decision import Kind
    from pipeprof.verdict.gate.statistics import Array, Change

LARGEST = 700.0  # exp of more is no float
MOST = math.exp(LARGEST)  # the end of an interval that says nothing


@dataclass(frozen=True)
class Levels:
    """What is shown of both sides: `ratio` is new / base, None unless base is above 0; `ci_*` its 95 % interval.

    `counts_*`: values of new beyond which a change counts.
    """

    base: float | None
    new: float | None
    ratio: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    counts_below: float | None = None
    counts_above: float | None = None


def level(
    values: Array | Sequence[float], weights: Array | None = None, shift: float = 0.0, kind: Kind = "log"
) -> float:
    """Mean of `values` on the scale of their kind: geometric for log; of value + `shift`, less it, for shifted.

    Exactly the value where all are equal. `weights` add up to 1; without them each value counts alike.
    """
    numbers = [float(value) for value in values]
    parts = [1 / len(numbers)] * len(numbers) if weights is None else [float(part) for part in weights]
    lowest = min(numbers)
    if kind == "linear":
        return lowest + math.fsum(part * (value - lowest) for part, value in zip(parts, numbers, strict=True))
    low = math.log(lowest + shift)  # a quotient of tiny values would overflow
    above = math.fsum(part * (math.log(value + shift) - low) for part, value in zip(parts, numbers, strict=True))
    return (lowest + shift) * math.exp(above) - shift if above < LARGEST else math.exp(low + above) - shift


def usual(values: Sequence[float]) -> float | None:
    """The geometric mean of values that are not judged; the mean when one is not positive; None for none."""
    return level(values, kind="log" if min(values) > 0 else "linear") if values else None


def unjudged(base: Sequence[float], new: Sequence[float]) -> Levels:
    """Both sides of a metric that no test was made of."""
    sides = usual(base), usual(new)
    return Levels(*sides, _ratio(*sides))


def with_interval(base: float, new: float, change: Change, unit: float, shift: float, kind: Kind) -> Levels:
    """Both levels with the interval of `change`, which is on the judged scale; `unit` is what 1 is on a linear one."""
    ratio = _ratio(base, new)
    if ratio is None:
        return Levels(base, new, None)
    ends = [float(end) - float(change.difference) for end in change.interval()]
    if kind == "linear":
        low, high = (ratio + end * unit / base for end in ends)
    else:
        low, high = (((new + shift) * math.exp(min(end, LARGEST)) - shift) / base for end in ends)
    return Levels(base, new, ratio, min(low, MOST), min(high, MOST))


def with_least(shown: Levels, least: float, unit: float, shift: float, kind: Kind) -> Levels:
    """The levels with the values of new from which on it differs by `least`, which is on the judged scale."""
    if shown.base is None:
        return shown
    if kind == "linear":
        ends = shown.base - least * unit, shown.base + least * unit
    else:
        factor = math.exp(min(least, LARGEST))
        ends = (shown.base + shift) / factor - shift, (shown.base + shift) * factor - shift
    below, above = (max(min(end, MOST), -MOST) for end in ends)
    return replace(shown, counts_below=below, counts_above=above)


def _ratio(base: float | None, new: float | None) -> float | None:
    return min(new / base, MOST) if base is not None and new is not None and base > 0 else None
