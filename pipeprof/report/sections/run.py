"""What was run, where, and what went wrong; the whole run in parts that add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeprof import escape
from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, rows_at
from pipeprof.report.words import training
from pipeprof.units import format_ns, format_ratio

HOOKS = {"compiled": "C", "python": "Python"}  # which of the recorder's two were used
LIBRARIES = {"mindspore": "MindSpore", "torch": "PyTorch"}
MOST_NUMBERS = 8  # ranks or repetitions that a warning names


def run_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """State, command, machine and versions, and the warnings."""
    run = content["run"]
    section = Section(f"Run {run['path']}")
    state = run["state"] + (f": {run['reason']}" if run["reason"] else "")
    section.strong.append(state)
    if run["command"]:
        section.notes.append("command: " + escape.command(run["command"]))
    machine = run["fingerprint"]
    facts = [
        *(f"{title} {machine.get(name)}" for name, title in LIBRARIES.items() if machine.get(name)),
        machine.get("device"),
        f"{machine['mode']} mode" if machine.get("mode") else None,
        f"Python {machine['python']}" if machine.get("python") else None,
        machine.get("cpu_model"),
        f"{machine['cpu_cores']} cores" if machine.get("cpu_cores") else None,
        *_hooks(run),
    ]
    section.notes += filter(None, [", ".join(fact for fact in facts if fact)])
    section.notes += [*shown_of(content, focus), *_warnings(run)]
    return section


def _hooks(run: dict[str, Any]) -> list[str]:
    used = {rank.get("hooks") for rep in run["reps"] for rank in rep["ranks"]}
    return [f"hooks in {HOOKS[name]}" for name in sorted(used & HOOKS.keys())]


def shown_of(content: dict[str, Any], focus: tuple[int, int]) -> list[str]:
    """Which repetition and rank details are of, where there are several."""
    measured = {(row["rep"], row["rank"]) for row in content["steps"]["summary"]}
    if len(measured) < 2:
        return []
    reps, ranks = (len({one[place] for one in measured}) for place in (0, 1))
    why = "which the verdict is about" if content["diagnosis"]["rep"] == focus[0] else "the least disturbed one"
    which = [
        f"repetition {focus[0]} of {reps}, {why}" if reps > 1 else "",
        f"rank {focus[1]}, the slowest of {ranks}" if ranks > 1 else "",
    ]
    return [f"details are of {'; '.join(filter(None, which))}"]


def _warnings(run: dict[str, Any]) -> Iterator[str]:
    """Each message once, and where there are several repetitions or ranks, of which it is."""
    recorded = {
        "repetition": {rep["rep"] for rep in run["reps"]},
        "rank": {rank["rank"] for rep in run["reps"] for rank in rep["ranks"]},
    }
    by_message: dict[str, dict[str, set[int]]] = {}
    for warning in run["warnings"]:
        of = by_message.setdefault(warning["message"], {"repetition": set(), "rank": set()})
        of["repetition"] |= {warning.get("rep")} - {None}
        of["rank"] |= {warning.get("rank")} - {None}
    for message, of in by_message.items():
        places = [_numbers(what, of[what]) for what in recorded if len(recorded[what]) > 1 and of[what]]
        yield f"warning: {message}" + (f" ({'; '.join(places)})" if places else "")


def _numbers(what: str, numbers: set[int]) -> str:
    shown = [str(number) for number in sorted(numbers)[:MOST_NUMBERS]]
    more = ["..."] if len(numbers) > MOST_NUMBERS else []
    return f"{what if len(numbers) == 1 else what + 's'} {', '.join(shown + more)}"


def whole_run_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Large parts first in words, then all of them in order of time."""
    section, worded = Section("Whole run"), training.wording(content["run"])
    account = content["run_account"]
    for item in account["large"]:
        share, advice = format_ratio(item["share"]), training.advice(item)
        text = f"{capital(training.name(item))}: {share} of the run ({training.numbers(item)})"
        section.notes.append(f"{text}. {advice.rstrip('.')}" if advice else text)
    rows = sorted(rows_at(account["parts"], focus), key=lambda row: (row["start_ns"], row["part"]))
    listed = [
        [
            worded(training.name(row)),
            str(row["count"]),
            format_ns(row["dur_ns"]),
            format_ratio(row["share"]),
        ]
        for row in rows
    ]
    if listed:
        total = sum(row["dur_ns"] for row in rows)
        listed.append(["the whole run", "-", format_ns(total), format_ratio(1.0 if total else None)])
        section.blocks.append(Block(("part of the run", "count", "time", "of the run"), listed, frozenset((1, 2, 3))))
    return section
