"""Sides so far apart that no test is needed: a rule beside the test, measured in docs/gate-numbers.md. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pipeprof.verdict.gate.policy import Rule
    from pipeprof.verdict.gate.statistics import Array

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
