"""The looks of a session within what it may cost. Pure, and without numpy: sessions ask between repetitions.

Which looks there are is decided from how long repetitions take, never from what they show: docs/gate.md, Looks.

A regression by time alone, which another runner has to confirm where the policy says so. Pure; docs/gate.md.

Both runners judge the same two revisions, each in a session of its own. What is no time (memory, counts) needs none.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.verdict.gate.judge import overall
from pipeprof.verdict.gate.result import note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict


LEAST = 4  # of three, "regressed" of identical code is near the promised rate in the measured processes


class Look(NamedTuple):
    """Repetitions per side after which it is judged, and the part of alpha that this look may use."""

    reps: int
    alpha: float


def spending(alpha: float, looks: Sequence[int]) -> list[float]:
    """Alpha that each look may use; they add up to `alpha` (Lan and DeMets 1983, O'Brien-Fleming-like).

    Spent up to look k of K: 2 (1 - Phi(z_(1 - alpha/2) / sqrt(k/K))).
    """
    normal = NormalDist()
    edge = normal.inv_cdf(alpha / 2)
    spent = [0.0, *(2 * normal.cdf(edge * math.sqrt(looks[-1] / look)) for look in looks)]
    return [after - before for before, after in itertools.pairwise(spent)]


def whole_plan(policy: Policy) -> tuple[Look, ...]:
    """The policy's looks, when nothing limits them."""
    return tuple(map(Look, policy.looks, spending(policy.alpha, policy.looks)))


def planned_looks(policy: Policy, made: Iterable[Sequence[float]], most: int | None) -> tuple[Look, ...]:
    """Looks that were `made` (repetitions, alpha), then those that follow when `most` repetitions per side can be had.

    The last one has all alpha that is left, also when it is one that was made: nothing more follows it. Together they
    have the policy's alpha (Lan and DeMets 1983). `most` None: no limit.
    """
    done = [Look(int(reps), alpha) for reps, alpha in made]
    if not done and (most is None or most >= policy.looks[-1]):
        return whole_plan(policy)
    at, last = done[-1].reps if done else 0, policy.looks[-1] if most is None else min(most, policy.looks[-1])
    used = math.fsum(look.alpha for look in done)
    if last <= at:
        return (*done[:-1], Look(at, done[-1].alpha + policy.alpha - used))
    reps = [*(look for look in policy.looks if at < look < last), last]
    for look, upto in zip(reps, itertools.accumulate(spending(policy.alpha, reps)), strict=True):
        allowed = policy.alpha if look == last else max(used, upto)
        done.append(Look(look, allowed - used))
        used = allowed
    return tuple(done)


def least_planned(policy: Policy) -> int:
    """Repetitions per side with which a budget is worth a look: the first look's, or four."""
    return min(policy.looks[0], max(policy.least_reps, LEAST))


TIMES = ("ns", "s")  # units


def to_confirm(verdict: Verdict, policy: Policy) -> list[str]:
    """The metrics that regressed, where the policy asks for another runner and all of them are times; else none."""
    worse = [one for one in verdict.metrics if _regressed(one)]
    asks = policy.confirm and all(one.unit in TIMES for one in worse)
    return [one.name for one in worse] if asks else []


def confirmed(verdict: Verdict, first: Collection[str]) -> Verdict:
    """The verdict of the second runner: times that the `first` one did not call regressed are open, not regressed."""
    alone = note("not_confirmed")
    metrics = tuple(
        replace(one, verdict="inconclusive", reasons=(*one.reasons, alone))
        if _regressed(one) and one.unit in TIMES and one.name not in first
        else one
        for one in verdict.metrics
    )
    return replace(verdict, verdict=overall(metrics), metrics=metrics)


def _regressed(one: MetricVerdict) -> bool:
    return one.family == "primary" and one.verdict == "regressed"
