"""Where steps begin and end, from a process's marks. Pure: marks in, steps out.

Order of evidence: steps that the program names; callbacks of Model; optimizer updates (or graph calls that hold one);
rows of the iterator; gradients that are taken, of a program that updates by hand. A step ends where the next one asks
for its batch; callbacks belong to the step they follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.loops import LOOK, loop_steps, roles_of
from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.step_rows import EVAL, NONE, TRAIN, WARMUP, StepRows, joined, offsets, places

if TYPE_CHECKING:
    from pipeprof.read.source.numbers import Bools, Ints

EVALUATION = 2  # flag of a part: `Model.eval` as a whole
BY_HAND = "gradients"  # evidence: gradients alone; a step is over when it has them, and the update begins the next one
ROWS, READS = "rows", "reads"  # evidence: batches alone; READS where no network was seen at work
_COUNTED = {
    "train_step_callbacks": Kind.TRAIN_STEP, "updates": Kind.UPDATE, "eval_step_callbacks": Kind.EVAL_STEP,
    "named_steps": Kind.STEP, "gradients": Kind.GRADIENTS,
}  # fmt: skip


@dataclass
class Steps:
    """The steps in order of start, what they were told from, and how often each kind of evidence was seen.

    `looks`: rows of iterators that led to nothing, in order.
    """

    steps: StepRows
    evidence: str
    counts: dict[str, int]
    looks: Sequence[Mark] = ()


def has_trained(marks: Iterable[Mark]) -> bool:
    """Whether a process was seen to train, not only to read rows."""
    return _with_updates(Marks.of(marks)).has(Kind.UPDATE, Kind.TRAIN_STEP, Kind.STEP)


def _with_updates(marks: Marks) -> Marks:
    """Gradients as updates where nothing else tells of steps."""
    if not marks.has(Kind.GRADIENTS) or marks.has(Kind.STEP, Kind.TRAIN_STEP, Kind.UPDATE) or marks.rows.any():
        return marks
    return marks.of_kind(Kind.UPDATE, marks.among(Kind.GRADIENTS))


def find_steps(
    marks: Iterable[Mark], hidden: Iterable[int], keys: Mapping[int, str], *, beside_training: bool = False
) -> Steps:
    """Steps of one process.

    `hidden`: iterators that are not the training loop's own. `keys`: pipeline key per iterator; iterators that are the
    same pipeline again play the same role. `beside_training`: another process of the command trains, so that one which
    only reads rows evaluates.
    """
    given = Marks.of(marks)
    marks = _with_updates(given)
    unseen = marks.among(Kind.FETCH) & np.isin(marks.subject, list(hidden))
    own = np.flatnonzero(~unseen)
    if marks.has(Kind.STEP):
        return Steps(_named_steps(marks, own), "named", _counts(given[own]))
    inside = _depth(marks, (Kind.TRAIN_BEGIN, Kind.EVAL_BEGIN), (Kind.TRAIN_END, Kind.EVAL_END)) > 0
    inside |= marks.among(Kind.TRAIN_BEGIN, Kind.EVAL_BEGIN)
    steps = _model_steps(marks, own[inside[own]])
    at = own[~inside[own]]
    loop = marks[at]
    trained_from = int(steps.start[steps.kind == TRAIN].min(initial=_LATER))
    roles = roles_of(loop, keys, None if trained_from == _LATER else trained_from)
    of_loop = loop_steps(loop, roles, keys).among(marks, at)
    evaluations = sorted((mark.begin, mark.end) for mark in loop.only(Kind.PART) if mark.flag == EVALUATION)
    leave_out(of_loop, evaluations, loop, among=of_loop.kind != EVAL)
    evidence = BY_HAND if marks is not given else _evidence(steps, of_loop, marks[own])
    steps = joined([steps, of_loop], marks)
    steps = steps.take(np.lexsort((steps.end, steps.start)))
    if beside_training and evidence in (ROWS, READS):
        steps.kind[:] = EVAL
    _mark_warmup(steps, marks.only(Kind.COMPILE))
    looked_at = [number for number, role in roles.items() if role == LOOK]
    looks = list(loop[loop.rows & np.isin(loop.subject, looked_at)])
    return Steps(steps, evidence, _counts(given[own]), looks)


_LATER = (1 << 63) - 1


def leave_out(
    steps: StepRows, work: Sequence[tuple[int, int]], marks: Iterable[Mark], *, among: Bools | None = None
) -> None:
    """Take time in which the training stood still (`work`: in order, ns) out of the step at whose edge it lies.

    At its beginning if nothing of the step was marked before it, at its end if nothing was after it; else it stays.
    `among`: the steps that it may lie in.
    """
    if not work:
        return
    own = Marks.of(marks).only(Kind.FETCH, Kind.UPDATE, Kind.CALL)
    begins, ends = np.sort(own.begin), np.sort(own.end)
    chosen = np.arange(len(steps)) if among is None else np.flatnonzero(among)
    starts = steps.start[chosen]
    for begin, end in work:
        position = int(starts.searchsorted(end)) - 1
        if begin >= end or position < 0:
            continue
        at = chosen[position]
        start, finish = int(steps.start[at]), int(steps.end[at])
        if finish <= begin:
            continue
        if begins.searchsorted(start) == begins.searchsorted(begin):
            steps.start[at] = min(max(start, end), finish)
        elif ends.searchsorted(end, "right") == ends.searchsorted(finish, "right"):
            steps.end[at] = max(begin, start)


def _named_steps(marks: Marks, own: Ints) -> StepRows:
    """The steps that the program named itself (`profile.step()`): whatever happens in between belongs to them."""
    rows = own[marks.rows[own]]
    rows = rows[np.argsort(marks.begin[rows], kind="stable")]
    updates, compiles = (np.sort(marks.only(kind).begin) for kind in (Kind.UPDATE, Kind.COMPILE))
    named = marks.only(Kind.STEP)
    named = named[np.argsort(named.begin, kind="stable")]
    first, last = (np.searchsorted(marks.begin[rows], times) for times in (named.begin, named.end))
    within = StepRows(
        marks, np.full(len(named), TRAIN, np.uint8), named.begin, named.end,
        np.where(named.subject > 0, named.subject - 1, NONE), _between(updates, named.begin, named.end),
        np.zeros(len(named), np.bool_),
        rows[places(first, last - first)], offsets(last - first),
    )  # fmt: skip
    warm = (named.flag > 0) | (named.number == 0) | (_between(compiles, named.begin, named.end) > 0)
    within.kind[warm] = WARMUP
    return within


def _between(times: Ints, begin: Ints, end: Ints) -> Ints:
    """How many of the times, which are in order, are in each interval."""
    return np.searchsorted(times, end) - np.searchsorted(times, begin)


def _depth(marks: Marks, begins: Sequence[int], ends: Sequence[int]) -> Ints:
    """How many begins are open before each mark; an end without a begin ends nothing."""
    at = np.flatnonzero(marks.among(*begins, *ends))
    levels, level = [0], 0
    for kind in marks.kind[at].tolist():
        level = level + 1 if kind in begins else max(0, level - 1)
        levels.append(level)
    edges = np.concatenate([[-1], at, [len(marks) - 1]])
    return np.repeat(np.array(levels), np.diff(edges))


def _model_steps(marks: Marks, at: Ints) -> StepRows:
    """Steps of Model.train and Model.eval; an evaluation may run inside a training callback. `at`: their marks."""
    own = marks[at]
    evaluating = _depth(own, (Kind.EVAL_BEGIN,), (Kind.EVAL_END,)) > 0
    train, ends = _steps_of(own, TRAIN, Kind.TRAIN_STEP, (Kind.TRAIN_BEGIN, Kind.EPOCH_BEGIN), ~evaluating)
    evaluation, others = _steps_of(own, EVAL, Kind.EVAL_STEP, (Kind.EVAL_BEGIN,), evaluating)
    order = np.argsort(np.concatenate([ends, others]), kind="stable")
    return joined([train, evaluation], own).take(order).among(marks, at)


def _steps_of(marks: Marks, kind: int, ended: int, begun: Sequence[int], context: Bools) -> tuple[StepRows, Ints]:
    """Steps that end with a callback (`ended`), and where these are; `context`: the marks whose fetches are theirs.

    A step begins where one ended, or something was begun; else with its first fetch.
    """
    is_end = marks.among(ended)
    ends = np.flatnonzero(is_end)
    fetch = np.flatnonzero(marks.among(Kind.FETCH) & context)
    rows = np.flatnonzero(marks.rows & context)
    sets = np.flatnonzero(is_end | marks.among(*begun, *([Kind.EPOCH_END] if kind == TRAIN else [])))
    clears = np.flatnonzero(is_end | marks.among(*begun))
    before = _before(sets, ends)
    begun_at = marks.end[before]
    open_ended = (before < 0) | (marks.kind[before] == Kind.EPOCH_END)
    asked = np.searchsorted(fetch, before + 1)
    asks = np.append(fetch, len(marks))[asked]
    by_fetch = open_ended & (asks < ends)
    start = np.where(open_ended, marks.begin[ends], begun_at)
    start[by_fetch] = marks.begin[asks[by_fetch]]
    first, last = np.searchsorted(rows, _before(clears, ends) + 1), np.searchsorted(rows, ends)
    epoch = marks.subject[ends] - 1 if kind == TRAIN else np.full(len(ends), NONE)
    steps = StepRows(
        marks, np.full(len(ends), kind, np.uint8), start, marks.end[ends], epoch, np.zeros(len(ends), np.int64),
        np.zeros(len(ends), np.bool_), rows[places(first, last - first)], offsets(last - first),
    )  # fmt: skip
    return steps, ends


def _before(places: Ints, ends: Ints) -> Ints:
    """The last of the places before each end; -1 without one."""
    return np.concatenate([[-1], places])[np.searchsorted(places, ends)]


def _evidence(model: StepRows, loop: StepRows, marks: Marks) -> str:
    if (model.kind == TRAIN).any():
        return "callbacks"
    if (loop.updates > 0).any():
        return "updates"
    if len(loop.fetched):
        return ROWS if (~marks.among(Kind.FETCH, Kind.PART)).any() else READS
    return "none"


def _counts(marks: Marks) -> dict[str, int]:
    """How often each kind of evidence was seen, in the order of the first of each."""
    seen = {name: marks.kind == kind for name, kind in _COUNTED.items()} | {"rows": marks.rows}
    first = sorted((int(chosen.argmax()), name) for name, chosen in seen.items() if chosen.any())
    return {name: int(seen[name].sum()) for _, name in first}


def _mark_warmup(steps: StepRows, compiles: Marks) -> None:
    """The first training step, and every one in which a graph was compiled."""
    training = steps.kind == TRAIN
    warm = training & (_between(np.sort(compiles.begin), steps.start, steps.end) > 0)
    warm[np.flatnonzero(training)[:1]] = True
    steps.kind[warm] = WARMUP
