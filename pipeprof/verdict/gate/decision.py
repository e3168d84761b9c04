"""From changes to words, over arrays: what counts, and what is held against which alpha. Pure; rules: docs/gate.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipeprof.verdict.gate.statistics import holm, moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.verdict.gate.policy import Rule
    from pipeprof.verdict.gate.result import Word
    from pipeprof.verdict.gate.statistics import Array, Change

# The words of the codes that `decide` gives.
WORDS: tuple[Word, ...] = ("inconclusive", "unchanged", "improved", "regressed")
INCONCLUSIVE, UNCHANGED, IMPROVED, REGRESSED = range(4)

Kind = Literal["log", "shifted", "linear"]
MOST_UNITS = 1e100  # of a value on the linear scale: the squares of larger ones would overflow


@dataclass(frozen=True)
class Scaled:
    """Two sides on the scale they are judged on. `least` and `margin` are differences on it, (...) as the trials.

    `kind`: log; shifted, log of (value + floor) because some values are not positive; linear, relative to the base's
    mean, `unit`, because there is no floor either.
    """

    base: Array
    new: Array
    kind: Kind
    least: Array
    margin: Array
    unit: Array


@dataclass(frozen=True)
class Decision:
    """Per metric, (..., metrics): index into WORDS, one-sided p of "worse", what it was held against.

    `held_better`: what the p of "better", 1 - p, was held against. `untested`: the distance decided, not the test.
    """

    code: NDArray[np.int8]
    p_value: Array
    held: Array
    held_better: Array
    untested: NDArray[np.bool_]


def scaled(base: Array, new: Array, rule: Rule) -> Scaled:
    """`base` (..., n) and `new` (..., m), values of one metric, on the scale that they are judged on."""
    lowest = min(base.min(), new.min())
    shift = 0.0 if lowest > 0 else rule.floor
    if lowest + shift <= 0:
        return _linear(base, new, rule)
    logs = np.log(base + shift), np.log(new + shift)
    level = np.exp(np.minimum(moments(logs[0])[0], moments(logs[1])[0]))
    floor = np.log1p(rule.floor / level)
    least, margin = np.maximum(np.log1p(rule.min_effect), floor), np.maximum(np.log1p(rule.margin), floor)
    return Scaled(*logs, "shifted" if shift else "log", least, margin, np.ones_like(level))


def _linear(base: Array, new: Array, rule: Rule) -> Scaled:
    base_mean, new_mean = np.abs(moments(base)[0]), np.abs(moments(new)[0])
    unit = np.where(base_mean > 0, base_mean, np.where(new_mean > 0, new_mean, 1.0))
    largest = np.maximum(np.abs(base).max(axis=-1), np.abs(new).max(axis=-1))
    unit = np.maximum(unit, largest / MOST_UNITS)
    least, margin = np.maximum(rule.min_effect, rule.floor / unit), np.maximum(rule.margin, rule.floor / unit)
    return Scaled(base / unit[..., None], new / unit[..., None], "linear", least, margin, unit)


def decide(
    change: Change, least: Array, margin: Array, alpha: float, family: int, distance: Array | None = None
) -> Decision:
    """The word for each metric of one family; all arrays (..., metrics), differences above 0 are worse.

    Regressed: p of "worse" at most Holm's share of `alpha`, or a `distance` (of `clear_distance`) above 0; and the
    difference at least `least`. Improved: the mirror. Unchanged: the 95 % interval lies within +-`margin` (which
    implies two one-sided tests at 2.5 %; Schuirmann 1987).
    """
    back = change.mirrored()
    p_worse, p_better = change.p_above(), back.p_above()
    held, held_better = holm(p_worse, alpha, family), holm(p_better, alpha, family)
    far = np.zeros_like(change.difference) if distance is None else distance
    tested_worse, tested_better = p_worse <= held, p_better <= held_better
    worse = (tested_worse | (far > 0)) & (change.difference >= least)
    better = (tested_better | (far < 0)) & (back.difference >= least)
    low, high = change.interval()
    code = np.where((low >= -margin) & (high <= margin), UNCHANGED, INCONCLUSIVE)
    code = np.where(worse, REGRESSED, np.where(better, IMPROVED, code)).astype(np.int8)
    return Decision(code, p_worse, held, held_better, (worse & ~tested_worse) | (better & ~tested_better))
