"""`summary.md` of a baseline: what a reviewer reads. No number in it is read back."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof import escape
from pipeprof.record.note import sentence
from pipeprof.units import format_bytes, format_count, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeprof.record.measures import Measures

# Prefixes of metrics that explain; the others are the primary ones, which a comparison can fail on.
SECONDARY = ("op/", "pipeline/", "phase/", "communication/", "count/", "bytes/", "instructions/")
MOST_ROWS = 40
_NS = ("step_time_median", "step_time_p90", "data_wait", "first_step_time")


def is_primary(metric: str) -> bool:
    """Whether the metric is one of its own, not one of many of a family."""
    return not metric.startswith(SECONDARY)


def unit_of(metric: str) -> str:
    """`ns`, `bytes`, `s`, or `` for a plain number."""
    if metric in _NS or metric.startswith(("op/", "pipeline/", "phase/", "communication/")):
        return "ns"
    if metric == "peak_memory" or metric.startswith("bytes/"):
        return "bytes"
    return "s" if metric.startswith("benchmark/") else ""


def format_value(metric: str, value: float) -> str:
    """A value with its unit, for people."""
    unit = unit_of(metric)
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    return format_ns(value * 1e9) if unit == "s" else f"{value:.6g}"


def spread(values: Iterable[float]) -> float | None:
    """Robust relative spread (0..): 1.4826 x median absolute deviation / median; None below two values or at 0."""
    sample = list(values)
    middle = median(sample) if sample else 0.0
    if len(sample) < 2 or middle == 0:
        return None
    return 1.4826 * median(abs(value - middle) for value in sample) / abs(middle)


def summary_text(measures: Measures, about: Mapping[str, Any], *, packed: bool) -> str:
    """Markdown: revision, machine, medians with their range and spread; primary metrics first, then the largest.

    `about` is what `baseline.json` says; `packed`: the facts are compressed.
    """
    lines = [f"# Baseline of {_cell(about['workload'])}", "", *_listed(about_lines(measures, about)), ""]
    lines += ["## Metrics", "", "| metric | median | lowest | highest | spread | reps |", "|---|---|---|---|---|---|"]
    named = ordered(measures)
    lines += [_row(metric, list(measures.values[metric].values())) for metric in named[:MOST_ROWS]]
    if len(named) > MOST_ROWS:
        lines += ["", f"{len(named) - MOST_ROWS} more in `measures.parquet`."]
    lines += ["", "Spread: 1.4826 x median absolute deviation / median, over repetitions.", "", "## Machine", ""]
    lines += _listed(f"{name}: {value}" for name, value in flat(measures.fingerprint))
    facts_file = "facts.json.zst (`zstd -dc facts.json.zst`)" if packed else "facts.json"
    lines += ["", f"{len(measures.facts)} facts that must not change are in {facts_file}."]
    return "\n".join(lines) + "\n"


def ordered(measures: Measures) -> list[str]:
    """The metrics, the primary ones first, then the largest."""
    return sorted(measures.values, key=lambda metric: (not is_primary(metric), _size(measures, metric), metric))


def about_lines(measures: Measures, about: Mapping[str, Any]) -> list[str]:
    """What a baseline is of, in lines; `about` is what `baseline.json` says."""
    git = about["git"] or {}
    revision = str(git.get("revision") or "not known") + (" with local changes" if git.get("dirty") else "")
    lines = [
        f"label: {about['label']}",
        f"revision: {revision}",
        f"measured: {about['created_at'] or 'not known'}",
        f"repetitions: {about['reps']} in {format_count(about['jobs'], 'job') if about['jobs'] else 'unknown jobs'}",
        f"machine class: {about['machine']}, fingerprint {about['fingerprint_hash']}",
    ]
    return [
        *lines,
        *(f"left out: {name}" for name in about["dropped"]),
        *(f"note: {sentence(one)}" for one in measures.notes),
    ]


def _listed(lines: Iterable[str]) -> list[str]:
    return [f"- {_cell(line)}" for line in lines]


def _row(metric: str, values: list[float]) -> str:
    middle, low, high = (format_value(metric, value) for value in (median(values), min(values), max(values)))
    return f"| {_cell(metric)} | {middle} | {low} | {high} | {format_ratio(spread(values))} | {len(values)} |"


def _size(measures: Measures, metric: str) -> float:
    return 0.0 if is_primary(metric) else -median(measures.values[metric].values())


def flat(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Facts of a machine with those within others, by name; without those that are not known."""
    pairs: list[tuple[str, Any]] = []
    for name, value in sorted(facts.items()):
        if isinstance(value, dict):
            pairs += [(f"{name} {inner}", text) for inner, text in sorted(value.items())]
        elif value is not None:
            pairs.append((name, value))
    return pairs


def _cell(text: Any) -> str:
    return escape.markdown(text)
