"""The answer that a report opens with: what limits, why, what to do, what that brings, and how sure it is.

One construction for all formats: facts of the report's content in, sentences out.
"""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer import around, causes, command, data, ended, hang, process, step, unknown
from pipeprof.report.answer.leak import leaking
from pipeprof.report.answer.shape import Answer

__all__ = ["Answer", "answer_of"]


def answer_of(content: dict[str, Any]) -> Answer:
    """Why the command failed, else why the training is slow, else why nothing can be said."""
    given = _chosen(content)
    run = content["run"]
    leak = "" if ended.has_failed(run) or hang.leads(content) else leaking(content)
    if leak and "memory" not in given.sentence:  # the steps may have become slower by it
        given.sentence = f"{leak} {given.sentence}"
    given.short_command, given.short_purpose = command.without_command(given.next_command), given.next_purpose
    if not given.short_command:
        given.short_command, given.short_purpose = command.own(run, "report", "--full"), "shows everything"
    return given


def _chosen(content: dict[str, Any]) -> Answer:
    diagnosis = content["diagnosis"]
    if hang.leads(content) or ended.has_failed(content["run"]):
        return hang.answer(content) if hang.leads(content) else ended.answer(content, hang.before(content))
    leading = next((one for one in (process, around) if one.can_say(content)), None)
    if leading is not None and not causes.is_sudden(content):
        given: Answer = leading.answer(content)
        return given
    if diagnosis["verdict"] in ("input_bound", "balanced"):
        return data.answer(content)
    if causes.can_say(content):
        return causes.answer(content)
    network = diagnosis["network"]
    if step.can_say(content) or (network and network["limit"] != "not_measured"):
        return step.answer(content)
    return unknown.answer(content)
