"""Verdicts on the variants of a sweep: each stage against the base row, at planned looks. Pure; rules: docs/sweep.md.

The statistics are the gate's. Within one stage the alpha holds for all variants and looks together: a look spends its
part of alpha (`spending`), and within a look Holm shares that part among all variants that were planned, whether they
are still measured or not. So the chance that one or more variants without effect are called better is at most alpha,
however many variants there are; the same holds for worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipeprof.verdict.gate.decision import WORDS, decide, scaled
from pipeprof.verdict.gate.planned import spending
from pipeprof.verdict.gate.policy import Rule
from pipeprof.verdict.gate.statistics import LEVEL, Change, moments, welch
from pipeprof.verdict.quantile import t_quantile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Word = Literal["base", "better", "worse", "within noise", "inconclusive", "failed", "not measured"]
Series = "Mapping[int, float]"
DECIDED = frozenset({"better", "worse", "within noise"})
LARGEST = 700.0  # exp of more is no float: the end of an interval that says nothing
_MEANS: dict[str, Word] = {
    "improved": "better",
    "regressed": "worse",
    "unchanged": "within noise",
    "inconclusive": "inconclusive",
}

# What counts as a change of a stage, as in the gate's policy; `setup` is configure and warm-up together.
RULES: dict[str, Rule] = {
    "configure": Rule(unit="ns", min_effect=0.05, floor=50e6, margin=0.10),
    "warmup_first": Rule(unit="ns", min_effect=0.05, floor=5e6, margin=0.10),
    "warmup_second": Rule(unit="ns", min_effect=0.05, floor=1e6, margin=0.10),
    "setup": Rule(unit="ns", min_effect=0.05, floor=50e6, margin=0.10),
    "steady": Rule(unit="ns", floor=50e3),
    "throughput": Rule(unit="1/s", direction="higher"),
    "peak_memory": Rule(unit="bytes", floor=2**20),
    "total": Rule(unit="ns", min_effect=0.05, floor=50e6, margin=0.05),
    "cost": Rule(unit="ns", min_effect=0.02, floor=50e6),
}
STAGES = tuple(name for name in RULES if name != "cost")


@dataclass(frozen=True)
class Estimate:
    """Mean over `reps` repetitions with its 95 % t interval; None for the ends of fewer than two repetitions.

    The geometric mean when all values are above 0, so that the ratio of two estimates is the ratio that is judged.
    """

    value: float
    low: float | None
    high: float | None
    reps: int


@dataclass(frozen=True)
class Judged:
    """One stage of one variant: ratio variant / base with its 95 % interval, and what was held against what.

    `p_value` is one-sided, for the word that was given or the more likely of the two; `look` repetitions were judged,
    None when no look was reached.
    """

    word: Word
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    alpha: float | None = None
    look: int | None = None


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean and interval of one stage of one variant; None without a value."""
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    logs = bool((array > 0).all())
    mean, variance = moments(np.log(array) if logs else array)
    number = len(values)
    reach = t_quantile(0.5 + LEVEL / 2, number - 1) * math.sqrt(variance / number) if number > 1 else 0.0
    ends = [float(mean), float(mean) - reach, float(mean) + reach]
    if logs:
        ends = [math.exp(min(end, LARGEST)) for end in ends]
    return Estimate(ends[0], ends[1] if number > 1 else None, ends[2] if number > 1 else None, number)


def judge_stage(
    base: Mapping[int, float],
    variants: Mapping[str, Mapping[int, float]],
    rule: Rule,
    looks: Sequence[int],
    alpha: float,
    family: int | None = None,
) -> dict[str, Judged]:
    """The verdict on one stage of every variant; `base` and each variant map the round to the value measured in it.

    Look k judges the first k rounds that a variant shares with the base. What is decided stays decided, so the same
    rounds give the same verdicts however often it is asked. `family`: variants planned, at least those given.
    """
    family = max(family or 0, len(variants), 1)
    judged: dict[str, Judged] = {}
    for look, share in zip(looks, spending(alpha, looks), strict=True):
        pairs = {
            name: shared
            for name, series in variants.items()
            if (name not in judged or judged[name].word not in DECIDED)
            and len(shared := shared_rounds(base, series, look)[0]) == look
        }
        if pairs:
            judged |= _look({name: shared_rounds(base, variants[name], look) for name in pairs}, rule, share, family)
    for name, series in variants.items():
        if name not in judged:
            judged[name] = _unjudged(base, series, rule)
    return judged


def shared_rounds(
    base: Mapping[int, float], series: Mapping[int, float], number: int | None = None
) -> tuple[list[float], list[float]]:
    """Values of base and variant in the rounds that both have, at most the first `number`."""
    rounds = sorted(base.keys() & series.keys())[:number]
    return [base[at] for at in rounds], [series[at] for at in rounds]


def _look(
    pairs: Mapping[str, tuple[list[float], list[float]]], rule: Rule, alpha: float, family: int
) -> dict[str, Judged]:
    names = list(pairs)
    on = [scaled(np.asarray(base), np.asarray(new), rule) for base, new in pairs.values()]
    changes = [welch(one.base, one.new) for one in on]
    worse = [change.mirrored() if rule.direction == "higher" else change for change in changes]
    together = Change(*(np.stack([getattr(one, part) for one in worse]) for part in ("difference", "error", "df")))
    least, margin = (np.stack([getattr(one, part) for one in on]) for part in ("least", "margin"))
    decision = decide(together, least, margin, alpha, family)
    judged = {}
    for at, name in enumerate(names):
        ratio, low, high = _ratios(changes[at], linear=on[at].kind == "linear")
        p_worse = float(decision.p_value[at])
        word = _MEANS[WORDS[int(decision.code[at])]]
        held = float((decision.held_better if p_worse > 0.5 else decision.held)[at])
        judged[name] = Judged(word, ratio, low, high, min(p_worse, 1 - p_worse), held, len(pairs[name][0]))
    return judged


def _unjudged(base: Mapping[int, float], series: Mapping[int, float], rule: Rule) -> Judged:
    left, right = shared_rounds(base, series)
    if not left:
        return Judged("not measured")
    if len(left) > 1:
        on = scaled(np.asarray(left), np.asarray(right), rule)
        return Judged("inconclusive", *_ratios(welch(on.base, on.new), linear=on.kind == "linear"))
    return Judged("inconclusive", right[0] / left[0] if left[0] else None)


def _ratios(change: Change, *, linear: bool) -> tuple[float, float, float]:
    low, high = change.interval()
    ends = [float(change.difference), float(low), float(high)]
    factor = [1 + end if linear else math.exp(min(end, LARGEST)) for end in ends]
    return factor[0], factor[1], factor[2]


def apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the 95 % interval of the difference of two sets of values leaves 0 out; False for too few values."""
    if min(len(one), len(other)) < 2:
        return False
    low, high = welch(np.asarray(one, dtype=float), np.asarray(other, dtype=float)).interval()
    return bool(low > 0 or high < 0)


def beyond_noise(ratio: float, noise: float) -> Word:
    """The word for a ratio without repetitions: within noise from 1/(1 + noise) to 1 + noise, ends included."""
    slack = 1e-12
    if 1 / (1 + noise) - slack <= ratio <= 1 + noise + slack:
        return "within noise"
    return "worse" if ratio > 1 else "better"
