"""Why the step takes longer or shorter than it did: phases, pipeline stages, operators, structure. Pure.

Secondary metrics say where a change of the step time went; each counts when its own test says so, or when it holds a
large part of a step time that changed, or, unproven, moved by a tenth. Facts are texts that are compared exactly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.result import Verdict

    Row = Mapping[str, Any]

KINDS = {"phase/": "phase", "pipeline/": "pipeline_op", "op/": "operator"}
LARGE = 0.10  # of the change of the step time: worth a line even when it is not proven by itself
WHOLE = "phase/whole"  # a step without phases: it explains nothing
MOST = 12  # lines of one kind
# Phases that add up to a step. Outside the windows in which operators are recorded the backward pass has no end that is
# known, so that a run may have both of the first two.
STEPS = (("data_wait", "compute"), ("data_wait", "forward_backward", "tail"), ("whole",))
PHASES = {
    "data_wait": "data wait", "forward_backward": "forward and backward", "tail": "tail (optimizer, all-reduce)",
    "compute": "compute", "whole": "whole step",
}  # fmt: skip


def explanation(changes: Sequence[Row], facts: Sequence[Row], verdict: Verdict) -> list[dict[str, Any]]:
    """What changed, structure first, then by the time it cost: entries as `pipeprof compare --format json` has them.

    `changes`: rows of compare/metric_change; `facts`: of compare/fact_change. `share` is of the change of the mean
    step time, negative when the part went the other way; None when the step time hardly changed.
    """
    known = {row["metric"]: row for row in changes}
    total = _total(known)
    entries = [_structure(row, known, total) for row in facts]
    said = {one.name: one.verdict for one in verdict.metrics}
    changed = verdict.verdict in ("regressed", "improved") or _moved(known, total)
    for prefix, kind in KINDS.items():
        found = []
        for row in changes:
            if not row["metric"].startswith(prefix) or row["ratio"] is None or row["metric"] == WHOLE:
                continue
            entry = _entry(row, kind, total, known.get("phase/data_wait"))
            proven = said.get(row["metric"]) in ("regressed", "improved")
            large = (
                changed and entry["share"] is not None and entry["share"] >= LARGE and abs(row["ratio"] - 1) >= LARGE
            )
            if proven or large:
                entry["proven"] = proven
                found.append(entry)
        entries += sorted(found, key=lambda entry: (-abs(entry["new"] - entry["base"]), entry["name"]))[:MOST]
    return entries


def headline(verdict: Verdict, entries: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    """One sentence: how far the worst metric moved, because of what, and the verdict. `labels`: metric -> words."""
    lead = _lead(verdict)
    if lead is None:
        return f"no primary metric could be judged; {verdict.verdict}"
    name = labels.get(lead.name, lead.name)
    if lead.ratio is None:
        return f"{name}: {lead.reason or lead.verdict}; {verdict.verdict}"
    moved = f"{name} {_percent(lead.ratio)}"
    if lead.ci_low is not None and lead.ci_high is not None:
        moved += f" [{_number(lead.ci_low)}, {_number(lead.ci_high)}]"
    cause = _cause(entries, grew=lead.ratio > 1)
    because = f", because {cause}" if cause and lead.verdict in ("regressed", "improved", "acknowledged") else ""
    told = {"incomparable": lead.reason, "missing": lead.reason, "inconclusive": _needed(verdict)}
    extra = f" ({told[lead.verdict]})" if told.get(lead.verdict) else ""
    return f"{moved}{because}; {verdict.verdict}{extra}"


def _lead(verdict: Verdict) -> Any:
    """The primary metric that the sentence is about: of those with the overall verdict the first in policy order."""
    primary = [one for one in verdict.metrics if one.family == "primary"]
    same = [one for one in primary if one.verdict == verdict.verdict]
    return next(iter(same or primary), None)


def _needed(verdict: Verdict) -> str:
    """How many repetitions would decide the primary metrics that are open; empty when no number can be given."""
    wanted = [one.reps_needed for one in verdict.metrics if one.family == "primary" and one.verdict == "inconclusive"]
    known = [number for number in wanted if number is not None]
    return f"about {max(known)} repetitions of each side are needed" if known else ""


def _cause(entries: Sequence[Mapping[str, Any]], *, grew: bool) -> str:
    """The most telling line: an operator that became another one, a setting, a stage, an operator, a phase."""
    direction = "grew" if grew else "shrank"
    structure = [entry for entry in entries if entry["kind"] == "structure"]
    waits = next((e["share"] for e in entries if e["kind"] == "phase" and e["name"] == "data_wait"), None)
    by_data = (waits or 0.0) >= 0.5
    for entry in sorted(structure, key=lambda entry: -(entry["share"] or 0.0)):
        stage = entry["name"].startswith("stage ")
        if stage == by_data and (stage or (entry["share"] or 0.0) >= LARGE):
            return str(entry["text"])
    order = ("pipeline_op", "phase", "operator") if by_data else ("operator", "phase", "pipeline_op")
    for kind in order:
        found = [e for e in entries if e["kind"] == kind and e["change"] == direction]
        if found:
            return str(found[0]["text"])
    return ""


def _total(known: Mapping[str, Row]) -> float | None:
    """Change of the mean step time, ns: the sum over phases that make up a step; None when the sides have no such."""
    return _sum_of_phases(known, "delta")


def _moved(known: Mapping[str, Row], total: float | None) -> bool:
    """Whether the mean step time moved so far that saying where is of use, though it may be chance."""
    base = _sum_of_phases(known, "base")
    return total is not None and base is not None and base > 0 and abs(total) >= LARGE * base


def _sum_of_phases(known: Mapping[str, Row], column: str) -> float | None:
    """Over the first of the sets of phases that both sides have whole: a step is made up of each in another way."""
    for phases in STEPS:
        rows = [known.get(f"phase/{phase}") for phase in phases]
        if all(row is not None and row["delta"] is not None for row in rows):
            return math.fsum(row[column] for row in rows if row is not None)
    return None


def _entry(row: Row, kind: str, total: float | None, waits: Row | None) -> dict[str, Any]:
    """`waits`: the row of the data wait. Stages work beside the training, unless their time is the wait itself."""
    name = row["metric"].partition("/")[2]
    beside = kind == "pipeline_op" and (waits is None or any(row[side] != waits[side] for side in ("base", "new")))
    grew = row["ratio"] > 1
    stage = f"{'work' if beside else 'data wait'} of `{name}`"
    words = {"phase": PHASES.get(name, name), "pipeline_op": stage, "operator": f"operator `{name}`"}[kind]
    return {
        "what": words,
        "kind": kind,
        "name": name,
        "change": "grew" if grew else "shrank",
        "base": row["base"],
        "new": row["new"],
        "unit": "ns",
        "ratio": row["ratio"],
        "share": None if beside else _share(row["delta"], total),
        "text": f"{words} {'grew' if grew else 'shrank'} {_times(row['ratio'])}",
    }


def _structure(row: Row, known: Mapping[str, Row], total: float | None) -> dict[str, Any]:
    kind, _, name = row["name"].partition(" ")
    metric = known.get(f"{'op' if kind == 'op' else 'pipeline'}/{name}") or {}
    base, new = metric.get("base"), metric.get("new")
    delta = (new or 0.0) - (base or 0.0)
    words = f"{'operator' if kind == 'op' else 'stage'} `{name}`"
    text = {
        "appeared": f"{words} appeared ({row['new']})",
        "vanished": f"{words} vanished (was {row['base']})",
        "changed": f"{words} changed from {row['base']} to {row['new']}",
    }[row["change"]]
    return {
        "what": f"{words} {row['change']}",
        "kind": "structure",
        "name": row["name"],
        "change": row["change"],
        "base": row["base"],
        "new": row["new"],
        "unit": "",
        "ratio": metric.get("ratio"),
        "share": _share(delta, total) if kind == "op" and metric else None,
        "text": text,
    }


def _share(delta: float | None, total: float | None) -> float | None:
    return None if delta is None or not total else delta / total


def _times(ratio: float) -> str:
    """`2.1x` from twice on, else a percentage."""
    return f"{ratio:.1f}x" if ratio >= 2 else f"by {abs(ratio - 1) * 100:.1f} %"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"


def _number(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.1f}"
