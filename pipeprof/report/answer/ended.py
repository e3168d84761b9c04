"""The answer where the command failed: how it ended, the end of its traceback, and what to do."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from pipeprof.report.answer import command
from pipeprof.report.answer.shape import Answer, capital, measured
from pipeprof.units import format_bytes
from pipeprof.verdict.ending import KILLED, is_bad

if TYPE_CHECKING:
    from pipeprof.verdict.cause import Cause

MOST_LINES = 6  # of the traceback
NUMPY = "numpy"  # code of the warning that says that NumPy ended the training
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")


def answer(content: dict[str, Any], _cause: Cause) -> Answer:
    """Of the first repetition that failed."""
    run = content["run"]
    rep: dict[str, Any] = next((rep for rep in run["reps"] if is_bad(rep["exit_code"])), {})
    code, failure = rep.get("exit_code"), rep.get("failure")
    if not run["reps"]:  # it is not known how the command ended
        given, purpose = Answer(f"The recording failed: {_how(run, code)}.", action="Record it again."), "does that"
    else:
        given = Answer(f"The command failed {_when(content, rep.get('rep'))}: {_how(run, code)}.")
        given.action, purpose = _action(content, code, failure), "once it is fixed: records it again"
    if failure:
        given.cause = failure["error"]
        code_line = f": {failure['code']}" if failure["code"] else ""
        given.place = f"{_relative(failure['place'], run)}{code_line}" if failure["place"] else ""
        given.extra = _frames(failure)[-MOST_LINES:]
    if command.is_repeatable(run):
        words = ["collect", "--force", "-o", command.new_run(run)]
        given.propose(command.again(run, words), f"{purpose} and replaces this run")
    return given


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


def _relative(place: str, run: dict[str, Any]) -> str:
    """A file in the folder of the command without that folder."""
    workdir = run["workdir"]
    return place.removeprefix(f"{workdir}/") if workdir else place


def _frames(failure: dict[str, Any]) -> list[str]:
    """The traceback's lines up to the error; what MindSpore adds behind it is for its developers."""
    lines: list[str] = failure["lines"]
    said = failure["error"].partition(": ")[2] or failure["error"]
    last = next((index for index, line in enumerate(lines) if line.endswith(said)), len(lines) - 1)
    return [line for line in lines[: last + 1] if line.strip("^~- ")]


def _how(run: dict[str, Any], code: int | None) -> str:
    if code is None or code == 0:
        return run["reason"] or "it did not end as it should"
    if code in KILLED:
        return "it was killed (SIGKILL), which is what the kernel does when memory runs out"
    if code < 0:
        return f"it was ended by {_signal(code)}"
    return f"it exited with code {code}"


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _action(content: dict[str, Any], code: int | None, failure: dict[str, Any] | None) -> str:
    run = content["run"]
    recorded = " What was recorded before is in the full report (`--full`)." if measured(content) else ""
    if any(warning["code"] == NUMPY for warning in run["warnings"]):
        numpy = run["fingerprint"].get("numpy") or 2
        return f"Install NumPy below 2 (`pip install 'numpy<2'`): this MindSpore was not compiled for NumPy {numpy}."
    if (failure and failure["error"].startswith("MemoryError")) or code in KILLED:
        peak = max((row["peak_rss_bytes"] or 0 for row in content["memory"]), default=0)
        used = f" (a process used up to {format_bytes(peak)})" if peak else ""
        return f"Look for a lack of memory{used}: a smaller batch, fewer workers or a shorter prefetch queue.{recorded}"
    if code is not None and code < 0 and _signal(code) in CRASHES:
        return f"Look at the output of the command: native code crashed.{recorded}"
    if failure:
        return f"Fix the error, then profile again.{recorded}"
    return capital(f"look at the output of the command for the reason, then profile again.{recorded}")
