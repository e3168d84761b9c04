"""The answer where what interrupts the training costs more than its steps could save, or the steps become slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command, python_call
from pipeprof.report.answer.shape import Answer, about, at_most, capital
from pipeprof.report.words import run_account, training
from pipeprof.units import format_ns, percent
from pipeprof.verdict.calls import is_of_callback

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause

_CURES = {
    "memory_growth": "Look for what the loop keeps: losses or outputs that are collected as tensors.",
    "neighbour": "Keep other programs off the machine while the training runs.",
    "throttling": "Give the job a larger CPU quota.",
    "recompilation": "Give the network inputs of the same shapes, so that no graph is compiled again.",
}


def of_part(content: dict[str, Any], _cause: Cause) -> Answer:
    """Of the part that costs most."""
    part = content["run_account"]["leading"]
    share = part["loop_share"]
    given = Answer(run_account.sentence(part, percent(share)), confidence="high")
    given.cause = f"{capital(run_account.name(part))}: {run_account.numbers(part)}, of {format_ns(part['loop_ns'])}."
    calls = [call for call in content["diagnosis"].get("loop_calls", ()) if is_of_callback(call, part)]
    given.place = python_call.place(calls[0]) if calls else ""
    given.action = run_account.advice(part)
    if share < 1:
        given.gain = f"The training would run {at_most(1 / (1 - share))} if this took no time"
    given.confidence_reason = "it was timed from its beginning to its end"
    given.propose(command.own(content["run"], "report", "--section", "whole-run"), "shows where the whole time went")
    return given


def of_drift(content: dict[str, Any], _cause: Cause) -> Answer:
    """Of steps that become slower."""
    late = content["run_account"]["slower"]
    given = Answer(f"The training gets slower as it runs: {training.drift_sentence(content, late)}.")
    given.confidence = "medium" if late["causes"] else "low"
    given.action = next(
        (_CURES[code] for code in late["causes"]),
        "Look at what else changed at that time: `--section steps` and `--section cpu`.",
    )
    given.gain = f"The training would run {about(1 / (1 - late['cost_share']))} if no step were slower"
    given.confidence_reason = (
        "both changed at the same time, which is no proof" if late["causes"] else "no cause was recorded"
    )
    shown = command.own(content["run"], "report", "--section", "steps", "--section", "cpu")
    given.propose(shown, "shows the steps and who used the CPU")
    return given
