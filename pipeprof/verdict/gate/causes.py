"""The lines of an explanation, as codes with numbers, and which of them is the cause. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.explain import Level
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict

    Entry = dict[str, Any]

LARGE = 0.10  # of the change of the step time: an operator that became another one is the cause from there on
BECAUSE = ("regressed", "improved", "acknowledged")  # verdicts that have a cause
INSTRUCTIONS = "instructions"  # the metric of all stages together, and the measure of one
OF_STEPS = ("step_time_median", "step_time_p90", "data_wait")  # what parts of a step can be the cause of


def phase(name: str, level: Level, share: float | None) -> Entry:
    """A phase of the step."""
    return _entry("phase", name, level, share)


def stage(name: str, level: Level, share: float | None, *, beside: bool) -> Entry:
    """A stage of the dataset pipeline; not `beside`: its time is what the loop waited for it."""
    return _entry("pipeline_op", name, level, share) | {"measure": "work" if beside else "wait"}


def counted(name: str, level: Level) -> Entry:
    """The instructions of a stage for a row."""
    return _entry("pipeline_op", name, level, None) | {"measure": INSTRUCTIONS, "unit": ""}


def operator(family: str, names: Sequence[str], level: Level, share: float | None, runs: Level | None) -> Entry:
    """An operator, or kernels of one family by their `names` on the two sides; `runs`: executions per step."""
    more: Entry = {"shown": family}
    if len(names) > 1:
        more |= {"members": len(names)}
    if runs is not None and runs.base != runs.new:
        more |= {"runs_base": runs.base, "runs_new": runs.new}
    return _entry("operator", names[0] if len(names) == 1 else family, level, share) | more


def structure(row: Mapping[str, Any], shown: str, level: Level | None, share: float | None) -> Entry:
    """What came, went or became another one; `shown` is what it is called."""
    return {
        "kind": "structure", "name": row["name"], "change": row["change"], "base": row["base"], "new": row["new"],
        "unit": "", "ratio": level.ratio if level else None, "share": share, "proven": True, "shown": shown,
    }  # fmt: skip


def lead(verdict: Verdict) -> MetricVerdict | None:
    """The primary metric that a comparison is about: of those with the overall verdict the first in policy order."""
    primary = [one for one in verdict.metrics if one.family == "primary"]
    same = [one for one in primary if one.verdict == verdict.verdict]
    return next(iter(same or primary), None)


def stated_cause(verdict: str, metric: str, ratio: float | None, entries: Sequence[Entry]) -> Entry | None:
    """The cause of what a metric did; None for a verdict without a cause, and for what no part of a step explains."""
    if verdict not in BECAUSE or metric not in (*OF_STEPS, INSTRUCTIONS) or ratio is None:
        return None
    if metric == INSTRUCTIONS:
        change = "grew" if ratio > 1 else "shrank"
        return next(
            (entry for entry in entries if (entry.get("measure"), entry.get("change")) == (metric, change)), None
        )
    return cause(entries, grew=ratio > 1)


def cause(entries: Sequence[Entry], *, grew: bool) -> Entry | None:
    """The most telling line: an operator that became another one, a setting, a stage, an operator, a phase."""
    entries = [entry for entry in entries if entry.get("measure") != INSTRUCTIONS]
    waits = next((e["share"] for e in entries if e["kind"] == "phase" and e["name"] == "data_wait"), None)
    by_data = (waits or 0.0) >= 0.5
    for entry in entries:
        setting = entry["name"].startswith("stage ")
        if entry["kind"] == "structure" and setting == by_data and (setting or (entry["share"] or 0.0) >= LARGE):
            return entry
    order = ("pipeline_op", "phase", "operator") if by_data else ("operator", "phase", "pipeline_op")
    directions = ("grew", "appeared") if grew else ("shrank", "vanished")
    for kind in order:
        of_kind = [entry for entry in entries if entry["kind"] == kind and entry["change"] in directions]
        if of_kind:
            return of_kind[0]
    return None


def _entry(kind: str, name: str, level: Level, share: float | None) -> Entry:
    ratio = level.ratio
    came, went = level.delta > 0, ratio is None
    change = ("appeared" if came else "vanished") if went else "grew" if came else "shrank"
    return {
        "kind": kind, "name": name, "change": change, "base": level.base, "new": level.new, "unit": "ns",
        "ratio": ratio, "share": share, "proven": level.proven or went,
    }  # fmt: skip
