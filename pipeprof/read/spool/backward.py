"""When the backward pass of a step ended in which no operator was recorded: by what the loop called, and when.

Pure: steps and marks in, times out. An optimizer that Python calls begins when the gradients have been asked for, and a
compiled function that makes gradients ends then. PyNative runs behind Python, so the pass may end later: by how much
was seen at the end of backward passes in op windows; not where the training waits for a tensor in between, for that
waits for all that was launched before. Where one call holds the whole step, or the user named the
operator, the pass ends at the same share of the step as in op windows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.loops import GRADIENT
from pipeprof.read.spool.marks import Kind, Marks
from pipeprof.read.spool.sections import BACKWARD, OPTIMIZER
from pipeprof.read.spool.step_rows import EVAL, StepRows

if TYPE_CHECKING:
    from pipeprof.read.source.numbers import Bools, Ints

OPERATOR, UPDATE, CALL, SHARE = "op", "update", "call", "share"
SOURCES = ("", OPERATOR, UPDATE, CALL, SHARE)
UNKNOWN = -(1 << 63)  # how far an end may be off
_AT_ONCE = 1 << 20  # calls


class BackwardEnds:
    """When the backward pass of each step ended, how that is known (index in SOURCES), and how far it may be off."""

    def __init__(self, steps: int) -> None:
        self.end, self.error = np.zeros(steps, np.int64), np.full(steps, UNKNOWN, np.int64)
        self.source = np.zeros(steps, np.uint8)


def backward_ends(
    steps: StepRows, marks: Marks, measured: Mapping[int, int], *, is_named: bool = False
) -> BackwardEnds:
    """Of each training step, as far as it can be told. `measured`: the ends that operators tell, by the step's index.

    `is_named`: the user named the operator that they are of, so that what the loop calls says nothing of it.
    """
    ends = BackwardEnds(len(steps))
    calls = marks.only(Kind.UPDATE, Kind.CALL)
    calls = calls[np.argsort(calls.begin, kind="stable")]
    first, last = (np.searchsorted(calls.begin, times) for times in (steps.start, steps.end))
    training = steps.kind != EVAL
    told = np.zeros(len(steps), np.bool_)
    if not is_named:
        waits = np.array(_waits_for_gradients(marks), np.int64)
        waited = np.searchsorted(waits, steps.start) < np.searchsorted(waits, steps.end)
        _by_calls(calls, first, last, training, ends)
        told = ends.source > 0
        behind = _behind(marks)
        ends.error[told] = np.where(waited[told], 0, UNKNOWN if behind is None else behind)
    compiled = np.sort(marks.only(Kind.COMPILE).end)
    ready, known = steps.handed_over()
    others = training & ~told
    _by_shares(np.flatnonzero(others), np.where(known, ready, steps.start), steps.end, compiled, measured, ends)
    if not is_named:
        at, place = _single_updates(calls, first, last, np.flatnonzero(others))
        begin, end = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
        begin[at], end[at] = calls.begin[place], calls.end[place]
        _by_shares(at, begin, end, compiled, measured, ends)  # of a call that returns before its graph has run, none
    for index, end_ns in measured.items():
        ends.end[index], ends.source[index], ends.error[index] = end_ns, SOURCES.index(OPERATOR), 0
    return ends


def _single_updates(calls: Marks, first: Ints, last: Ints, steps: Ints) -> tuple[Ints, Ints]:
    """Of these steps those with one update, and where in the calls it is."""
    updates = np.flatnonzero(calls.kind == Kind.UPDATE)
    begin, end = np.searchsorted(updates, first[steps]), np.searchsorted(updates, last[steps])
    alone = end - begin == 1
    return steps[alone], updates[begin[alone]]


def _behind(marks: Marks) -> int | None:
    """How long PyNative ran on when Python had asked for the gradients; marks of sections tell it in microseconds."""
    sections = marks.only(Kind.SECTION)
    known = (sections.subject[sections.flag == BACKWARD] * 1000).tolist()
    return round(median(known)) if any(known) else None


def _waits_for_gradients(marks: Marks) -> list[int]:
    """When the loop waited between its gradients and the optimizer, in order: at lines that did so in op windows."""
    syncs = [mark for mark in marks.only(Kind.SYNC) if mark.subject]
    if not syncs:
        return []
    sections, updated = marks.only(Kind.SECTION), marks.only(Kind.UPDATE)
    backward = sorted(sections.end[sections.flag == BACKWARD].tolist())
    updates = sorted(updated.begin[updated.flag == OPTIMIZER].tolist())
    lines = set()
    for mark in syncs:
        before, after = bisect_right(backward, mark.begin), bisect_right(updates, mark.begin)
        done = backward[before - 1] if before else None
        if done is not None and after < len(updates) and (not after or updates[after - 1] < done):
            lines.add(mark.subject)
    return sorted(mark.begin for mark in syncs if mark.subject in lines)


def _by_calls(calls: Marks, first: Ints, last: Ints, training: Bools, ends: BackwardEnds) -> None:
    """The optimizer's call behind the last gradients, or the end of a compiled function that made them.

    `first`, `last`: the calls of each step. Steps with equally many calls are looked at together.
    """
    count = np.where(training, last - first, 0)
    for many in np.unique(count[count > 0]).tolist():
        steps = np.flatnonzero(count == many)
        for part in np.array_split(steps, len(steps) * many // _AT_ONCE + 1):
            own = first[part][:, None] + np.arange(many)
            _of_equal(calls, own, part, ends)


def _of_equal(calls: Marks, own: Ints, steps: Ints, ends: BackwardEnds) -> None:
    """As `_by_calls`; `own`: a row for each step with the places of its calls."""
    each, places = np.arange(len(own)), np.arange(own.shape[1])
    kind, flag, begin, end = calls.kind[own], calls.flag[own], calls.begin[own], calls.end[own]
    update = (kind == Kind.UPDATE) & (flag == OPTIMIZER)
    updates = update.sum(1)
    newest = begin[each, np.where(update, places, 0).max(1)]
    other = (flag != OPTIMIZER) & (begin <= newest[:, None])
    none, last = ~other.any(1), np.where(other, places, 0).max(1)
    of_call = ~none & (flag[each, last] != GRADIENT) & (kind[each, last] == Kind.UPDATE)
    behind = update & (none[:, None] | (begin >= begin[each, last][:, None]))
    at = np.where(of_call, end[each, last], begin[each, behind.argmax(1)])
    told = (updates > 0) & (~none | (updates == 1))
    ends.end[steps[told]] = at[told]
    ends.source[steps[told]] = np.where(of_call, SOURCES.index(CALL), SOURCES.index(UPDATE))[told]


def _by_shares(
    steps: Ints, begin: Ints, end: Ints, compiled: Ints, measured: Mapping[int, int], ends: BackwardEnds
) -> None:
    """At the same share of the time from `begin` to `end` as where it was measured, without compiling.

    `compiled`: when that was over.
    """
    index = np.searchsorted(compiled, end, "right") - 1
    begin = np.where(index >= 0, np.maximum(begin, np.append(compiled, 0)[index]), begin)
    chosen = set(steps.tolist()) if measured else set()
    shares = [
        (at - int(begin[one])) / (int(end[one]) - int(begin[one]))
        for one, at in measured.items()
        if one in chosen and begin[one] <= at <= end[one] and begin[one] < end[one]
    ]
    if not shares:
        return
    share, off = median(shares), (max(shares) - min(shares)) / 2
    length = (end - begin)[steps].astype(np.float64)
    ends.end[steps] = begin[steps] + np.rint(share * length).astype(np.int64)
    ends.source[steps] = SOURCES.index(SHARE)
    ends.error[steps] = np.rint(off * length).astype(np.int64) if off else UNKNOWN
