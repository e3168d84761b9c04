"""Stages of one repetition: from a run of pipeprof's, from a log of load_and_run, or from any text by patterns.

Every function gives stage -> value, in ns, bytes or 1/s. What was not measured is not in it.
"""

from __future__ import annotations

import math
import re
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from pipeprof.errors import MeasureError
from pipeprof.experiment.pairs.series import steady_rate
from pipeprof.experiment.sweep.spec import units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.experiment.sweep.spec import Capture
    from pipeprof.read.megengine.load_and_run import Log

_TAKE: dict[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "median": median,
    "mean": fmean,
    "min": min,
    "max": max,
    "sum": sum,
}


def with_derived(values: Mapping[str, float]) -> dict[str, float]:
    """With what follows from the others, where it was not measured itself.

    `setup`: configure and the warm-up steps together, from configure and a first one on; `throughput`: 1 / steady.
    """
    derived = dict(values)
    if "configure" in derived and "warmup_first" in derived and "setup" not in derived:
        derived["setup"] = derived["configure"] + derived["warmup_first"] + derived.get("warmup_second", 0.0)
    if derived.get("steady") and "throughput" not in derived:
        derived["throughput"] = 1e9 / derived["steady"]
    return derived


def from_run(
    steps: Iterable[Mapping[str, Any]], stages: Iterable[Mapping[str, Any]], measured: Mapping[str, float]
) -> dict[str, float]:
    """Stages from the tables `step` and `stage` of a run, and from its metrics (`query.measure`).

    configure: from the launch to the start of the first training step, and the graph compilation inside that step;
    warmup_first: the rest of that step; warmup_second: the second one; steady: mean of the steps after the first
    quarter, for a median hides stalls that come every few steps. Of several ranks, the slowest.
    """
    rows, marks = list(steps), [row for row in stages if row["stage"] == "compile"]
    ranks = sorted({row["rank"] for row in rows})
    stage_values: dict[str, float] = {}
    for rank in ranks:
        mine = [row for row in rows if row["rank"] == rank]
        setup = with_derived(_setup(mine, [row for row in marks if row["rank"] == rank]))
        for name, value in setup.items():
            stage_values[name] = max(stage_values.get(name, value), value)
    if "peak_memory" in measured:
        stage_values["peak_memory"] = measured["peak_memory"]
    rate = steady_rate(rows)
    if rate is not None:
        stage_values["steady"], stage_values["throughput"] = 1e9 / rate.per_second, rate.per_second
    return with_derived(stage_values)


def _setup(steps: Sequence[Mapping[str, Any]], compiled: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    training = sorted((row for row in steps if row["kind"] != "eval"), key=lambda row: int(row["start_ns"]))
    if not training:
        return {}
    start, end = int(training[0]["start_ns"]), int(training[0]["end_ns"])
    inside = sum(_overlap(int(row["start_ns"]), int(row["dur_ns"]), start, end) for row in compiled)
    inside = min(inside, end - start)
    setup = {"configure": float(start + inside), "warmup_first": float(end - start - inside)}
    if len(training) > 1:
        setup["warmup_second"] = float(int(training[1]["end_ns"]) - int(training[1]["start_ns"]))
    return setup


def _overlap(start: int, duration: int, low: int, high: int) -> int:
    return max(0, min(start + duration, high) - max(start, low))


def from_load_and_run(log: Log, path: Path) -> dict[str, float]:
    """Stages of the last test case of a log: configure is its "prepare" line, steady the mean of its iterations.

    With several test cases, set-up is that of the first. Raises MeasureError when the log ends before its last line.
    """
    if not log.complete:
        raise MeasureError(f"the log `{path}` ends before its test case does", "look at its last lines")
    first, last = log.tests[0], log.tests[-1]
    stage_values: dict[str, float] = {}
    if first.configure_ns is not None:
        stage_values["configure"] = float(first.configure_ns)
    for name, value in zip(("warmup_first", "warmup_second"), first.warmup_ns, strict=False):
        stage_values[name] = float(value)
    if last.mean_ns:
        stage_values["steady"] = float(last.mean_ns)
    return with_derived(stage_values)


def from_text(text: str, captures: Mapping[str, Capture], judge: str) -> dict[str, float]:
    """Stages from what a command said. Raises MeasureError when the stage that is judged is not in it, or no number."""
    stage_values: dict[str, float] = {}
    for stage, capture in captures.items():
        values = [_number(match[1], stage) for match in re.finditer(capture.pattern, text, re.MULTILINE)]
        if values:
            stage_values[stage] = _TAKE[capture.take](values) * units_of(stage)[capture.unit]
    if judge not in stage_values and judge in captures:
        raise MeasureError(f"the pattern of `{judge}` matches nothing in what the command said", "see its log")
    return with_derived(stage_values)


def _number(text: str | None, stage: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise MeasureError(
            f"the pattern of `{stage}` found `{text}`, expected a number, 0 or more",
            "let its first group be the number",
        )
    return value
