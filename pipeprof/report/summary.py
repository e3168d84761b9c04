"""Three lines at the end of a recording: what was measured, where it is, what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.escape import as_argument, shell_word
from pipeprof.query.engine import Engine
from pipeprof.report.words import training as loop
from pipeprof.report.words.training import LEAST_WAIT, wait_share
from pipeprof.units import format_count, format_ns, format_ratio
from pipeprof.verdict.gate.levels import usual

if TYPE_CHECKING:
    from pipeprof.record.run import Run


def three_lines(run: Run) -> list[str]:
    """The lines, without colour."""
    name = shell_word(as_argument(str(run.path)))
    return [f"pipeprof: {_measured(run)}", f"pipeprof: {_state(run)}", f"pipeprof: next: pipeprof report {name}"]


def median_step_ns(summary: list[dict[str, Any]]) -> float | None:
    """The median training step of the slowest process, after warm-up if it has such steps; None without steps.

    Of several repetitions the level that comparisons judge, their geometric mean: all screens say one number.
    `summary`: rows of step/summary, whose medians are those of compare/rep_step.
    """
    return usual([row["median_ns"] for row in _slowest(summary).values()])


def of_medians(reps: int, ranks: int) -> str:
    """What `median_step_ns` is of so many repetitions and ranks."""
    return ("mean " if reps > 1 else "") + ("slowest median" if ranks > 1 else "median")


def in_detail(summary: list[dict[str, Any]]) -> tuple[int, int] | None:
    """The repetition and rank to show in detail: the repetition whose slowest rank is fastest, and that rank.

    What disturbs a repetition makes it slower. None without training steps.
    """
    fastest = min(_slowest(summary).values(), key=lambda row: (row["median_ns"], row["rep"]), default=None)
    return None if fastest is None else (fastest["rep"], fastest["rank"])


def _slowest(summary: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The rank with the slowest training steps of each repetition; after warm-up if any rank has such steps."""
    training = [row for row in summary if row["kind"] in ("train", "warmup")]
    slowest: dict[int, dict[str, Any]] = {}
    for row in [row for row in training if row["kind"] == "train"] or training:
        rank = slowest.setdefault(row["rep"], row)
        if (row["median_ns"], -row["rank"]) > (rank["median_ns"], -rank["rank"]):
            slowest[row["rep"]] = row
    return slowest


def _state(run: Run) -> str:
    manifest = run.manifest
    reason = f": {manifest.reason}" if manifest.reason else ""
    if manifest.state != "failed":
        return f"the run is {manifest.state}{reason}"
    error = next((rep.failure.error for rep in manifest.reps if rep.failure), None)
    return (manifest.reason or "the run failed") + (f" ({error})" if error else "")


def _measured(run: Run) -> str:
    with Engine.open(run, lazily=True) as engine:
        summary = engine.rows("step/summary")
        waits = engine.rows("step/data_wait")
        divided = [] if summary else engine.rows("step/split")
    training = [row for row in summary if row["kind"] in ("train", "warmup")]
    if not training:
        return _without_steps(run, divided)
    steady = [row for row in training if row["kind"] == "train"]
    warmup = sum(row["steps"] for row in training if row["kind"] == "warmup")
    steps = sum(row["steps"] for row in steady or training)
    processes = {(row["rep"], row["rank"]) for row in training}
    evidence = loop.same(rank.step_evidence for rep in run.manifest.reps for rank in rep.ranks)
    text = loop.counted(steps, evidence)
    if evidence == loop.READS:
        text = f"no training here: {text}"
    if warmup:
        text += f" after {warmup} of warm-up" if steady else ", all of them warm-up"
    if len(processes) > 1:
        text += f" in {len(processes)} processes"
    usual = of_medians(len({rep for rep, _ in processes}), len({rank for _, rank in processes}))
    text += f", {usual} {loop.SHORT.get(evidence, 'step')} {format_ns(median_step_ns(training))}"
    shares = [row["data_wait_share"] for row in waits if row["kind"] == "train" and row["data_wait_share"] is not None]
    if not shares:
        return text
    most = "up to " if len(shares) > 1 and max(shares) >= LEAST_WAIT else ""
    where = "batches" if evidence == loop.READS else "steps"
    return f"{text}; waiting for data took {most}{wait_share(max(shares), format_ratio)} of the time in all {where}"


def _without_steps(run: Run, divided: list[dict[str, Any]]) -> str:
    """`divided`: rows of step/split, where a profiler gives the parts of steps but not when they were."""
    said = [warning.message for warning in run.manifest.warnings if warning.code == "nothing_seen"]
    if said:
        return said[0]
    if divided:
        steps = sum(row["steps"] for row in divided)
        ranks = format_count(len(divided), "rank")
        return f"{format_count(steps, 'step')} of {ranks}, only as the profiler divides them"
    tables = run.manifest.tables
    op_rows = tables.get("op") or tables.get("op_total")
    if not op_rows:
        return "no training step was seen"
    return f"operators were found ({format_count(op_rows, 'row')}), but no steps"
