"""The answer where Python in the training's own thread, beside what trains, takes a large part of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, at_most
from pipeprof.units import format_count, percent
from pipeprof.verdict.calls import LOOP, NETWORK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeprof.verdict.cause import Cause

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
