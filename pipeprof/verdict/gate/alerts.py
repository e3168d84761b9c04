"""Alerts: one for each change of level for the worse, the same one again however often it is looked at. Pure.

Regressions that were accepted: still shown, no longer failing, until their date. Pure: the day is handed in.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pipeprof.verdict.gate.judge import overall
from pipeprof.verdict.gate.result import note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pipeprof.verdict.gate.policy import Acknowledgement, Policy, Rule
    from pipeprof.verdict.gate.result import MetricVerdict, Note, Verdict


State = Literal["new", "acknowledged", "fixed", "wrong"]
SHORT = 10  # digits of a commit in a name


@dataclass(frozen=True)
class Shift:
    """A change of level of one series. `places`: commits (or times) that it may lie at; `now`: the series' level today.

    `key` says which series and which of its changes it is; `at`: the first measurement at the new level.
    """

    key: tuple[int, int]
    workload: str
    metric: str
    before: float
    after: float
    now: float
    at: str
    place: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Alert:
    """Changes of level that are one change of the code: `shifts`, the one that says most first."""

    name: str
    workload: str
    places: tuple[str, ...]
    shifts: tuple[Shift, ...]


def counts(shift: Shift, rule: Rule) -> bool:
    """Whether a change is one for the worse of a metric that decides, and as large as the gate asks for."""
    worse = shift.after > shift.before if rule.direction == "lower" else shift.after < shift.before
    least = 1 + rule.min_effect
    large = max(shift.after / shift.before, shift.before / shift.after) >= least
    return worse and large and rule.family == "primary" and abs(shift.after - shift.before) >= rule.floor


def is_over(shift: Shift, rule: Rule) -> bool:
    """Whether the level of today is again what it was before the change: within the margin of "unchanged".

    Of a change that is hardly larger than the margin half has to be gone.
    """
    least, most = sorted((shift.before, shift.after))
    share, size = min(rule.margin, (most / least - 1) / 2), min(rule.floor, (most - least) / 2)
    if rule.direction == "lower":
        return shift.now <= max(shift.before * (1 + share), shift.before + size)
    return shift.now >= min(shift.before / (1 + share), shift.before - size)


def alerts(shifts: Sequence[Shift], known: Mapping[str, Sequence[str]]) -> list[Alert]:
    """One for each place of the code at which something of a workload changed, in the order of the shifts.

    Shifts of a workload that may lie at the same commit are one. `known`: names given before, with the places that they
    had then: an alert that may be at the same place keeps its name, so that nobody is told twice.
    """
    found: list[Alert] = []
    for shift in shifts:
        same = [one for one in found if _is_same(one, shift)]
        if same:
            at = found.index(max(same, key=lambda one: _alike(one.places, shift.places)))
            both = tuple(place for place in found[at].places if place in shift.places)
            found[at] = replace(found[at], places=both, shifts=(*found[at].shifts, shift))
        else:
            found.append(Alert(_name(shift), shift.workload, shift.places, (shift,)))
    return _named(found, known)


def _is_same(alert: Alert, shift: Shift) -> bool:
    """Whether a shift may be of the same commit; two changes of one series never are."""
    series = {one.key[0] for one in alert.shifts}
    shared = set(alert.places) & set(shift.places)
    return alert.workload == shift.workload and shift.key[0] not in series and bool(shared)


def _named(found: Sequence[Alert], known: Mapping[str, Sequence[str]]) -> list[Alert]:
    """The alerts with the names that they were told by, each name given once; the most alike first."""
    pairs = [
        (one.name == name, _alike(one.places, places), at, name)
        for at, one in enumerate(found)
        for name, places in known.items()
        if workload_of(name) == workload_of(one.name) and (one.name == name or _alike(one.places, places))
    ]
    names: dict[int, str] = {}
    for _, _, at, name in sorted(pairs, key=lambda pair: (pair[0], pair[1]), reverse=True):
        if at not in names and name not in names.values():
            names[at] = name
    return [replace(one, name=names.get(at, one.name)) for at, one in enumerate(found)]


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    """Places in both over places in any."""
    return len(set(one) & set(other)) / max(1, len(set(one) | set(other)))


def _name(shift: Shift) -> str:
    """`WORKLOAD-COMMIT`; where there is no commit, a hash of the time stands for it."""
    workload = re.sub(r"[^A-Za-z0-9._]+", "-", shift.workload).strip("-") or "workload"
    if re.fullmatch(r"[0-9a-f]{10,64}", shift.place):
        return f"{workload}-{shift.place[:SHORT]}"
    return f"{workload}-{hashlib.sha256(shift.place.encode()).hexdigest()[:SHORT]}"


def workload_of(name: str) -> str:
    """The workload in the name of an alert."""
    return name.rpartition("-")[0]


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
