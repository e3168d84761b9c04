"""What a PyNative step did when: forward -> backward -> work on the gradients -> optimizer -> after it.

Pure: marks in, intervals out. The marks are exact, because the probe lets everything finish before a section is over;
they exist in op windows only. docs/decisions/0019 says why the order of the sections decides, not the operators' names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.step_rows import EVAL, Step, StepRows

FORWARD, BACKWARD, PASS = 1, 2, 3  # flags of a section
OPTIMIZER = 0  # flag of an update: an optimizer that Python called
PHASES = ("forward", "backward", "gradients", "optimizer", "after")


@dataclass(frozen=True)
class Pass:
    """A forward pass in a step: where it was called, of which network, and whether a gradient function ran it."""

    subject: int
    gradient: bool
    dur_ns: int


@dataclass
class Structure:
    """Of one step: intervals (phase, begin, end) that are its length together, in order, and its forward passes.

    Phases are those of PHASES, and `data_wait` for the time until the first batch and inside the iterator after that.
    """

    intervals: list[tuple[str, int, int]]
    passes: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begins = [begin for _, begin, _ in self.intervals]

    def at(self, time_ns: int) -> str:
        """The phase of an operator that started then; one that started while a batch was awaited is of the forward."""
        phase = self.intervals[max(0, bisect_right(self._begins, time_ns) - 1)][0]
        return "forward" if phase == "data_wait" else phase

    @property
    def backward_end(self) -> int:
        """When the last backward pass was over."""
        return max(end for phase, _, end in self.intervals if phase == "backward")

    @property
    def backwards(self) -> int:
        """How many backward passes it has."""
        return sum(1 for phase, _, _ in self.intervals if phase == "backward")

    def lengths(self) -> dict[str, int]:
        """Time of each of PHASES."""
        return {name: sum(end - begin for phase, begin, end in self.intervals if phase == name) for name in PHASES}


def structures(
    steps: Iterable[Step], marks: Iterable[Mark], slow: Sequence[tuple[int, int]] = ()
) -> dict[int, Structure]:
    """The structure of the training steps that have a backward pass among the marks, by the step's index.

    Steps that ran in the intervals of `slow` are left out: their times mean nothing. So are those of which nothing
    tells where the forward pass begins, and those that waited, by samples, for longer than until the backward pass.
    """
    steps, marks = StepRows.of(steps), Marks.of(marks)
    sections = _by_begin(marks.only(Kind.SECTION))
    updates = marks.only(Kind.UPDATE)
    updates = _by_begin(updates[updates.flag == OPTIMIZER])
    backward = sections.begin[sections.flag == BACKWARD]
    has_backward = np.searchsorted(backward, steps.start) < np.searchsorted(backward, steps.end)
    by_step = {}
    for index in np.flatnonzero(has_backward & (steps.kind != EVAL)).tolist():
        step = steps[index]
        within = _within(sections, step)
        # without a batch or a call of the network, what comes before the backward pass may be a loader
        has_forward = bool(step.fetches) or any(mark.flag != BACKWARD for mark in within)
        if any(begin < step.end and step.start < end for begin, end in slow) or not has_forward:
            continue
        made = _structure(step, within, _within(updates, step))
        if made.backwards:
            by_step[index] = made
    return by_step


def last_update(step: Step, updates: Marks) -> int | None:
    """When the step's last update was over, of an optimizer or of a compiled step; None without one.

    `updates` are in order of their begin.
    """
    first, last = updates.begin.searchsorted([step.start, step.end])
    return int(updates.end[first:last].max()) if first < last else None


def _by_begin(marks: Marks) -> Marks:
    return marks[np.argsort(marks.begin, kind="stable")]


def _within(marks: Marks, step: Step) -> list[Mark]:
    """Those that began in the step; all in order of their begin."""
    first, last = marks.begin.searchsorted([step.start, step.end]).tolist()
    return list(marks.between(first, last))


def _structure(step: Step, sections: Sequence[Mark], updates: Sequence[Mark]) -> Structure:
    forwards = [mark for mark in sections if mark.flag == FORWARD and not mark.number]
    backwards = [mark for mark in sections if mark.flag == BACKWARD and not mark.number]
    fixed = [("forward", mark) for mark in forwards]
    fixed += [("backward", mark) for mark in backwards]
    fixed += [("optimizer", mark) for mark in updates]
    fixed += [("data_wait", mark) for mark in step.fetches]
    fixed = _outermost(sorted(fixed, key=lambda item: (item[1].begin, -item[1].end)))
    alone = _alone(sections, [*forwards, *backwards, *updates])
    return Structure(list(_tiles(step, fixed, alone)), _passes(sections, forwards, alone))


def _outermost(fixed: Sequence[tuple[str, Mark]]) -> list[tuple[str, Mark]]:
    """Without what lies in another one."""
    outer: list[tuple[str, Mark]] = []
    for phase, mark in fixed:
        if not outer or mark.begin >= outer[-1][1].end:
            outer.append((phase, mark))
    return outer


def _alone(sections: Sequence[Mark], inner: Sequence[Mark]) -> list[Mark]:
    """Passes outside gradient functions; a cell that holds one, or an update, is the step's own."""
    return [
        mark
        for mark in sections
        if mark.flag == PASS and not mark.number
        and not any(mark.begin <= other.begin and other.end <= mark.end for other in inner)
    ]  # fmt: skip


def _passes(sections: Sequence[Mark], forwards: Sequence[Mark], alone: Sequence[Mark]) -> list[Pass]:
    """Cells called by a gradient function (or the cell that it runs), and those called beside it."""
    passes = [(mark.begin, Pass(mark.subject, gradient=False, dur_ns=mark.end - mark.begin)) for mark in alone]
    inside = [mark for mark in sections if mark.flag == PASS and mark.number]
    passes += [
        (mark.begin, Pass(mark.subject, gradient=True, dur_ns=mark.end - mark.begin)) for mark in (*forwards, *inside)
    ]
    return [item for _, item in sorted(passes, key=lambda pair: pair[0])]


def _tiles(step: Step, fixed: Sequence[tuple[str, Mark]], alone: Sequence[Mark]) -> list[tuple[str, int, int]]:
    """The fixed intervals, and what lies between them by what came before and what is still to come."""
    tiles: list[tuple[str, int, int]] = []
    ready = step.start if step.handed_over is None else step.handed_over
    if ready > step.start:
        tiles.append(("data_wait", step.start, ready))
    at, before = ready, "forward"
    for number, (kind, mark) in enumerate(fixed):
        if mark.end <= at:
            continue
        ahead = {name for name, _ in fixed[number:]}
        tiles += _gap(before, kind, ahead, at, max(at, mark.begin), alone)
        again = kind == "forward" and before == "after" and "backward" not in ahead  # its gradients are never asked for
        phase = "after" if again else kind
        tiles.append((phase, max(at, mark.begin), min(mark.end, step.end)))
        at = min(mark.end, step.end)
        before = _state(before, phase)
    tiles += _gap(before, "end", set(), at, step.end, alone)
    return [tile for tile in tiles if tile[2] > tile[1]]


def _state(before: str, phase: str) -> str:
    """What follows a fixed interval: `gradients` behind a backward pass, `after` behind an update."""
    following = {"backward": "gradients", "optimizer": "after"}
    if phase == "data_wait":
        return "forward" if before != "after" else before
    return following.get(phase, phase)


def _gap(
    before: str, phase: str, ahead: set[str], begin: int, end: int, alone: Sequence[Mark]
) -> list[tuple[str, int, int]]:
    """Behind an update, a pass of a network whose backward pass is still to come begins the next forward."""
    if before == "after" and phase == "optimizer":
        return [("gradients", begin, end)]
    if before == "after" and "backward" in ahead:
        split = min((mark.begin for mark in alone if begin <= mark.begin < end), default=end)
        return [("after", begin, split), ("forward", split, end)]
    return [(before, begin, end)]


def repeated_passes(by_step: Mapping[int, Structure], calls: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Networks that run forward more often per step than gradients are taken in it, with where; most often first.

    `calls`: by subject, the `site`, `cell` (class), `own` (a class of the user's) and `network` (its parameters) of a
    call. Copies of a network, such as the average of its weights, are of one class of the user's: the same network.
    """
    groups: dict[str, dict[int, list[Pass]]] = defaultdict(lambda: defaultdict(list))
    names: dict[str, str] = {}
    for index, structure in by_step.items():
        for item in structure.passes:
            call = calls.get(item.subject) or {}
            if call.get("cell"):
                name = str(call["cell"])
                key = name if call.get("own") else f"{name} {call.get('network')}"
                names[key] = name
                groups[key][index].append(item)
    rows = []
    for key, steps in groups.items():
        more = [passes for index, passes in steps.items() if len(passes) > by_step[index].backwards]
        if more:
            rows.append(_repeated(names[key], more, calls))
    return sorted(rows, key=lambda row: (-row["per_step"], row["network"]))


def _repeated(name: str, steps: Sequence[Sequence[Pass]], calls: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One network, by the passes of each of the steps in which it runs again."""
    sites: dict[str, list[Pass]] = defaultdict(list)
    for passes in steps:
        for item in passes:
            sites[str(calls[item.subject].get("site") or "")].append(item)
    rows = [
        {
            "site": site,
            "per_step": len(members) / len(steps),
            "gradient": any(item.gradient for item in members),
            "dur_ns": sum(item.dur_ns for item in members) // len(steps),
        }
        for site, members in sites.items()
    ]
    return {"network": name, "per_step": sum(map(len, steps)) / len(steps), "steps": len(steps), "sites": rows}
