"""The answer where something beside the steps is the cost: interruptions, steps that become slower, calls of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, about, at_most, capital
from pipeprof.report.words import run_account, training
from pipeprof.units import format_count, format_ns, percent
from pipeprof.verdict.calls import LOOP, NETWORK, is_of_callback

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    given.place = place(calls[0]) if calls else ""
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


_ACTIONS = {
    NETWORK: "Compute it with operators, or once in front of the loop.",
    LOOP: "Move these lines out of the loop, or have a library compute them for whole arrays.",
}
_ACTION = "Call it less often (in every 100th step, once an epoch), make it cheaper, or do it in another process."


def answer(content: dict[str, Any], lead: Cause) -> Answer:
    """Of the call that takes most."""
    name = lead.stage and lead.stage.name
    call = next(one for one in content["diagnosis"]["loop_calls"] if (one["name"], one["where"]) == (name, lead.detail))
    given = Answer(_sentence(call), confidence=call["confidence"])
    given.cause = _cause(call)
    given.place = place(call)
    given.action = _ACTIONS.get(call["where"], _ACTION)
    if lead.most is not None:
        given.gain = f"The training would run {at_most(lead.most)} without it"
    given.confidence_reason = f"it was seen in {format_count(call['looks'], 'look')} at what Python does"
    given.propose(command.own(content["run"], "report", "--full"), "shows everything")
    return given


def _sentence(call: Mapping[str, Any]) -> str:
    share = percent(call["share"])
    if call["where"] == LOOP:
        return f"Python in the loop of `{call['name']}` itself takes {share} of the training loop."
    if call["where"] == NETWORK:
        return f"Python of `{call['name']}`, which the network runs, takes {share} of the training loop."
    return f"The call of `{call['name']}` takes {share} of the training loop."


def _cause(call: Mapping[str, Any]) -> str:
    name = (call["inside"] or "").rpartition(": ")[2]
    inside = f"{percent(call['inside_share'])} of the loop is in `{name}`." if name else ""
    waits = f"{percent(call['wait_share'])} is waiting for the network." if call["wait_share"] >= 0.01 else ""
    return " ".join(text for text in (inside, waits) if text)


def place(call: Mapping[str, Any]) -> str:
    """Where it is called, if MindSpore does not call it, and where it spends time of its own."""
    site, code = call["site"], call["code"]
    named = [f"called at `{site}`" if site else "", f"most of its own time at `{code}`" if code else ""]
    return ", ".join(text for text in named if text)
