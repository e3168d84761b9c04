"""The answer where the training stood still before its command ended: in what, at which line, and what to look at."""

from __future__ import annotations

from typing import Any

from pipeprof.record.run import UNSEEN_NS
from pipeprof.report.answer import command, ended
from pipeprof.report.answer.shape import Answer, capital
from pipeprof.report.words import waiting as words
from pipeprof.units import format_count
from pipeprof.verdict.waiting import SILENT

STACK_TITLE = "Where it stood (most recent call last)"

_SERVED = "a lock, a queue, a file or a connection that nobody serves"
ACTIONS = {
    "script": f"Look at what this line waits for: {_SERVED}.",
    "silent": (
        "Look at what this line calls: code in C that waits while it keeps the interpreter's lock stops every thread "
        "of Python. Or the process was stopped from outside (SIGSTOP, a debugger)."
    ),
    "compile": "See what the compiler does in MindSpore's own log (`GLOG_v=1`), or train a smaller network first.",
    "network": "See what MindSpore waits for in its own log (`GLOG_v=1`).",
    "mindspore": "See what MindSpore waits for in its own log (`GLOG_v=1`).",
}
_STUCK = f"Look at what that call waits for: {_SERVED}."
_UNSEEN = "No Python of the data pipeline stood still: look at its files, and at MindSpore's own log (`GLOG_v=1`)."


def before(content: dict[str, Any]) -> str:
    """What goes before an exception that ended it; empty where it did not stand still."""
    if content.get("hang") is None:
        return ""
    return f"Before that it had stood still for {_seconds(content['hang'])}: {_said(content['hang'])}."


def answer(content: dict[str, Any]) -> Answer:
    """What the rank to look at was in, and the others."""
    hang, run = content["hang"], content["run"]
    first = hang["ranks"][0]
    how = _how(run, hang["rep"])
    if hang["stepped"]:
        given = Answer(f"The training stood still for its last {_seconds(hang)}, then {how}.")
    else:
        given = Answer(f"No training step was complete when {how}, after {_seconds(hang)} in one place.")
    given.sentence += _unrecorded(content, hang, first)
    given.cause = capital(f"{_said(hang)}.").replace(f"{run['workdir']}/", "")
    place = next(iter(_of_pipeline(first)), first)  # a loop that waits for a batch is not what stands still
    if place["site"] is not None:
        given.place = ended.relative(place["site"], run) + (f": {place['line']}" if place["line"] else "")
    given.action = _action(hang)
    given.extra, given.extra_title = words.frames(place["stack"])[::-1], STACK_TITLE
    if command.is_repeatable(run):
        again = command.again(run, ["collect", "--force", "-o", command.new_run(run)])
        given.propose(again, "once it is fixed: records it again and replaces this run")
    return given


def _unrecorded(content: dict[str, Any], hang: dict[str, Any], first: dict[str, Any]) -> str:
    """What may be missing: while it says where it is, what it did is written; nothing is by one that is silent."""
    rep = next(one for one in content["run"]["reps"] if one["rep"] == hang["rep"])
    seconds = min(ended.missing_s(rep), UNSEEN_NS / 1e9) if first["code"] == SILENT else 0.0
    count = ended.steps_in(content, rep, seconds)
    return f" Up to {format_count(count, 'step')} before that may be missing." if count else ""


def _how(run: dict[str, Any], rep: int) -> str:
    """How the command ended; of a recording that was cut off that is not known."""
    facts = next(one for one in run["reps"] if one["rep"] == rep)
    if facts["exit_code"] is None:
        return "its recording was cut off"
    return ended.how(run, facts, by_whom=bool(facts["oom_kills"]))


def _seconds(hang: dict[str, Any]) -> str:
    return words.length(hang["for_s"])


def _said(hang: dict[str, Any]) -> str:
    """The rank to look at, what of its pipeline stood still, and those that waited for it."""
    first, *others = hang["ranks"]
    parts = [words.sentence(first, words.THEN), *(words.stuck(one, words.THEN) for one in _of_pipeline(first))]
    waited = [row for row in others if any(one["rank"] == first["rank"] for one in row["missing"])]
    if waited:
        parts.append(f"{format_count(len(waited), 'rank')} waited for it")
    return "; ".join(parts)


def _of_pipeline(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Threads and workers that made a row: what a wait for a batch is for."""
    return [one for one in row["stuck"] if one["op_type"]] if row["code"] in ("batch", "first_batch") else []


def _action(hang: dict[str, Any]) -> str:
    first, *others = hang["ranks"]
    if _of_pipeline(first):
        return _STUCK
    if first["code"] == "collective":
        missing = {one["rank"] for one in first["missing"]}
        late = next(row for row in others if row["rank"] in missing)
        return f"Look at why it did not come: {words.sentence(late, words.THEN)}."
    return ACTIONS.get(first["code"], _UNSEEN)
