"""Since when the steps take as long as they do, in words."""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer import step
from pipeprof.report.sections.block import focus_of, rows_at
from pipeprof.report.words import training
from pipeprof.verdict.drift import DRIFT


def course_of(content: dict[str, Any]) -> dict[str, Any] | None:
    """The verdict on the course of the steps: of the rank that is the answer, else of the one shown in detail."""
    slower = (content.get("run_account") or {}).get("slower")
    return slower or next(iter(rows_at(content["steps"]["drift"], focus_of(content))), None)


def since(content: dict[str, Any]) -> str:
    """A sentence; empty where the steps did not become slower, or too few of them tell."""
    if step.is_sudden(content):
        return f"Since step {content['ranks']['causes']['found'][0]['since']}, when that rank became slower."
    row = course_of(content)
    if row is None or row["verdict"] not in training.SLOWER:
        return ""
    if row["verdict"] == DRIFT:
        return f"It grows over the whole training: the median step rises from {training.drift(row)}."
    when = training.moment(content, row["at_ns"])
    return f"Slower since about step {row['at_step']}{when}: the median step rises from {training.drift(row)}."
