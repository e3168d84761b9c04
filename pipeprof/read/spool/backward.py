"""When the backward pass of a step ended in which no operator was recorded: by what the loop called, and when.

Pure: steps and marks in, times out. An optimizer that Python calls begins when the gradients have been asked for, and a
compiled function that makes gradients ends then. PyNative runs behind Python, so the pass may end later: by how much
was seen at the end of backward passes in op windows; not where the training waits for a tensor in between, for that
waits for all that was launched before. Where one call holds the whole step, or the user named the
operator, the pass ends at the same share of the step as in op windows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.read.spool.process import Kind
from pipeprof.read.spool.sections import BACKWARD, OPTIMIZER
from pipeprof.read.spool.steps import GRADIENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.read.spool.process import Mark
    from pipeprof.read.spool.steps import Step

OPERATOR, UPDATE, CALL, SHARE = "op", "update", "call", "share"


class Backward(NamedTuple):
    """When a backward pass ended, how that is known, and how far it may be off; None: nothing is known of that."""

    end: int
    source: str
    error_ns: int | None


def backward_ends(
    steps: Sequence[Step], marks: Sequence[Mark], measured: Mapping[int, int], *, is_named: bool = False
) -> dict[int, Backward]:
    """Of each training step by its index, as far as it can be told. `measured`: the ends that operators tell.

    `is_named`: the user named the operator that they are of, so that what the loop calls says nothing of it.
    """
    ends = {index: Backward(at, OPERATOR, 0) for index, at in measured.items()}
    calls = sorted((mark for mark in marks if mark.kind in (Kind.UPDATE, Kind.CALL)), key=lambda mark: mark.begin)
    begins = [mark.begin for mark in calls]
    behind = _behind(marks)
    waits = _waits_for_gradients(marks)
    compiled = sorted(mark.end for mark in marks if mark.kind == Kind.COMPILE)
    in_call, in_step = {}, {}
    for index, step in enumerate(steps):
        if step.kind == "eval":
            continue
        mine = calls[bisect_left(begins, step.start) : bisect_left(begins, step.end)]
        waited = bisect_left(waits, step.start) < bisect_left(waits, step.end)
        told = None if is_named else _by_calls(mine, 0 if waited else behind)
        if told is not None:
            ends.setdefault(index, told)
            continue
        in_step[index] = _base(step.start if step.handed_over is None else step.handed_over, step.end, compiled)
        training = [mark for mark in mine if mark.kind == Kind.UPDATE]
        if len(training) == 1 and not is_named:
            in_call[index] = _base(training[0].begin, training[0].end, compiled)
    by_call = _by_shares(in_call, measured)  # of a call that returns before its graph has run, none
    return _by_shares(in_step, measured) | by_call | ends


def _behind(marks: Sequence[Mark]) -> int | None:
    """How long PyNative ran on when Python had asked for the gradients; marks of sections tell it in microseconds."""
    known = [mark.subject * 1000 for mark in marks if mark.kind == Kind.SECTION and mark.flag == BACKWARD]
    return round(median(known)) if any(known) else None


def _waits_for_gradients(marks: Sequence[Mark]) -> list[int]:
    """When the loop waited between its gradients and the optimizer, in order: at lines that did so in op windows."""
    backward = sorted(mark.end for mark in marks if mark.kind == Kind.SECTION and mark.flag == BACKWARD)
    updates = sorted(mark.begin for mark in marks if mark.kind == Kind.UPDATE and mark.flag == OPTIMIZER)
    syncs = [mark for mark in marks if mark.kind == Kind.SYNC and mark.subject]
    lines = set()
    for mark in syncs:
        before, after = bisect_right(backward, mark.begin), bisect_right(updates, mark.begin)
        done = backward[before - 1] if before else None
        if done is not None and after < len(updates) and (not after or updates[after - 1] < done):
            lines.add(mark.subject)
    return sorted(mark.begin for mark in syncs if mark.subject in lines)


def _by_calls(calls: Sequence[Mark], behind: int | None) -> Backward | None:
    """The optimizer's call behind the last gradients, or the end of a compiled function that made them."""
    updates = [mark for mark in calls if mark.kind == Kind.UPDATE and mark.flag == OPTIMIZER]
    if not updates:
        return None
    others = [mark for mark in calls if mark.flag != OPTIMIZER and mark.begin <= updates[-1].begin]
    if not others:
        return Backward(updates[0].begin, UPDATE, behind) if len(updates) == 1 else None
    last = others[-1]
    if last.flag != GRADIENT and last.kind == Kind.UPDATE:
        return Backward(last.end, CALL, behind)
    return Backward(next(mark.begin for mark in updates if mark.begin >= last.begin), UPDATE, behind)


def _base(begin: int, end: int, compiled: Sequence[int]) -> tuple[int, int]:
    """The time that a share is of, without compiling; `compiled`: when that was over."""
    index = bisect_right(compiled, end) - 1
    return max(begin, compiled[index]) if index >= 0 else begin, end


def _by_shares(bases: Mapping[int, tuple[int, int]], measured: Mapping[int, int]) -> dict[int, Backward]:
    shares = [
        (at - bases[index][0]) / (bases[index][1] - bases[index][0])
        for index, at in measured.items()
        if index in bases and bases[index][0] <= at <= bases[index][1] and bases[index][0] < bases[index][1]
    ]
    if not shares:
        return {}
    share, off = median(shares), (max(shares) - min(shares)) / 2
    return {
        index: Backward(begin + round(share * (end - begin)), SHARE, round(off * (end - begin)) if off else None)
        for index, (begin, end) in bases.items()
        if index not in measured
    }
