"""What a rank of a live run waits for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Row = Mapping[str, Any]


def sentence(row: Row) -> str:
    """What one rank is in; `row` is one of verdict/waiting.judge."""
    return f"rank {row['rank']} (process {row['pid']}) {WORDS[row['code']](row)}"


def details(row: Row) -> list[str]:
    """What stands below the sentence: queues, threads and workers that are stuck in one thing."""
    lines = [f"{row['line']}"] if row["line"] else []
    return lines + [_stuck(one) for one in row["stuck"]]


def frames(stack: list[str]) -> list[str]:
    """A stack, innermost first, of which what belongs to pipeprof is left out."""
    return [f"at {frame}" for frame in stack if "/pipeprof/collect/probe/" not in frame]


def _for(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 120:
        return f" for {seconds:.0f} s"
    return f" for {format_count(round(seconds / 60), 'minute')}"


def _at(row: Row) -> str:
    if row["site"] is None:
        return ""
    inside = "" if row["function"] == "<module>" else f" in {row['function']}"
    return f", at {row['site']}{inside}"


def _batch(row: Row) -> str:
    queue = row["queue"]
    state = "" if queue is None else f" (queue of batches: {queue['depth']} of {queue['capacity']} ready)"
    return f"waits{_for(row['for_s'])} for a batch{state}{_at(row)}"


def _script(row: Row) -> str:
    queue, part = row["queue"], "a callback of the script" if row["in_callback"] else "the script's own Python code"
    if queue is None:
        state = ""
    elif queue["depth"] >= queue["capacity"]:
        state = f"; the queue of batches is full ({queue['depth']} of {queue['capacity']}) and waits for it"
    else:
        state = f"; queue of batches: {queue['depth']} of {queue['capacity']} ready"
    return f"is{_for(row['for_s'])} in {part}{_at(row)}{state}"


def _collective(row: Row) -> str:
    missing = row["missing"]
    ranks = ", ".join(str(one["rank"]) for one in missing)
    noun, verb = ("rank", "has") if len(missing) == 1 else ("ranks", "have")
    call = "a call of the network" if row["call"] == "network" else "MindSpore"
    return f"waits{_for(row['for_s'])} in {call} to which {noun} {ranks} {verb} not come{_at(row)}"


def _silent(row: Row) -> str:
    last = {"compile": "compiling", "network": "in a call of the network", "mindspore": "in MindSpore"}
    return (
        f"runs no Python{_for(row['for_s'])}: something holds the interpreter's lock (GIL), or the process is stopped; "
        f"last seen {last.get(row['call'], 'in the script')}{_at(row)}"
    )


def _stuck(one: Mapping[str, Any]) -> str:
    kind = "thread" if one["pid"] is None else f"worker process {one['pid']}"
    name = f" {one['name']}" if one["name"] else ""
    operator = f" of {one['op_type']}{name}" if one["op_type"] else ""
    line = f": {one['line']}" if one["line"] else ""
    return f"{kind}{operator} has been{_for(one['for_s'])} in one call{_at(one)}{line}"


WORDS: dict[str, Callable[[Row], str]] = {
    "ended": lambda _row: "has ended",
    "gone": lambda _row: "is gone: it ended without saying so, by a signal or a crash",
    "starting": lambda _row: "has begun to use MindSpore",
    "moving": lambda _row: "is training",
    "silent": _silent,
    "first_batch": lambda row: f"waits{_for(row['for_s'])} for the first batch{_at(row)}",
    "batch": _batch,
    "build": lambda row: f"builds its data pipeline{_for(row['for_s'])}{_at(row)}",
    "compile": lambda row: f"compiles its network{_for(row['for_s'])}{_at(row)}",
    "network": lambda row: f"is{_for(row['for_s'])} in a call of the network{_at(row)}",
    "mindspore": lambda row: f"waits{_for(row['for_s'])} for MindSpore{_at(row)}",
    "collective": _collective,
    "script": _script,
}
