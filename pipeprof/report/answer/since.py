"""Since when the steps take as long as they do, in words."""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer import step
from pipeprof.report.sections.block import focus_of, rows_at
from pipeprof.report.words import training
from pipeprof.units import format_count
from pipeprof.verdict.drift import DRIFT, LEAST_STEPS, STEADY


def course_of(content: dict[str, Any]) -> dict[str, Any] | None:
    """The verdict on the course of the steps: of the rank that is the answer, else of the one shown in detail."""
    slower = (content.get("run_account") or {}).get("slower")
    return slower or next(iter(rows_at(content["steps"]["drift"], focus_of(content))), None)


def since(content: dict[str, Any]) -> str:
    """A sentence; empty without a training step whose time counts."""
    if step.is_sudden(content):
        return f"Since step {content['ranks']['causes']['found'][0]['since']}, when that rank became slower."
    row = course_of(content)
    if row is None:
        return ""
    if row["verdict"] == STEADY:
        return "From the start: the steps do not become slower as the training runs."
    if row["verdict"] not in training.SLOWER:
        return (
            f"Not known: {format_count(row['steps'], 'training step')} cannot tell whether they become slower "
            f"({LEAST_STEPS} or more are needed)."
        )
    if row["verdict"] == DRIFT:
        return f"It grows over the whole training: the median step rises from {training.drift(row)}."
    when = training.moment(content, row["at_ns"])
    return f"Slower since about step {row['at_step']}{when}: the median step rises from {training.drift(row)}."
