"""Which commit made it slower, as probabilities over commits after measurements that vary. Pure.

The logarithm of a measurement is a level, plus the size of the change from the first slow commit on, plus noise of one
unknown spread. Level and spread are integrated out (flat, and a scaled inverse chi-squared with `SPREAD` at `WEIGHT`
measurements); the size has a prior on a grid, so that "no commit made it slower" is one more hypothesis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIZES = np.geomspace(math.log(1.02), math.log(2.0), 32)  # of the change, in logarithms, equally probable
NO_CHANGE = 0.1  # prior
SPREAD, WEIGHT = 0.02, 2.0  # what is thought of the noise before anything was measured
LEAST_AT_ENDS = 3  # measurements of the good and of the bad end before anything else is measured
SURE = 0.995  # of a commit, to name it: 1 % of the named ones may be wrong, measured on noise that is not the model's
SURE_OF_NONE = 0.99
UNSURE = 0.05  # of no change at all: the ends are measured, which tell most about it


@dataclass(frozen=True)
class Posterior:
    """Probabilities (0..1): `none` of no change, `first[k]` that commit k is the first slow one; `ratio`: its mean."""

    none: float
    first: Array
    ratio: float

    def cells(self, measurable: Sequence[int]) -> list[tuple[range, float]]:
        """Commits that cannot be told apart, and the probability of each group: those up to the next measurable one."""
        found, start = [], 1
        for commit in measurable:
            if commit >= start:
                found.append((range(start, commit + 1), float(self.first[start : commit + 1].sum())))
                start = commit + 1
        return found

    def likeliest(self, measurable: Sequence[int]) -> tuple[range, float]:
        """The most probable group of `cells`."""
        return max(self.cells(measurable), key=lambda cell: cell[1])

    def interval(self, share: float) -> range:
        """The fewest neighbouring commits around the likeliest with `share` of the probability of a change."""
        weights = self.first / max(self.first.sum(), 1e-300)
        low = high = int(weights.argmax())
        while weights[low : high + 1].sum() < share and (low > 1 or high < len(weights) - 1):
            lower = weights[low - 1] if low > 1 else -1.0
            upper = weights[high + 1] if high < len(weights) - 1 else -1.0
            low, high = (low - 1, high) if lower > upper else (low, high + 1)
        return range(low, high + 1)


def posterior(measured: Sequence[tuple[int, float]], last: int) -> Posterior:
    """After `measured`: (commit, value above 0), commits from 0, which is good, to `last`, which is bad.

    Every commit after the first is as likely as the others before anything was measured.
    """
    places = np.array([commit for commit, _ in measured], dtype=int)
    logs = np.log(np.array([value for _, value in measured], dtype=float))
    number = len(logs)
    after = places[:, None] >= np.arange(last + 1)  # (measurements, first slow commit)
    counts, sums = after.sum(axis=0)[:, None], (after * (logs - logs.mean())[:, None]).sum(axis=0)[:, None]
    squares = float(((logs - logs.mean()) ** 2).sum())
    left = squares - 2 * SIZES * sums + SIZES**2 * counts - (SIZES * counts) ** 2 / number  # (commits, sizes)
    power, seen = -(number - 1 + WEIGHT) / 2, WEIGHT * SPREAD**2
    scores = power * np.log(np.maximum(left, 0.0) + seen) + math.log((1 - NO_CHANGE) / (last * len(SIZES)))
    none = power * math.log(squares + seen) + math.log(NO_CHANGE)
    scores[0] = -math.inf  # the good end is good
    top = max(none, float(scores.max()))
    chances = np.exp(scores - top)
    total = float(chances.sum()) + math.exp(none - top)
    ratio = math.exp(float((chances.sum(axis=0) * SIZES).sum() / max(chances.sum(), 1e-300)))
    return Posterior(math.exp(none - top) / total, chances.sum(axis=1) / total, ratio)


def next_commit(now: Posterior, counts: Sequence[int], measurable: Collection[int]) -> int:
    """The commit whose next measurement tells most; `counts`: measurements that each commit has.

    A measurement says whether a commit is slow, with the same noise wherever it is made, so it tells most where that is
    most uncertain: where the probability of a change up to there is nearest to a half. The ends say whether there is a
    change at all.
    """
    ends = min((0, len(counts) - 1), key=lambda end: counts[end])
    if counts[ends] < LEAST_AT_ENDS or now.none > UNSURE:
        return ends
    slow = np.cumsum(now.first)
    away = np.abs(slow - slow[-1] / 2)
    return min(sorted(measurable), key=lambda commit: (float(away[commit]), counts[commit]))
