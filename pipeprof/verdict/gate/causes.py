"""The lines of an explanation, and the sentence that leads a comparison. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.explain import Level
    from pipeprof.verdict.gate.result import MetricVerdict, Verdict

    Entry = dict[str, Any]

PHASES = {
    "data_wait": "time before the forward pass", "forward_backward": "forward and backward",
    "tail": "tail (optimizer, all-reduce)", "compute": "compute", "whole": "whole step",
}  # fmt: skip
LARGE = 0.10  # of the change of the step time: an operator that became another one is the cause from there on
BECAUSE = ("regressed", "improved", "acknowledged")  # verdicts that have a cause
OF_STEPS = ("step_time_median", "step_time_p90", "data_wait")  # what parts of a step can be the cause of


def phase(name: str, level: Level, share: float | None) -> Entry:
    """A phase of the step."""
    return _entry("phase", name, PHASES.get(name, name), level, share)


def stage(name: str, level: Level, share: float | None, *, beside: bool) -> Entry:
    """A stage of the dataset pipeline; not `beside`: its time is what the loop waited for it."""
    what = f"work of `{name}` per batch" if beside else f"the wait for `{name}`"
    return _entry("pipeline_op", name, what, level, share)


def operator(family: str, names: Sequence[str], level: Level, share: float | None, runs: Level | None) -> Entry:
    """An operator, or kernels of one family by their `names` on the two sides; `runs`: executions per step."""
    name = names[0] if len(names) == 1 else family
    what = f"{'operator' if len(names) == 1 else 'kernels'} `{family}`"
    if name == "(others)":
        what = "all other operators"
    more: Entry = {"members": len(names)} if len(names) > 1 else {}
    if runs is not None and runs.base != runs.new:
        what += f" ({_count(runs.base)} -> {_count(runs.new)} executions per step)"
        more |= {"runs_base": runs.base, "runs_new": runs.new}
    return _entry("operator", name, what, level, share) | more


def structure(row: Mapping[str, Any], shown: str, level: Level | None, share: float | None) -> Entry:
    """What came, went or became another one; `shown` is what it is called."""
    words = f"{'operator' if row['name'].startswith('op ') else 'stage'} `{shown}`"
    text = {
        "appeared": f"{words} appeared ({row['new']})",
        "vanished": f"{words} vanished (was {row['base']})",
        "changed": f"{words} changed from {row['base']} to {row['new']}",
    }[row["change"]]
    return {
        "what": f"{words} {row['change']}", "kind": "structure", "name": row["name"], "change": row["change"],
        "base": row["base"], "new": row["new"], "unit": "", "ratio": level.ratio if level else None, "share": share,
        "text": text, "proven": True,
    }  # fmt: skip


def headline(verdict: Verdict, entries: Sequence[Entry], labels: Mapping[str, str]) -> str:
    """One sentence: the verdict, how far the worst metric moved, and because of what. `labels`: metric -> words."""
    one, word = lead(verdict), verdict.verdict.capitalize()
    if one is None:
        return f"{word}: no primary metric could be judged"
    name = labels.get(one.name, one.name)
    if one.ratio is None:
        return f"{word}: {name}" + (f": {one.reason}" if one.reason else "")
    moved = f"{word}: {name} {format_change(one.ratio)}"
    if one.ci_low is not None and one.ci_high is not None:
        low, high = format_change(one.ci_low), format_change(one.ci_high)
        moved += f" (95 % interval {low.removesuffix(' %')} to {high})"
    found = cause(entries, grew=one.ratio > 1) if one.verdict in BECAUSE and one.name in OF_STEPS else None
    because = f", {'because' if found['proven'] else 'probably because'} {_said(found)}" if found else ""
    more = {"incomparable": one.reason, "missing": one.reason, "inconclusive": _needed(one)}.get(one.verdict)
    return f"{moved}{because}" + (f"; {more}" if more else "")


def lead(verdict: Verdict) -> MetricVerdict | None:
    """The primary metric that the sentence is about: of those with the overall verdict the first in policy order."""
    primary = [one for one in verdict.metrics if one.family == "primary"]
    same = [one for one in primary if one.verdict == verdict.verdict]
    return next(iter(same or primary), None)


def cause(entries: Sequence[Entry], *, grew: bool) -> Entry | None:
    """The most telling line: an operator that became another one, a setting, a stage, an operator, a phase."""
    waits = next((e["share"] for e in entries if e["kind"] == "phase" and e["name"] == "data_wait"), None)
    by_data = (waits or 0.0) >= 0.5
    for entry in entries:
        setting = entry["name"].startswith("stage ")
        if entry["kind"] == "structure" and setting == by_data and (setting or (entry["share"] or 0.0) >= LARGE):
            return entry
    order = ("pipeline_op", "phase", "operator") if by_data else ("operator", "phase", "pipeline_op")
    directions = ("grew", "appeared") if grew else ("shrank", "vanished")
    for kind in order:
        found = [entry for entry in entries if entry["kind"] == kind and entry["change"] in directions]
        if found:
            return found[0]
    return None


def _entry(kind: str, name: str, what: str, level: Level, share: float | None) -> Entry:
    ratio = level.ratio
    came, went = level.delta > 0, ratio is None
    change = ("appeared" if came else "vanished") if went else "grew" if came else "shrank"
    proven = level.proven or went
    verb = change if proven else f"may have {'grown' if came else 'shrunk'}"
    return {
        "what": what, "kind": kind, "name": name, "change": change, "base": level.base, "new": level.new, "unit": "ns",
        "ratio": ratio, "share": share, "proven": proven,
        "text": f"{what} {verb}" + (f" {_times(ratio)}" if ratio is not None else ""),
    }  # fmt: skip


def _said(entry: Entry) -> str:
    """A line as a part of a sentence that says itself how sure it is."""
    return str(entry["text"]).replace(" may have grown ", " grew ").replace(" may have shrunk ", " shrank ")


def _needed(one: MetricVerdict) -> str:
    """How many repetitions would decide this metric, or why it could not be judged; empty without either."""
    if one.alpha is None:
        return one.reason
    return "" if one.reps_needed is None else f"about {one.reps_needed} repetitions per side would decide it"


def _times(ratio: float) -> str:
    """`2.1x` from twice on, else a percentage."""
    if ratio < 2:
        return f"by {abs(ratio - 1) * 100:.1f} %"
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"


def _count(number: float | None) -> str:
    return f"{number or 0:,.4g}" if (number or 0) < 1000 else f"{number:,.0f}"
