"""The answer where the command failed: how it ended, the end of its traceback, and what to do."""

from __future__ import annotations

import math
import signal
from typing import Any

from pipeprof.record.run import CURES
from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, capital, measured
from pipeprof.units import format_bytes, format_count, format_ns
from pipeprof.verdict.ending import KILLED, is_bad, ran_out_of_cpu

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
