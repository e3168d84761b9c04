"""The answer that a report opens with: what limits, why, what to do, what that brings, and how sure it is.

One construction for all formats: the verdict on the run and the facts of the report's content in, sentences out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.report.answer import command, data, ended, interruptions, step, unknown
from pipeprof.report.answer.shape import Answer, modes_in
from pipeprof.report.words import training
from pipeprof.report.words import verdict as words
from pipeprof.report.words.training import length_difference, two_lengths
from pipeprof.units import format_bytes, format_count
from pipeprof.verdict import data_cause, ranking
from pipeprof.verdict.cause import RunVerdict
from pipeprof.verdict.memory import GROWING, is_own

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeprof.verdict.cause import Cause

LEAST_BYTES = 64 << 20  # over the steps seen
LEAST_SHARE = 0.25  # of the memory at the first steps


def leaking(content: dict[str, Any]) -> str:
    """How fast memory grows, as a sentence; empty where it does not, or by so little that it may never matter."""
    rows = [row for row in content.get("memory_growth") or () if row["verdict"] == GROWING and is_own(row)]
    large = [row for row in rows if row["grown_low_bytes"] >= max(LEAST_BYTES, LEAST_SHARE * row["first_bytes"])]
    if not large:
        return ""
    most = max(large, key=lambda row: row["grown_bytes"])
    shown = command.own(content["run"], "memory")
    pace, grown = format_bytes(most["slope_bytes"]), format_bytes(most["grown_bytes"])
    trend = f"an estimated trend; `{shown}` shows its range"
    return f"Memory grows by {pace} per step, {grown} in {most['span_steps']:,.0f} steps: probably a leak ({trend})."


__all__ = ["Answer", "answer_of", "verdict_in"]

_ANSWERS: dict[str, Callable[[dict[str, Any], Cause], Answer]] = {
    ranking.FAILED: lambda content, _cause: ended.answer(content, ended.before(content)),
    ranking.HANG: lambda content, _cause: ended.stood_still(content),
    ranking.PROCESS: interruptions.of_process,
    ranking.THREAD: interruptions.of_thread,
    ranking.PART: interruptions.of_part,
    ranking.DRIFT: interruptions.of_drift,
    ranking.RANKS: step.of_replay,
    ranking.CALL: interruptions.answer,
    ranking.STRAGGLER: step.of_straggler,
    **dict.fromkeys(data_cause.CODES, data.answer),
    **dict.fromkeys((*ranking.COSTS, *ranking.WORK), step.answer),
    **dict.fromkeys((ranking.IN_TIME, ranking.NOT_MEASURED), unknown.answer),
}


def verdict_in(content: dict[str, Any]) -> RunVerdict:
    """The verdict on the run that a report's content holds."""
    return msgspec.convert(content["verdict"], RunVerdict)


def answer_of(content: dict[str, Any]) -> Answer:
    """The first cause of the verdict in words, and those that cost about as much."""
    verdict, run = verdict_in(content), content["run"]
    given = _ANSWERS[verdict.lead.code](content, verdict.lead)
    told = (ranking.DRIFT, ranking.PART)  # what these say is what long steps have
    modes = None if verdict.lead.code in told else modes_in(content)
    two = [] if modes is None else [f"The steps have {two_lengths(modes)}. {length_difference(modes)}"]
    given.also = " ".join([*two, *(words.beside(cause, verdict.lead) for cause in verdict.beside)])
    leak = "" if verdict.lead.code in (ranking.FAILED, ranking.HANG) else leaking(content)
    if "memory" not in given.sentence:  # the steps may have become slower by it
        given.also = " ".join(filter(None, (leak, given.also)))
    if training.only_reads(run):
        _of_reads(given, content, verdict.lead.code)
    given.short_command, given.short_purpose = command.without_command(given.next_command), given.next_purpose
    if not given.short_command:
        given.short_command, given.short_purpose = command.own(run, "report", "--full"), "shows everything"
    return given


def _of_reads(given: Answer, content: dict[str, Any], lead: str) -> None:
    """Speak of the loop that reads batches in place of a training, and say first that there is none."""
    run = content["run"]
    worded = training.wording(run)
    for name in ("sentence", "cause", "action", "gain", "then", "also", "confidence_reason"):
        setattr(given, name, worded(getattr(given, name)))
    if lead in (ranking.FAILED, ranking.HANG):
        return
    times = [row["mean_ns"] for row in content["steps"]["summary"] if row["kind"] == "train" and row["mean_ns"]]
    pace = f", {1e9 / times[0]:,.3g} per second" if len(times) == 1 else ""
    read = format_count(training.batches_read(run), "batch")
    given.sentence = f"No training here: {read} {'was' if read[:2] == '1 ' else 'were'} read{pace}. {given.sentence}"
