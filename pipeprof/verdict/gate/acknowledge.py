"""Regressions that were accepted: still shown, no longer failing, until their date. Pure: the day is handed in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.verdict.gate.judge import overall

if TYPE_CHECKING:
    from pipeprof.verdict.gate.policy import Acknowledgement, Policy
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict


def acknowledged(verdict: Verdict, policy: Policy, workload: str, today: str) -> Verdict:
    """`verdict` with the regressions of primary metrics that an entry of the policy accepts turned to acknowledged.

    An entry covers a change up to its `max_ratio` (for metrics where higher is better: base / new) up to and including
    the day `expires`; `today` is an ISO date. One that has expired changes nothing but is named in a note.
    """
    metrics, notes = [], list(verdict.notes)
    for one in verdict.metrics:
        entries = _covering(one, policy, workload)
        valid = [entry for entry in entries if entry.expires >= today]
        metrics.append(_accepted(one, valid[0]) if valid else one)
        if not valid:
            notes.extend(
                f"the acknowledgement of `{one.name}` ({entry.reason}) expired on {entry.expires}" for entry in entries
            )
    return replace(verdict, verdict=overall(metrics), metrics=tuple(metrics), notes=tuple(notes))


def _covering(one: MetricVerdict, policy: Policy, workload: str) -> list[Acknowledgement]:
    if one.verdict != "regressed" or one.family != "primary" or not one.ratio:
        return []
    worse = 1 / one.ratio if one.direction == "higher" else one.ratio
    return [
        entry
        for entry in policy.acknowledge
        if entry.metric == one.name and entry.workload in {"*", workload} and worse <= entry.max_ratio
    ]


def _accepted(one: MetricVerdict, entry: Acknowledgement) -> MetricVerdict:
    where = f" ({entry.reference})" if entry.reference else ""
    said = f"acknowledged until {entry.expires}: {entry.reason}{where}"
    return replace(one, verdict="acknowledged", reason="; ".join(part for part in (one.reason, said) if part))
