"""Regressions that were accepted: still shown, no longer failing, until their date. Pure: the day is handed in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeprof.verdict.gate.judge import overall
from pipeprof.verdict.gate.note import note

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeprof.verdict.gate.note import Note
    from pipeprof.verdict.gate.policy import Acknowledgement, Policy
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict


def acknowledged(verdict: Verdict, policy: Policy, workloads: Collection[str], today: str) -> Verdict:
    """`verdict` with the regressions of primary metrics that an entry of the policy accepts turned to acknowledged.

    An entry covers a change up to its `max_ratio` (for metrics where higher is better: base / new) up to and including
    the day `expires`; `today` is an ISO date, `workloads` are the names that either side goes by. One that has expired,
    or that the change has outgrown, changes nothing but is named in a note; so is one of a metric that was not
    measured.
    """
    metrics, notes = [], list(verdict.notes)
    for one in verdict.metrics:
        entries = _entries_of(one, policy, workloads)
        valid = [entry for entry in entries if entry.expires >= today and _worse(one) <= entry.max_ratio]
        metrics.append(_accepted(one, valid[0]) if valid else one)
        if not valid:
            notes.extend(_refused(one, entry) for entry in entries)
    measured = {one.name for one in verdict.metrics}
    notes += [
        note("acknowledgement_not_measured", metric=entry.metric, reason=entry.reason)
        for entry in policy.acknowledge
        if entry.metric not in measured and entry.workload in {"*", *workloads}
    ]
    return replace(verdict, verdict=overall(metrics), metrics=tuple(metrics), notes=tuple(notes))


def _entries_of(one: MetricVerdict, policy: Policy, workloads: Collection[str]) -> list[Acknowledgement]:
    """Entries of a regressed primary metric; none when its change is no ratio that could be held against theirs."""
    if one.verdict != "regressed" or one.family != "primary" or one.ratio is None or one.ratio <= 0:
        return []
    return [entry for entry in policy.acknowledge if entry.metric == one.name and entry.workload in {"*", *workloads}]


def _worse(one: MetricVerdict) -> float:
    ratio = one.ratio or 1.0
    return 1 / ratio if one.direction == "higher" else ratio


def _refused(one: MetricVerdict, entry: Acknowledgement) -> Note:
    """Why an entry does not hold: the change has outgrown it, or else it has expired."""
    about = {"metric": one.name, "reason": entry.reason}
    if _worse(one) > entry.max_ratio:
        return note("acknowledgement_outgrown", **about, max_ratio=entry.max_ratio, ratio=_worse(one))
    return note("acknowledgement_expired", **about, expires=entry.expires)


def _accepted(one: MetricVerdict, entry: Acknowledgement) -> MetricVerdict:
    accepted = note("acknowledged", until=entry.expires, reason=entry.reason, reference=entry.reference)
    return replace(one, verdict="acknowledged", reasons=(*one.reasons, accepted))
