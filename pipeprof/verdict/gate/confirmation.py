"""A regression by time alone, which another runner has to confirm where the policy says so. Pure; docs/gate.md.

Both runners judge the same two revisions, each in a session of its own. What is no time (memory, counts) needs none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.verdict.gate.judge import overall
from pipeprof.verdict.gate.note import note

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeprof.verdict.gate.policy import Policy
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict

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
