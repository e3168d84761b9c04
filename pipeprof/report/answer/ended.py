"""The answer where the command failed or stood still: how it ended, in what, the end of its traceback, what to do."""

from __future__ import annotations

import math
import signal
from typing import Any

from pipeprof.record.run import CURES, UNSEEN_NS
from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, capital, measured
from pipeprof.report.words import waiting as words
from pipeprof.units import format_bytes, format_count, format_ns
from pipeprof.verdict.hang import KILLED, is_bad, ran_out_of_cpu
from pipeprof.verdict.waiting import SILENT

MOST_LINES = 6  # of the traceback
NUMPY, OPENMP = CURES
ENDERS = "a scheduler's limit of time or memory, a supervisor, `kill -9`"
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")


def first_failed(run: dict[str, Any]) -> dict[str, Any]:
    """The first repetition that did not end well; empty where none is known to."""
    return next((rep for rep in run["reps"] if is_bad(rep["exit_code"])), {})


def answer(content: dict[str, Any], before: str = "") -> Answer:
    """Of the first repetition that failed. `before`: what was seen of the training until then."""
    run = content["run"]
    rep = first_failed(run)
    failure = rep.get("failure")
    if not run["reps"]:  # it is not known how the command ended
        given, purpose = Answer(f"The recording failed: {how(run, rep)}.", action="Record it again."), "does that"
    else:
        given = Answer(f"The command failed {_when(content, rep.get('rep'))}: {how(run, rep)}.")
        given.sentence += unrecorded(content, rep)
        given.action, purpose = _action(content, rep), "once it is fixed: records it again"
    if failure:
        given.cause = f"{failure['error'].rstrip('.')}. {before}" if before else failure["error"]
        code_line = f": {failure['code']}" if failure["code"] else ""
        given.place = f"{relative(failure['place'], run)}{code_line}" if failure["place"] else ""
        given.extra = _frames(failure)[-MOST_LINES:]
    if command.is_repeatable(run):
        words = ["collect", "--force", "-o", command.new_run(run)]
        given.propose(command.again(run, words), f"{purpose} and replaces this run")
    return given


def unrecorded(content: dict[str, Any], rep: dict[str, Any]) -> str:
    """What a kill took along: how long nothing of it was written, and how many steps that may have been."""
    missing = missing_s(rep)
    count = steps_in(content, rep, missing)
    if not count:
        return ""
    steps = f"up to {format_count(count, 'more step')}"
    return f" Its last {format_ns(round(missing * 1e9))} ({steps}) had not been written."


def missing_s(rep: dict[str, Any]) -> float:
    """How long nothing was written before a kill."""
    return max((rank.get("missing_steps_s") or 0.0 for rank in rep.get("ranks", [])), default=0.0)


def steps_in(content: dict[str, Any], rep: dict[str, Any], seconds: float) -> int:
    """How many training steps fit into that time."""
    rows = content["steps"]["summary"]
    usual = [row["median_ns"] / 1e9 for row in rows if row["kind"] == "train" and row["rep"] == rep.get("rep")]
    return math.ceil(seconds / min(usual)) if usual and min(usual) else 0


def _when(content: dict[str, Any], rep: int | None) -> str:
    """How far the training came."""
    steps = measured(content, rep)
    if steps:
        return f"after {steps}"
    warmup = [row for row in content["steps"]["summary"] if row["kind"] == "warmup" and rep in (None, row["rep"])]
    if not warmup:
        return "before pipeprof saw a training step"
    count = max(row["steps"] for row in warmup)
    return f"during warm-up ({count} training step{' was' if count == 1 else 's were'} complete)"


def relative(place: str, run: dict[str, Any]) -> str:
    """A file in the folder of the command without that folder."""
    workdir = run["workdir"]
    return place.removeprefix(f"{workdir}/") if workdir else place


def _frames(failure: dict[str, Any]) -> list[str]:
    """The traceback's lines up to the error; what MindSpore adds behind it is for its developers."""
    lines: list[str] = failure["lines"]
    said = failure["error"].partition(": ")[2] or failure["error"]
    last = next((index for index, line in enumerate(lines) if line.endswith(said)), len(lines) - 1)
    return [line for line in lines[: last + 1] if line.strip("^~- ")]


def how(run: dict[str, Any], rep: dict[str, Any], *, by_whom: bool = True) -> str:
    """How the command of a repetition ended. `by_whom`: and whether the kernel is to blame for a kill."""
    code = rep.get("exit_code")
    if code is None or code == 0:
        return run["reason"] or "it did not end as it should"
    if ran_out_of_cpu(code, _cpu_limits(rep)):
        limits = [f"{limit_s:,} s, " for _, limit_s in _cpu_limits(rep)[:1]]
        return f"it had used up the CPU time that it was allowed ({''.join(limits)}`ulimit -t`)"
    if code in KILLED:
        return "it was killed (SIGKILL)" + (_by_whom(rep.get("oom_kills")) if by_whom else "")
    said = f"it was ended by {_signal(code)}" if code < 0 else f"it exited with code {code}"
    kills = rep.get("oom_kills")
    return said + (f"; the kernel had ended {format_count(kills, 'process')} for lack of memory" if kills else "")


def _cpu_limits(rep: dict[str, Any]) -> list[tuple[float, int]]:
    """CPU time used and allowed, in s, of each rank, else of the command; the tightest limit first."""
    lasts = [rank["last"] for rank in rep.get("ranks", []) if rank.get("last")]
    known = [last for last in lasts if last["cpu_limit_s"] is not None] or [rep]
    limits = [(one.get("cpu_s") or 0.0, one["cpu_limit_s"]) for one in known if one.get("cpu_limit_s") is not None]
    return sorted(limits, key=lambda limit: limit[1])


def _by_whom(oom_kills: int | None) -> str:
    if oom_kills is None:
        return "; by whom is not known"
    return " when the kernel had no memory left" if oom_kills else ", though the kernel did not lack memory"


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _action(content: dict[str, Any], rep: dict[str, Any]) -> str:
    run = content["run"]
    warned = {warning["code"]: warning["message"] for warning in run["warnings"]}
    if NUMPY in warned:
        numpy = run["fingerprint"].get("numpy") or 2
        return f"Install NumPy below 2 (`pip install 'numpy<2'`): this MindSpore was not compiled for NumPy {numpy}."
    if OPENMP in warned:
        return f"{capital(warned[OPENMP])}."
    recorded = " What was recorded before is in the full report (`--full`)." if measured(content) else ""
    return _cure(content, rep) + recorded


def _cure(content: dict[str, Any], rep: dict[str, Any]) -> str:
    code, failure = rep.get("exit_code"), rep.get("failure")
    if ran_out_of_cpu(code, _cpu_limits(rep)):
        return "Raise that limit (`ulimit -t unlimited`), or train for fewer steps."
    if code in KILLED and rep.get("oom_kills") == 0:
        return f"Look for who ended it: {ENDERS}."
    if (failure and failure["error"].startswith("MemoryError")) or code in KILLED or rep.get("oom_kills"):
        peak = max((row["peak_rss_bytes"] or 0 for row in content["memory"]), default=0)
        used = f" (a process used up to {format_bytes(peak)})" if peak else ""
        cure = f"Look for a lack of memory{used}: a smaller batch, fewer workers or a shorter prefetch queue."
        return cure if failure or rep.get("oom_kills") else f"{cure} Or for who ended it: {ENDERS}."
    if code is not None and code < 0 and _signal(code) in CRASHES:
        return "Look at the output of the command: native code crashed."
    if failure:
        return "Fix the error, then profile again."
    return "Look at the output of the command for the reason, then profile again."


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


def stood_still(content: dict[str, Any]) -> Answer:
    """What the rank to look at was in, and the others."""
    hang, run = content["hang"], content["run"]
    first = hang["ranks"][0]
    ending = _how(run, hang["rep"])
    if hang["stepped"]:
        given = Answer(f"The training stood still for its last {_seconds(hang)}, then {ending}.")
    else:
        given = Answer(f"No training step was complete when {ending}, after {_seconds(hang)} in one place.")
    given.sentence += _unrecorded(content, hang, first)
    given.cause = capital(f"{_said(hang)}.").replace(f"{run['workdir']}/", "")
    place = next(iter(_of_pipeline(first)), first)  # a loop that waits for a batch is not what stands still
    if place["site"] is not None:
        given.place = relative(place["site"], run) + (f": {place['line']}" if place["line"] else "")
    given.action = _where_to_look(hang)
    given.extra, given.extra_title = words.frames(place["stack"])[::-1], STACK_TITLE
    if command.is_repeatable(run):
        again = command.again(run, ["collect", "--force", "-o", command.new_run(run)])
        given.propose(again, "once it is fixed: records it again and replaces this run")
    return given


def _unrecorded(content: dict[str, Any], hang: dict[str, Any], first: dict[str, Any]) -> str:
    """What may be missing: while it says where it is, what it did is written; nothing is by one that is silent."""
    rep = next(one for one in content["run"]["reps"] if one["rep"] == hang["rep"])
    seconds = min(missing_s(rep), UNSEEN_NS / 1e9) if first["code"] == SILENT else 0.0
    count = steps_in(content, rep, seconds)
    return f" Up to {format_count(count, 'step')} before that may be missing." if count else ""


def _how(run: dict[str, Any], rep: int) -> str:
    """How the command ended; of a recording that was cut off that is not known."""
    facts = next(one for one in run["reps"] if one["rep"] == rep)
    if facts["exit_code"] is None:
        return "its recording was cut off"
    return how(run, facts, by_whom=bool(facts["oom_kills"]))


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


def _where_to_look(hang: dict[str, Any]) -> str:
    first, *others = hang["ranks"]
    if _of_pipeline(first):
        return _STUCK
    if first["code"] == "collective":
        missing = {one["rank"] for one in first["missing"]}
        late = next(row for row in others if row["rank"] in missing)
        return f"Look at why it did not come: {words.sentence(late, words.THEN)}."
    return ACTIONS.get(first["code"], _UNSEEN)
