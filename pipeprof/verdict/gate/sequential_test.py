"""Planned looks at a growing experiment, worked out again from all its repetitions each time. Pure; docs/gate.md."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.verdict.gate.judge import judged, overall
from pipeprof.verdict.gate.planned import whole_plan
from pipeprof.verdict.gate.policy import usable
from pipeprof.verdict.gate.power import hopeless
from pipeprof.verdict.gate.result import note
from pipeprof.verdict.gate.samples import Samples, taken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.planned import Look
    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict

DECIDED = frozenset({"regressed", "improved", "unchanged"})


def judge_looks(
    base: Mapping[str, Samples | Sequence[float]],
    new: Mapping[str, Samples | Sequence[float]],
    policy: Policy | Mapping[str, Any] | None = None,
    plan: Sequence[Look] | None = None,
) -> Verdict:
    """The verdict after the planned looks that the repetitions so far allow; sides as `judge` takes them.

    Look k judges the first k repetitions of each side by `order`, with the alpha planned for that look; a metric keeps
    the verdict of the look that decided it. Looks end when all primary metrics are decided or the last is done. So the
    same repetitions give the same verdict however often it is asked for, and more of them never reopen a decision.
    `plan`: the looks, where they are not the policy's.
    """
    policy = usable(policy)
    plan = whole_plan(policy) if plan is None else tuple(plan)
    sides = taken(base, "base"), taken(new, "new")
    places = tuple(_places(side) for side in sides)
    available = min(_repetitions(side, of_side) for side, of_side in zip(sides, places, strict=True))
    final: dict[str, MetricVerdict] = {}
    made: list[int] = []
    verdict, done = None, False
    for look, alpha in plan:
        if look > available or done:
            break
        base_side, new_side = (_cut(side, of_side, look) for side, of_side in zip(sides, places, strict=True))
        verdict = judged(base_side, new_side, policy, alpha, plan[-1] if look < plan[-1].reps else None)
        made.append(look)
        for one in verdict.metrics:
            if one.name not in final or final[one.name].verdict not in DECIDED or policy.rule(one.name).exact:
                final[one.name] = one
        done = not any(_open(final[one.name], policy) for one in verdict.metrics)
    if verdict is None:
        return _too_early(judged(*sides, policy, policy.alpha), plan[0].reps, policy)
    metrics = tuple(final[one.name] for one in verdict.metrics)
    following = None if done or made[-1] == plan[-1].reps else plan[len(made)].reps
    return replace(
        verdict, verdict=overall(metrics), metrics=metrics, looks=tuple(made), next_look=following,
        hopeless=following is not None and _hopeless(metrics, verdict.chances, policy),
    )  # fmt: skip


def _open(metric: MetricVerdict, policy: Policy) -> bool:
    """Whether more repetitions may decide a metric that is waited for. Those of one that is exact tell nothing new."""
    return metric.family == "primary" and metric.verdict == "inconclusive" and not policy.rule(metric.name).exact


def _hopeless(
    metrics: Sequence[MetricVerdict], chances: Mapping[str, tuple[float, float]], policy: Policy
) -> bool:  # fmt: skip
    """Whether looks that follow would not decide either; never where the chances of a metric are not known."""
    names = [one.name for one in metrics if _open(one, policy)]
    if not names or not set(names) <= set(chances):
        return False
    worse, decided = np.array([chances[name] for name in names]).T
    return bool(hopeless(worse, decided, np.ones(len(names), dtype=bool)))


def _places(side: Mapping[str, Samples]) -> list[tuple[int, str]]:
    """(order, job) of every repetition of a side that has an order, in the order of the experiment."""
    return sorted({(order, job) for samples in side.values() if samples.order for job, order in samples.repetitions()})


def _repetitions(side: Mapping[str, Samples], places: Sequence[tuple[int, str]]) -> int:
    return max([len(places), *(len(samples.values) for samples in side.values() if not samples.order)])


def _cut(side: Mapping[str, Samples], places: Sequence[tuple[int, str]], number: int) -> dict[str, Samples]:
    """The first repetitions of the whole side: a metric that lacks one of them has fewer, now and later."""
    first = set(places[:number])
    return {
        name: samples.first(
            sum((order, job) in first for job, order in samples.repetitions()) if samples.order else number
        )
        for name, samples in side.items()
    }


def _too_early(verdict: Verdict, first: int, policy: Policy) -> Verdict:
    metrics = tuple(
        replace(one, verdict="inconclusive", alpha=None, reps_needed=one.reps_needed or first,
                reasons=(note("first_check", repetitions=first),))
        if one.verdict in DECIDED | {"inconclusive"} and not policy.rule(one.name).exact else one
        for one in verdict.metrics
    )  # fmt: skip
    return replace(verdict, verdict=overall(metrics), metrics=metrics, next_look=first)
