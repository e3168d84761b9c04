"""Quantiles of Student's t distribution for whole degrees of freedom, without scipy."""

from __future__ import annotations

from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist

MANY = 200  # from here on the normal distribution is within 1 % of the quantile


def inside(t: float, freedom: int) -> float:
    """Probability that |T| <= t. The finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2 == 1
    term = total = cos(angle) if odd else 1.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    if freedom == 1:
        return 2 * angle / pi
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def quantile(alpha: float, freedom: int) -> float:
    """The t that |T| exceeds with probability `alpha` (two-sided). Raises ValueError when nothing is free."""
    if freedom < 1 or not 0 < alpha < 1:
        raise ValueError(f"no quantile for alpha {alpha} and {freedom} degrees of freedom")
    if freedom >= MANY:
        return NormalDist().inv_cdf(1 - alpha / 2)
    low, high = 0.0, 1.0
    while inside(high, freedom) < 1 - alpha and high < 1e12:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle, freedom) < 1 - alpha else (low, middle)
    return high
