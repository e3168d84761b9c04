"""The answer where a replay of the step shows what makes it slower than its peers'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, at_most
from pipeprof.report.words import causes as words
from pipeprof.units import format_count, percent

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause


def is_sudden(content: dict[str, Any]) -> bool:
    """Whether the first cause across ranks is one that became slow, which also makes later steps slower."""
    causes = content.get("ranks", {}).get("causes")
    return bool(causes and causes["found"]) and causes["found"][0]["code"] == "fail_slow"


def answer(content: dict[str, Any], _lead: Cause) -> Answer:
    """Of the cause that costs most."""
    causes = content["ranks"]["causes"]
    item, slow = causes["found"][0], causes["slowdown"]
    given = Answer(words.sentence(item) + ".", confidence=item["confidence"])
    given.cause = _cause(slow)
    given.action = words.ADVICE[item["code"]]
    if item["times"] is not None:
        given.gain = f"A step would run {at_most(item['times'])}"
    others = causes["found"][1:]
    given.then = words.as_next(others[0]) if others else ""
    given.confidence_reason = words.doubts(item["doubts"]) or (
        f"a replay of {format_count(slow['steps'], 'step')} is {percent(causes['error'])} off the recorded times"
    )
    shown = command.own(content["run"], "report", "--section", "causes")
    given.propose(shown, "shows the slow-down by stage, rank, link and kind of operation")
    return given


def _cause(slow: dict[str, Any]) -> str:
    text = f"If every operation took as long as its peers' on average, a step would run {slow['s']:.2f} times as fast"
    if slow["launch"] >= 1.01:
        text += f" (host gaps not counted); host gaps make it another {slow['launch']:.2f} times as long"
    return text + "."
