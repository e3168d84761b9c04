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
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIZES = np.geomspace(math.log(1.02), math.log(2.0), 32)  # of the change, in logarithms, equally probable
NO_CHANGE = 0.1  # prior
SPREAD, WEIGHT = 0.02, 2.0  # what is thought of the noise before anything was measured
LEAST_AT_ENDS = 3  # measurements of the good and of the bad end before anything else is measured
SURE = 0.995  # of a commit, to name it: 1 % of the named ones may be wrong, measured on noise that is not the model's
SURE_OF_NONE = 0.99
UNSURE = 0.05  # of no change at all: the ends are measured, which tell most about it
BESIDE = 5  # measurements of a commit and of the one before it before it is named
LIKELY = 0.25  # probability of a commit from which on its two sides are measured in turn
ROUNDS = 2  # of finding out which measurements are far off
FAR = 4.0  # standard deviations; beyond, a measurement counts by the square of how much further off it is
LEAST_TO_WEIGH = 6  # measurements; of fewer nobody knows which is far off
NEAR, OF_NORMAL = (
    0.8,
    1.2816,
)  # the spread is that of the nearest 80 %, which lie within 1.28 deviations of a normal one
LEAST_SPREAD = 0.003


@dataclass(frozen=True)
class Posterior:
    """Probabilities (0..1): `none` of no change, `first[k]` that commit k is the first slow one; `ratio`: its mean."""

    none: float
    first: Array
    ratio: float

    def cells(self, measurable: Sequence[int]) -> list[tuple[range, float]]:
        """Commits that cannot be told apart, and the probability of each group: those up to the next measurable one."""
        ends = [commit for commit in measurable if commit > 0]
        starts = [1, *(end + 1 for end in ends[:-1])]
        sums = np.add.reduceat(self.first[: ends[-1] + 1], starts).tolist()
        return [(range(start, end + 1), chance) for start, end, chance in zip(starts, ends, sums, strict=True)]

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
    after = (places[:, None] >= np.arange(last + 1)).astype(float)  # (measurements, first slow commit)
    weights = np.ones(len(logs))
    none, chances = _weighed(logs, after, weights)
    for _ in range(ROUNDS if len(logs) >= LEAST_TO_WEIGH else 0):
        weights = _weights(logs - after @ (chances @ SIZES))
        none, chances = _weighed(logs, after, weights)
    return Posterior(none, chances.sum(axis=1), math.exp(_size(logs, after, weights, chances)))


def _size(logs: Array, after: Array, weights: Array, chances: Array) -> float:
    """The mean size of the change; one beyond the largest of `SIZES` is how far apart the two levels were measured."""
    total = max(float(chances.sum()), 1e-300)
    mean = float(chances.sum(axis=0) @ SIZES) / total
    slow = after @ chances.sum(axis=1) / total  # how probably each measurement is behind the change
    behind, before = weights * slow, weights * (1 - slow)
    if not min(behind.sum(), before.sum()):
        return mean
    apart = float(behind @ logs / behind.sum() - before @ logs / before.sum())
    return apart if apart > SIZES[-1] else mean


def _weighed(logs: Array, after: Array, weights: Array) -> tuple[float, Array]:
    """Probability of no change, and of each (first slow commit, size), each measurement counting by its weight."""
    number, last, total = len(logs), after.shape[1] - 1, float(weights.sum())
    away = logs - weights @ logs / total
    counts, sums = (weights @ after)[:, None], ((weights * away) @ after)[:, None]
    squares = float(weights @ away**2)
    left = squares - 2 * SIZES * sums + SIZES**2 * counts - (SIZES * counts) ** 2 / total  # (commits, sizes)
    power, seen = -(number - 1 + WEIGHT) / 2, WEIGHT * SPREAD**2
    scores = power * np.log(np.maximum(left, 0.0) + seen) + math.log((1 - NO_CHANGE) / (last * len(SIZES)))
    none = power * math.log(squares + seen) + math.log(NO_CHANGE)
    scores[0] = -math.inf  # the good end is good
    top = max(none, float(scores.max()))
    chances = np.exp(scores - top)
    norm = float(chances.sum()) + math.exp(none - top)
    return math.exp(none - top) / norm, chances / norm


def _weights(rest: Array) -> Array:
    """How much each measurement counts (0..1), by what of it the expected change leaves unexplained."""
    away = np.abs(rest - np.median(rest))
    spread = max(float(np.quantile(away, NEAR)) / OF_NORMAL, LEAST_SPREAD)
    weights: Array = np.minimum(1.0, (FAR * spread / np.maximum(away, 1e-12)) ** 2)
    return weights


def opposite(measured: Sequence[tuple[int, float]], last: int) -> bool:
    """Whether the bad end is surely the lower one, so that the change went the other way."""
    ends = [(int(commit == last), 1 / value) for commit, value in measured if commit in (0, last)]
    return posterior(ends, 1).none < 1 - SURE


def sides(now: Posterior, measurable: Sequence[int]) -> tuple[int, int]:
    """The measurable commits before and behind the likeliest change."""
    cell, _ = now.likeliest(measurable)
    return cell[0] - 1, cell[-1]


def settled(now: Posterior, counts: Sequence[int], measurable: Sequence[int]) -> bool:
    """Whether the likeliest change can be named: it is sure, and both of its sides were measured often enough."""
    return now.likeliest(measurable)[1] >= SURE and min(counts[at] for at in sides(now, measurable)) >= BESIDE


def next_commit(
    now: Posterior, counts: Sequence[int], measurable: Sequence[int], previous: int | None = None,
    seconds: Mapping[int, float] | None = None,
) -> int:  # fmt: skip
    """The commit whose next measurement tells most; `counts`: measurements that each commit has.

    A measurement says whether a commit is slow, with the same noise wherever it is made, so it tells most where that is
    most uncertain: where p (1 - p) is largest, p the probability of a change up to there; by the second, where the
    usual `seconds` of a commit are known. The ends say whether there is a change at all. When there is a likeliest
    change, a commit at its side is not measured twice in a row (`previous`): the other side goes in between, so that
    what the machine does meanwhile hits both.
    """
    ends = min((0, len(counts) - 1), key=lambda end: counts[end])
    if counts[ends] < LEAST_AT_ENDS or now.none > UNSURE:
        return ends
    beside, (_, chance) = sides(now, measurable), now.likeliest(measurable)
    if chance >= SURE:
        return min(beside, key=lambda commit: (counts[commit], commit == previous))
    slow, times = np.cumsum(now.first), seconds or {}
    usual = sum(times.values()) / len(times) if times else 1.0
    gain = slow * (slow[-1] - slow)
    best = max(sorted(measurable), key=lambda at: (float(gain[at]) / times.get(at, usual), -counts[at]))
    return sum(beside) - best if best in beside and best == previous and chance > LIKELY else best
