"""What a rank of a live run waits for, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeprof.units import format_count

Row = Mapping[str, Any]


class Tense(NamedTuple):
    """The verbs of a sentence about what goes on now, or about what was."""

    is_: str
    has: str
    waits: str
    runs: str
    builds: str
    compiles: str
    holds: str


NOW = Tense("is", "has", "waits", "runs", "builds", "compiles", "holds")
THEN = Tense("was", "had", "waited", "ran", "built", "compiled", "held")


def sentence(row: Row, tense: Tense = NOW) -> str:
    """What one rank is in; `row` is one of verdict/waiting.judge."""
    return f"rank {row['rank']} (process {row['pid']}) {WORDS[row['code']](row, tense)}"


def details(row: Row, tense: Tense = NOW) -> list[str]:
    """What stands below the sentence: the line, and threads and workers that are stuck in one thing."""
    lines = [f"{row['line']}"] if row["line"] else []
    return lines + [stuck(one, tense) for one in row["stuck"]]


def frames(stack: list[str]) -> list[str]:
    """A stack, innermost first, of which what belongs to pipeprof is left out."""
    return [f"at {frame}" for frame in stack if "/pipeprof/collect/probe/" not in frame]


def length(seconds: float) -> str:
    """How long something has lasted: seconds, and minutes where it is long."""
    return f"{seconds:.0f} s" if seconds < 120 else format_count(round(seconds / 60), "minute")


def _for(seconds: float | None) -> str:
    return "" if seconds is None else f" for {length(seconds)}"


def _at(row: Row) -> str:
    if row["site"] is None:
        return ""
    inside = "" if row["function"] == "<module>" else f" in {row['function']}"
    return f", at {row['site']}{inside}"


def _batch(row: Row, say: Tense) -> str:
    queue = row["queue"]
    state = "" if queue is None else f" (queue of batches: {queue['depth']} of {queue['capacity']} ready)"
    return f"{say.waits}{_for(row['for_s'])} for a batch{state}{_at(row)}"


def _script(row: Row, say: Tense) -> str:
    queue, part = row["queue"], "a callback of the script" if row["in_callback"] else "the script's own Python code"
    if queue is None:
        state = ""
    elif queue["depth"] >= queue["capacity"]:
        state = (
            f"; the queue of batches {say.is_} full ({queue['depth']} of {queue['capacity']}) and {say.waits} for it"
        )
    else:
        state = f"; queue of batches: {queue['depth']} of {queue['capacity']} ready"
    return f"{say.is_}{_for(row['for_s'])} in {part}{_at(row)}{state}"


def _collective(row: Row, say: Tense) -> str:
    missing = row["missing"]
    ranks = ", ".join(str(one["rank"]) for one in missing)
    noun = "rank" if len(missing) == 1 else "ranks"
    verb = "have" if len(missing) > 1 and say is NOW else say.has
    call = "a call of the network" if row["call"] == "network" else "MindSpore"
    return f"{say.waits}{_for(row['for_s'])} in {call} to which {noun} {ranks} {verb} not come{_at(row)}"


def _silent(row: Row, say: Tense) -> str:
    last = {"compile": "compiling", "network": "in a call of the network", "mindspore": "in MindSpore"}
    return (
        f"{say.runs} no Python{_for(row['for_s'])}: something {say.holds} the interpreter's lock (GIL), or the process "
        f"{say.is_} stopped; last seen {last.get(row['call'], 'in the script')}{_at(row)}"
    )


def stuck(one: Mapping[str, Any], tense: Tense = NOW) -> str:
    """A thread or worker process that is in one thing."""
    kind = "thread" if one["pid"] is None else f"worker process {one['pid']}"
    name = f" {one['name']}" if one["name"] else ""
    operator = f" of {one['op_type']}{name}" if one["op_type"] else ""
    line = f": {one['line']}" if one["line"] else ""
    return f"{kind}{operator} {tense.has} been{_for(one['for_s'])} in one call{_at(one)}{line}"


WORDS: dict[str, Callable[[Row, Tense], str]] = {
    "ended": lambda _, say: f"{say.has} ended",
    "gone": lambda _, say: f"{say.is_} gone: it ended without saying so, by a signal or a crash",
    "starting": lambda _, say: f"{say.has} begun to use MindSpore",
    "moving": lambda _, say: f"{say.is_} training",
    "silent": _silent,
    "first_batch": lambda row, say: f"{say.waits}{_for(row['for_s'])} for the first batch{_at(row)}",
    "batch": _batch,
    "build": lambda row, say: f"{say.builds} its data pipeline{_for(row['for_s'])}{_at(row)}",
    "compile": lambda row, say: f"{say.compiles} its network{_for(row['for_s'])}{_at(row)}",
    "network": lambda row, say: f"{say.is_}{_for(row['for_s'])} in a call of the network{_at(row)}",
    "mindspore": lambda row, say: f"{say.waits}{_for(row['for_s'])} for MindSpore{_at(row)}",
    "collective": _collective,
    "script": _script,
}
