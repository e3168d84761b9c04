"""The numbers a verdict rests on, over arrays. Pure; formulas and sources: docs/gate-statistics.md.

Every function takes repetitions on the last axis and works on all leading axes at once, so that simulations of the
error rates run the code that judges. The order of repetitions changes no bit of a result: values are sorted first.

Sides so far apart that no test is needed: a rule beside the test, measured in docs/gate-numbers.md. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.verdict.gate.policy import Rule

    Array = NDArray[np.float64]


LEVEL = 0.95  # of the intervals that are shown and that "unchanged" is decided by
MOST_REPS = 200  # nobody runs more; beyond, "repetitions needed" has no answer
LEAST_COMMON = 3  # metrics: of fewer, the median is one of the two or between them, and takes a real change along


@dataclass(frozen=True)
class Change:
    """Difference new - base, its standard error and degrees of freedom: three arrays of one shape."""

    difference: Array
    error: Array
    df: Array

    def t(self) -> Array:
        """Difference / error; without any spread 0 for no difference, else infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.difference / self.error
        return np.where(
            self.error > 0, ratio, np.where(self.difference == 0, 0.0, np.copysign(np.inf, self.difference))
        )

    def p_above(self) -> Array:
        """One-sided p value (0..1) against "new is not above base"; 0 for a difference without spread."""
        t = self.t()
        p = special.stdtr(self.df, -np.where(np.isinf(t), 0.0, t))
        return np.where(np.isposinf(t), 0.0, np.where(np.isneginf(t), 1.0, p))

    def interval(self, level: float = LEVEL) -> tuple[Array, Array]:
        """Lower and upper end of the two-sided confidence interval of the difference."""
        reach = special.stdtrit(self.df, 0.5 + level / 2) * self.error
        return self.difference - reach, self.difference + reach

    def mirrored(self) -> Change:
        """The change from new to base."""
        return Change(-self.difference, self.error, self.df)


def moments(values: Array) -> tuple[Array, Array]:
    """Mean and variance (n - 1) over the last axis; exactly 0 variance for equal values. One value: variance 0."""
    ordered = np.sort(np.asarray(values, dtype=float), axis=-1)
    above = ordered - ordered[..., :1]
    number = ordered.shape[-1]
    mean = np.add.reduce(above, axis=-1) / number  # .mean() and .var() take most of their time to begin
    if number == 1:
        return ordered[..., 0] + mean, np.zeros(ordered.shape[:-1])
    away = above - mean[..., None]
    return ordered[..., 0] + mean, np.add.reduce(away * away, axis=-1) / (number - 1)


def welch(base: Array, new: Array) -> Change:
    """Welch's t for unequal variances (Welch 1947; degrees of freedom after Satterthwaite 1946).

    `base` (..., n), `new` (..., m): values on the scale that is judged, mostly logs. Two or more on each side.
    """
    (base_mean, base_var), (new_mean, new_var) = moments(base), moments(new)
    base_n, new_n = np.shape(base)[-1], np.shape(new)[-1]
    a, b = base_var / base_n, new_var / new_n
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.maximum(a, b)  # squares of huge variances would overflow
        x, y = a / scale, b / scale
        df = (x + y) ** 2 / (x**2 / (base_n - 1) + y**2 / (new_n - 1))
    df = np.where(np.isfinite(df), df, float(base_n + new_n - 2))
    return Change(new_mean - base_mean, np.sqrt(a + b), df)


def job_means(values: Array, jobs: Sequence[str]) -> Array:
    """Mean of each job, (..., jobs) in the order of the jobs' names; `values` (..., n) and `jobs` n names."""
    names = np.asarray(jobs)
    return np.stack([moments(values[..., names == name])[0] for name in sorted(set(jobs))], axis=-1)


def job_effect(base: Array, new: Array) -> Change:
    """Change between sides that were measured in different jobs: the job is the unit. `base`, `new`: means of jobs.

    t = (mean new - mean base) / (s sqrt(1/J_new + 1/J_base)), s the standard deviation of the J_base means: the spread
    from job to job is known from the base alone, hence J_base - 1 degrees of freedom.
    """
    (base_mean, base_var), (new_mean, _) = moments(base), moments(new)
    jobs = 1 / base.shape[-1] + 1 / new.shape[-1]
    df = np.full(np.shape(base_mean), float(base.shape[-1] - 1))
    return Change(new_mean - base_mean, np.sqrt(base_var * jobs), df)


def assumed_job_effect(change: Change, spread: float, base_jobs: int, new_jobs: int) -> Change:
    """A change between repetitions of different jobs, with a spread from job to job that is assumed, not measured."""
    return Change(change.difference, np.sqrt(change.error**2 + spread**2 * (1 / base_jobs + 1 / new_jobs)), change.df)


def blocked(base: Array, new: Array, base_jobs: Sequence[str], new_jobs: Sequence[str]) -> Change:
    """Change within jobs that both sides share: least squares with one effect per job (randomised blocks).

    Each job counts with n_base n_new / (n_base + n_new); degrees of freedom n - jobs - 1. Two or more jobs, all shared.
    """
    weights, differences, squares = [], [], np.zeros(base.shape[:-1])
    for name in sorted(set(base_jobs)):
        left, right = base[..., np.asarray(base_jobs) == name], new[..., np.asarray(new_jobs) == name]
        (left_mean, left_var), (right_mean, right_var) = moments(left), moments(right)
        sizes = left.shape[-1], right.shape[-1]
        weights.append(sizes[0] * sizes[1] / sum(sizes))
        differences.append(right_mean - left_mean)
        squares = squares + left_var * (sizes[0] - 1) + right_var * (sizes[1] - 1)
    weight, difference = np.asarray(weights), np.stack(differences, axis=-1)
    mean = difference @ weight / weight.sum()
    squares = squares + (difference - mean[..., None]) ** 2 @ weight
    df = base.shape[-1] + new.shape[-1] - len(weights) - 1
    return Change(mean, np.sqrt(squares / df / weight.sum()), np.full(np.shape(mean), float(df)))


def holm(p_values: Array, alpha: float, family: int) -> Array:
    """What each p value is held against: significant where p <= that (Holm 1979, step-down).

    `p_values` (..., metrics). With `family` above the number of metrics, those not judged count as p = 1.
    """
    order = np.argsort(p_values, axis=-1, kind="stable")
    ranked = np.take_along_axis(p_values, order, axis=-1)
    number = p_values.shape[-1]
    steps = alpha / (max(family, number) - np.arange(number))
    passed = np.logical_and.accumulate(ranked <= steps, axis=-1).sum(axis=-1, keepdims=True)
    held = steps[np.minimum(np.arange(number), passed).clip(max=number - 1)]
    out = np.empty_like(np.asarray(p_values, dtype=float))
    np.put_along_axis(out, order, held, axis=-1)
    return out


def common_mode(logs: Array) -> Array:
    """Median over the metrics in each repetition, (..., reps) of `logs` (..., metrics, reps); NaN: not measured."""
    if np.isnan(logs).any():
        return np.asarray(np.nanmedian(logs, axis=-2))
    return np.asarray(np.median(logs, axis=-2))


def repetitions_needed(spread: float, effect: float, alpha: float, power: float, most: int = MOST_REPS) -> int | None:
    """Repetitions per side with which a one-sided t test at `alpha` finds `effect` with probability `power`.

    `spread`: standard deviation between repetitions, on the scale of `effect`. Non-central t with 2 (n - 1) degrees of
    freedom and effect / (spread sqrt(2/n)). None when more than `most` are needed.
    """
    if spread == 0:
        return 2
    if not _power(most, spread, effect, alpha) >= power:
        return None
    low, high = 1, most  # the power grows with the number: too few with `low`, enough with `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, spread, effect, alpha) >= power else (middle, high)
    return high


def _power(number: int, spread: float, effect: float, alpha: float) -> float:
    """Chance of a one-sided t test with `number` repetitions per side."""
    df, centre = 2.0 * (number - 1), effect / (spread * math.sqrt(2 / number))
    limit = -float(special.stdtrit(df, alpha))
    chance = 1 - float(special.nctdtr(df, centre, limit))
    return float(centre > limit) if math.isnan(chance) else chance  # far out, where the function has no value


LEAST_REPS = 3  # of two a side, identical code of the measured processes lies apart too often
GAP = math.log(3)  # step times of identical code on an overloaded host differ by up to 2.1x
FLOORS = 40  # of the metric: 2 ms for times, which a busy host adds to a wait of any length
SHARE = 0.002  # of alpha, more than was measured in any source: a policy that allows less does without the rule


def clear_distance(base: Array, new: Array, rule: Rule) -> Array:
    """How far the sides lie apart, (...): above 0 where new is above base, below 0 under it, 0 where it takes a test.

    `base` (..., n) and `new` (..., m), values of one metric. A distance is the logarithm of the ratio between the
    nearest two repetitions of both sides, with `FLOORS` floors added to each value. It has to be at least as large as
    the range of either side.
    """
    blur, reps = FLOORS * rule.floor, min(base.shape[-1], new.shape[-1])
    if reps < LEAST_REPS or min(base.min(), new.min()) + blur <= 0:
        return np.zeros(base.shape[:-1])
    (base_low, base_high), (new_low, new_high) = (_ends(np.log(side + blur)) for side in (base, new))
    above, below = new_low - base_high, base_low - new_high
    distance = np.maximum(above, below)
    ranges = np.maximum(base_high - base_low, new_high - new_low)
    needed = np.maximum(GAP, ranges)
    return np.where(distance >= needed, np.where(above > below, distance, -distance), 0.0)


def _ends(values: Array) -> tuple[Array, Array]:
    return values.min(axis=-1), values.max(axis=-1)
