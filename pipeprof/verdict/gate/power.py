"""What looks that follow can still tell, and how small a change a number of repetitions finds. Pure."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from pipeprof.verdict.gate.statistics import LEVEL, MOST_REPS, repetitions_needed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.statistics import Array, Change

HOPELESS = 0.05  # chance of an answer below which a session is not worth its time
SURE = 0.05  # the spread that the chance is worked out with is exceeded by the true one in all but so many cases
MOST_PERCENT = 50


def chances(change: Change, least: Array, margin: Array, reps: int, last: Look) -> tuple[Array, Array]:
    """Chance that the look `last` will say regressed, and that it will say anything but inconclusive, per metric.

    From the change after `reps` repetitions per side, by how far the mean still moves (predictive, flat prior). In
    favour of going on: the spread is taken at the lower end of its 95 % range, and all of the last look's alpha is
    there for each metric. `change`, `least`, `margin` as `decide` takes them.
    """
    unit = change.error * math.sqrt(reps)
    moves = unit * math.sqrt(max(1 / reps - 1 / last.reps, 0.0))
    low = unit * np.sqrt(change.df / special.chdtri(change.df, SURE)) / math.sqrt(last.reps)
    df = 2.0 * (last.reps - 1)
    limit = np.maximum(least, -special.stdtrit(df, last.alpha) * low)
    room = margin - special.stdtrit(df, 0.5 + LEVEL / 2) * low
    worse = _beyond(change.difference - limit, moves)
    better = _beyond(-change.difference - limit, moves)
    same = _beyond(room - change.difference, moves) - _beyond(-room - change.difference, moves)
    decided: Array = np.minimum(worse + better + np.where(room > 0, same, 0.0), 1.0)  # a small change may be either
    return worse, decided


def hopeless(worse: Array, decided: Array, undecided: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether going on will not decide: none of the undecided metrics regresses, and one of them stays undecided.

    All (..., metrics); gives (...).
    """
    any_worse = np.where(undecided, worse, 0.0).sum(axis=-1)
    lost: NDArray[np.bool_] = (any_worse < HOPELESS) & (np.where(undecided, decided, 1.0).min(axis=-1) < HOPELESS)
    return lost


def repetitions_to_find(spread: float, change: float, least: float, level: float, power: float) -> int | None:
    """Repetitions per side that find a `change` (0.05 is 5 %) with this power at this level; None: more than 200.

    `spread`: standard deviation of the logarithm between repetitions; `least`: least change that counts, as logarithm.
    None, too, for a change that does not count.
    """
    effect = math.log1p(change)
    if effect <= least:
        return None
    sure = repetitions_needed(spread, effect, level, power)
    large = 2 * (NormalDist().inv_cdf(power) * spread / (effect - least)) ** 2
    return None if sure is None or large > MOST_REPS else max(sure, math.ceil(large))


def least_found(spread: float, least: float, reps: int, level: float, power: float) -> float | None:
    """The least change, in whole percents, that so many repetitions per side find; None where not even 50 % is."""
    for percent in range(1, MOST_PERCENT + 1):
        needed = repetitions_to_find(spread, percent / 100, least, level, power)
        if needed is not None and needed <= reps:
            return percent / 100
    return None


def _beyond(distance: Array, spread: Array) -> Array:
    """Chance that a normal value of this spread stays below the distance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(distance, dtype=float) / spread
    chance: Array = special.ndtr(np.where(spread > 0, ratio, np.where(np.asarray(distance) >= 0, np.inf, -np.inf)))
    return chance
