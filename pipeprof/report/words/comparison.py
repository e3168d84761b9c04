"""The sentence that leads a comparison, and the lines of its explanation, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.record.baseline_summary import format_value
from pipeprof.report.words import first_of, gate
from pipeprof.report.words.names import COMMUNICATION, INTERVALS, PHASES
from pipeprof.units import format_change, format_changes
from pipeprof.verdict.gate.causes import INSTRUCTIONS, lead, stated_cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.gate.result import MetricVerdict, Verdict

    Entry = dict[str, Any]

METRICS = {
    "step_time_median": "step time", "step_time_p90": "step time p90", "data_wait": PHASES["data_wait"],
    "first_step_time": "time to first step", "peak_memory": "peak memory",
    "instructions": "Python instructions per row",
    "communication/exposed": COMMUNICATION["communication_exposed"],
    "communication/tail": COMMUNICATION["communication_tail"],
}  # fmt: skip
COUNTED = {
    "count/compilations": "compiled graphs", "count/batches_per_epoch": "batches of an epoch",
    "count/rows_per_batch": "rows of a batch", "count/allocations": "blocks of memory",
    "bytes/batch": "size of a batch",
}  # fmt: skip
_OF_STAGES = {"count/rows/": "rows of `{}`", "bytes/row/": "size of a row of `{}`"}
_FAMILIES = {
    "pipeline": "work of `{}` per batch",
    "instructions": "Python instructions of `{}` per row",
    "op": "own time of `{}` per step",
    "count": "executions of `{}` per step",
}
OTHERS = "(others)"


def worded(entries: Sequence[Entry]) -> list[Entry]:
    """The lines with `what` changed and `text`, a sentence; their codes and numbers are kept."""
    return [{"what": _what(entry), **entry, "text": _text(entry)} for entry in entries]


def metric_name(code: str) -> str:
    """What a metric is called for people; one that nobody worded has its own name."""
    for prefix, words in _OF_STAGES.items():
        if code.startswith(prefix):
            return words.format(code.removeprefix(prefix))
    family, _, name = code.partition("/")
    if code in COUNTED:
        return COUNTED[code]
    if family == "phase" and name in INTERVALS:
        return INTERVALS[name]
    if family in _FAMILIES and name:
        return "all other operators" if name == OTHERS else _FAMILIES[family].format(name)
    return METRICS.get(code, code)


def position(metric: str) -> tuple[int, str]:
    """The metrics of every training first, in their usual order."""
    order = list(METRICS)
    return order.index(metric) if metric in order else len(order), metric


def differing(conditions: Sequence[Mapping[str, Any]], most: int) -> str:
    """`mindspore (2.8.0, now 2.9.0), device (CPU, now not known) and 2 more`."""
    sides = [["not known" if one[side] is None else one[side] for side in ("base", "new")] for one in conditions]
    return first_of([f"{one['name']} ({a}, now {b})" for one, (a, b) in zip(conditions, sides, strict=True)], most)


def counts_runs(code: str) -> bool:
    """Whether a metric counts the executions of an operator."""
    return code.startswith("count/") and code not in COUNTED and not code.startswith(tuple(_OF_STAGES))


def headline(verdict: Verdict, entries: Sequence[Entry]) -> str:
    """One sentence: the verdict, how far the worst metric moved, and because of what."""
    one, word = lead(verdict), verdict.verdict.capitalize()
    if one is None:
        return f"{word}: no primary metric could be judged"
    name, reason = metric_name(one.name), gate.reason(one.reasons)
    if one.ratio is None:
        levels = [format_value(one.name, level) for level in (one.base, one.new) if level is not None]
        name += f" {levels[0]} -> {levels[1]}" if len(levels) > 1 else ""
        return "; ".join(filter(None, [f"{word}: {name}" + (f": {reason}" if reason else ""), _beside(verdict)]))
    more = {"incomparable": reason, "missing": reason, "inconclusive": _needed(one)}.get(one.verdict)
    said = [f"{word}: {name} {_moved(one, one.ratio)}{_because(one, entries)}", more, _beside(verdict)]
    return "; ".join(part for part in said if part)


def _beside(verdict: Verdict) -> str:
    """What is worse and not part of the verdict."""
    worse = [one for one in verdict.metrics if one.family == "informing" and one.verdict == "regressed"]
    names = " and ".join(metric_name(one.name) for one in worse)
    return f"{names} regressed (for information, not part of the verdict)" if worse else ""


def _moved(one: MetricVerdict, ratio: float) -> str:
    if one.ci_low is None or one.ci_high is None:
        return format_change(ratio)
    change, low, high = format_changes(ratio, one.ci_low, one.ci_high)
    unit = "" if high.endswith("x") else " %"
    return f"{change} (95 % interval {low} to {high}{unit})"


def _because(one: MetricVerdict, entries: Sequence[Entry]) -> str:
    cause = stated_cause(one.verdict, one.name, one.ratio, entries)
    return because(cause and (_replacement(cause, entries) or cause))


def _replacement(cause: Entry, entries: Sequence[Entry]) -> Entry | None:
    """The stage or operator that came in the place of the only one that went, where the cause is either of both."""
    noun = cause["name"].startswith("stage ")
    alike = [one for one in entries if one["kind"] == "structure" and one["name"].startswith("stage ") == noun]
    came = [one for one in alike if one["change"] == "appeared"]
    went = [one for one in alike if one["change"] == "vanished"]
    if cause not in came + went or (len(came), len(went)) != (1, 1):
        return None
    return {**came[0], "change": "replaced", "replaced": went[0]["shown"]}


def because(cause: Mapping[str, Any] | None) -> str:
    """`, because ...` for a line of an explanation, to end a sentence with; nothing without one."""
    if cause is None:
        return ""
    return f", {'because' if cause['proven'] else 'probably because'} {_text({**cause, 'proven': True})}"


def _needed(one: MetricVerdict) -> str:
    """What more repetitions would show of this metric, or why it could not be judged; empty without either."""
    if one.alpha is None:
        return gate.reason(one.reasons)
    return "" if one.reps_needed is None else gate.needed(one.reps_needed, one.reps_find)


def _what(entry: Mapping[str, Any]) -> str:
    """What the line is about; with what came of it when that is not a number."""
    kind, name = entry["kind"], entry["name"]
    if kind == "phase":
        return INTERVALS.get(name, str(name))
    if kind == "pipeline_op":
        of_measure = {"work": f"pipeline/{name}", INSTRUCTIONS: f"{INSTRUCTIONS}/{name}"}
        measured = of_measure.get(entry["measure"])
        return f"the wait for `{name}`" if measured is None else metric_name(measured)
    return f"{_structure(entry)} {entry['change']}" if kind == "structure" else _operator(entry)


def _operator(entry: Mapping[str, Any]) -> str:
    what = f"{'kernels' if 'members' in entry else 'operator'} `{entry['shown']}`"
    if entry["name"] == OTHERS:
        what = "all other operators"
    if "runs_base" not in entry:
        return what
    return f"{what} ({_count(entry['runs_base'])} -> {_count(entry['runs_new'])} executions per step)"


def _structure(entry: Mapping[str, Any]) -> str:
    return f"{'operator' if entry['name'].startswith('op ') else 'stage'} `{entry['shown']}`"


def _text(entry: Mapping[str, Any]) -> str:
    """The line as a sentence that says itself how sure it is."""
    if entry["kind"] == "structure":
        came = {
            "appeared": f"appeared ({entry['new']})", "vanished": f"vanished (was {entry['base']})",
            "changed": f"changed from {entry['base']} to {entry['new']}",
            "replaced": f"took the place of `{entry.get('replaced')}`",
        }  # fmt: skip
        return f"{_structure(entry)} {came[entry['change']]}"
    change, ratio = entry["change"], entry["ratio"]
    verb = change if entry["proven"] else f"may have {'grown' if change == 'grew' else 'shrunk'}"
    return f"{_what(entry)} {verb}" + (f" {_times(ratio)}" if ratio is not None else "")


def _times(ratio: float) -> str:
    """`to 2.1x` from twice on, else `by 30.0 %`."""
    if ratio < 2:
        return f"by {abs(ratio - 1) * 100:.1f} %"
    return f"to {ratio:.1f}x" if ratio < 10 else f"to {ratio:,.0f}x"


def _count(number: float | None) -> str:
    return f"{number or 0:,.4g}" if (number or 0) < 1000 else f"{number:,.0f}"
