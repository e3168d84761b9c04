"""What noise makes of the differences between ranks that are alike: limits that they stay below. Pure.

Rows are those of rank/phase_diff, of ranks that are compared with each other.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, pi, sin, sqrt
from statistics import median
from typing import TYPE_CHECKING

from pipeprof.verdict.quantile import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.rows import PhaseDiff

ALPHA = 0.01  # chance that any rank of a run is named although all are alike
LEAST_STEPS = 3  # fewer have no noise of their own
QUARTILE_STEPS = 30  # from here on quartiles, which outliers do not move, tell the noise
QUARTILE_FREEDOM = 0.37  # efficiency of quartiles: so many degrees of freedom for each of the standard deviation's
LEAST_RANKS = 4  # fewer do not show what ranks that are alike differ by
MOST_ALIKE = 0.95  # correlation of a step with the one before, at most
SUPPOSED_PAIRS, SUPPOSED_SHARE = 6, 0.597  # of steps that correlate by 0.3, beside those that were seen
OWN_PAIRS = 20  # of steps like the others', beside a rank's own


class Noise:
    """What noise can make of a median difference, from the ranks that are compared.

    Steps are worth less than independent ones when they resemble the step before. Two limits hold: that of the ranks'
    usual spread, which many steps tell, at the level that all tests share; and that of the rank's own spread, which
    few steps tell, so that a rank that varies more than the others is not named for it.
    """

    def __init__(self, rows: Sequence[PhaseDiff], tests: int) -> None:
        self.ranks, self.tests = len(rows), tests
        self.usual = median(_spread(row) for row in rows)
        pairs, same = float(sum(row.pairs for row in rows)), float(sum(row.same_side for row in rows))
        if self.ranks == 2:  # what one of them is longer, the other is shorter
            pairs, same = pairs / 2, same / 2
        made_up = max(1, self.ranks - 1) / 2 if pairs else 0.0  # a series crosses its own median a little more often
        self.share = (same + made_up + SUPPOSED_PAIRS * SUPPOSED_SHARE) / (pairs + SUPPOSED_PAIRS)
        self.seen = (same + made_up + SUPPOSED_PAIRS / 2) / (pairs + SUPPOSED_PAIRS)

    def of(self, row: PhaseDiff) -> tuple[float, float]:
        """Standard error of the rank's median difference, and the limit that noise stays below."""
        steps = row.steps
        freedom = (steps - 1) * _worth(self.seen) * (1.0 if steps < QUARTILE_STEPS else QUARTILE_FREEDOM)
        mine = (row.same_side + 0.5 + OWN_PAIRS * self.share) / (row.pairs + OWN_PAIRS)
        common = 1.2533 * self.usual / sqrt(steps * _worth(self.share))
        own = 1.2533 * _spread(row) / sqrt(steps * _worth(mine))
        shared = common * _limit(ALPHA / self.tests, max(1.0, freedom * max(1.0, (self.ranks - 1) / 2)))
        level = ALPHA / (self.tests if self.ranks == 2 else sqrt(self.tests))
        return max(common, own), max(shared, own * _limit(level, max(1.0, freedom)))


def _spread(row: PhaseDiff) -> float:
    """Standard deviation of the difference over the steps; from the quartiles when there are enough steps."""
    if row.steps >= QUARTILE_STEPS:
        return (row.diff_high_ns - row.diff_low_ns) / 1.349
    return row.diff_sd_ns or 0.0


def _worth(share: float) -> float:
    """How many independent steps one is worth, when `share` of steps are on the side of the step before.

    For normal noise that share is 1/2 + asin(correlation) / pi; it takes no notice of outliers.
    """
    alike = min(MOST_ALIKE, max(0.0, sin(pi * (min(share, 1.0) - 0.5))))
    return (1 - alike) / (1 + alike)


def between_ranks(rows: Sequence[PhaseDiff], tests: int) -> list[float]:
    """What each rank must exceed to be out of line with the others: an outlier's t; 0 with too few ranks to tell."""
    values = [row.median_ns for row in rows]
    others = len(values) - 1
    if len(values) < LEAST_RANKS:
        return [0.0] * len(values)
    reach = _limit(ALPHA / tests, others - 1) * sqrt(1 + 1 / others)
    middle = median(values)  # what all have in common is taken off first: squares of small numbers are exact
    far = [value - middle for value in values]
    total, squares = sum(far), sum(value * value for value in far)
    variances = [((squares - value**2) - (total - value) ** 2 / others) / (others - 1) for value in far]
    return [reach * sqrt(max(0.0, variance)) for variance in variances]


def at_least(count: int, total: int, ranks: int) -> float:
    """Chance that one of `ranks` equal ranks has `count` or more of `total` slow times: the binomial tail."""
    if ranks < 2 or count * ranks <= total:
        return 1.0
    log_term = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    term = exp(log_term - count * log(ranks) + (total - count) * log(1 - 1 / ranks))
    chance = 0.0
    for k in range(count, total + 1):
        chance += term
        if term < 1e-12 * chance:
            break
        term *= (total - k) / (k + 1) / (ranks - 1)
    return chance


@lru_cache(maxsize=4096)
def _limit(alpha: float, freedom: float) -> float:
    """Upper quantile of Student's t at chance `alpha`."""
    return -t_quantile(alpha, freedom)
