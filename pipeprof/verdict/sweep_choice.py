"""What follows from a sweep's table: break-even, the Pareto set, the best row for a number of steps. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipeprof.verdict.gate.statistics import welch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["after", "at once", "until", "never", "not told apart", "unknown"]
OBJECTIVES = ("setup", "steady", "peak_memory")


@dataclass(frozen=True)
class BreakEven:
    """From how many steady steps on a row is ahead of the base row, in time since the launch.

    after: from `steps` on. at once: with any number, for its set-up is no longer either. until: its shorter set-up is
    used up after `steps`. never: longer set-up and slower steps. not told apart: its steady steps differ by no more
    than the noise. `low` and `high`: range of `steps` that the 95 % intervals of both differences allow; a None in
    `high` with a number in `low` means that it may never pay.
    """

    kind: Kind
    steps: int | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Difference:
    """A difference between a row and the base row, with the ends of its interval (None without repetitions)."""

    value: float
    low: float | None = None
    high: float | None = None


def difference(base: Sequence[float], new: Sequence[float]) -> Difference | None:
    """Mean of new less mean of base, with Welch's 95 % interval from two values per side on; None without values."""
    if not base or not new:
        return None
    value = math.fsum(new) / len(new) - math.fsum(base) / len(base)
    if min(len(base), len(new)) < 2:
        return Difference(value)
    change = welch(np.asarray(base, dtype=float), np.asarray(new, dtype=float))
    low, high = change.interval()
    return Difference(value, float(low), float(high))


def break_even(setup: Difference | None, steady: Difference | None, steady_word: str) -> BreakEven:
    """When a row pays, from the differences row - base of set-up and of one steady step (same unit).

    setup_row + n steady_row = setup_base + n steady_base gives n = (setup_row - setup_base) / (steady_base -
    steady_row). No number is given for a steady difference that is not told apart from noise.
    """
    if setup is None or steady is None:
        return BreakEven("unknown")
    if steady_word not in ("better", "worse"):
        return BreakEven("not told apart")
    gain = -steady.value
    if gain > 0 >= setup.value:
        return BreakEven("at once", 0)
    if gain <= 0 <= setup.value or gain == 0:
        return BreakEven("never")
    low, high = _range(setup, steady)
    return BreakEven("after" if gain > 0 else "until", math.ceil(setup.value / gain), low, high)


def _range(setup: Difference, steady: Difference) -> tuple[int | None, int | None]:
    """Corners of the two intervals: wider than 95 %, on the safe side."""
    if setup.low is None or setup.high is None or steady.low is None or steady.high is None:
        return None, None
    sign = 1 if steady.value < 0 else -1  # until: a set-up saved against steps lost
    costs = sorted((sign * setup.low, sign * setup.high))
    gains = sorted((-sign * steady.low, -sign * steady.high))
    low = max(0, math.floor(max(costs[0], 0.0) / gains[1])) if gains[1] > 0 else None
    high = math.ceil(costs[1] / gains[0]) if gains[0] > 0 else None
    return low, high


def pareto(rows: Mapping[str, Mapping[str, float]], noise: Mapping[str, float]) -> list[str]:
    """Keys of the rows that no other row beats, in the order given; `rows`: key -> objective -> value, lower is better.

    Row a beats b when it is below b by more than that objective's relative `noise` in at least one, and above it by
    more than that in none. Objectives that some row lacks are left out; without any objective no row is in the set.
    """
    objectives = [name for name in OBJECTIVES if rows and all(name in row for row in rows.values())]

    def beats(one: Mapping[str, float], other: Mapping[str, float], slack: float = 1.0) -> bool:
        factor = {name: 1 + slack * noise.get(name, 0.0) for name in objectives}
        return all(one[name] <= other[name] * factor[name] for name in objectives) and any(
            one[name] * factor[name] < other[name] for name in objectives
        )

    unbeaten = [key for key, row in rows.items() if not any(beats(other, row) for other in rows.values())]
    if unbeaten or not objectives:  # noise can make three rows beat each other in a circle
        return unbeaten if objectives else []
    return [key for key, row in rows.items() if not any(beats(other, row, 0.0) for other in rows.values())]


def chosen(values: Mapping[str, float], words: Mapping[str, str], base: str) -> str:
    """The lowest of the rows whose word is better, else the base row: a gain that may be noise is no reason."""
    better = [key for key in values if words.get(key) == "better"]
    return min(better, key=lambda key: values[key], default=base)


def cost(setup: float, steady: float, steps: int) -> float:
    """Time of a launch, its set-up, and `steps` steady steps, in the unit of both."""
    return setup + steps * steady
