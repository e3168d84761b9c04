"""The rows of the tables `step` and `fetch` of one process, as columns.

A batch has what the dataset itself recorded about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.source.numbers import Bools, Ints, filled
from pipeprof.read.spool.backward import SOURCES, UNKNOWN, BackwardEnds
from pipeprof.read.spool.sections import PHASES, Structure
from pipeprof.read.spool.step_rows import EVAL, KINDS, NONE, Step, StepRows
from pipeprof.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeprof.read.spool.marks import Marks
    from pipeprof.read.spool.pipelines import Pipeline
    from pipeprof.read.spool.process import Process
    from pipeprof.read.tables.rows import RankRows

_FP_SOURCES = ("op", "fetch")


def add_steps(
    out: RankRows,
    steps: StepRows,
    calls: Ints,
    windows: Sequence[tuple[int, int]],
    points: Mapping[int, tuple[int | None, int | None]],
    tree: Mapping[int, Pipeline],
    structures: Mapping[int, Structure],
    ends: BackwardEnds,
) -> None:
    """Add a row for each step. `calls`: when the network was called, in order; `points`: the FP that operators tell."""
    count = len(steps)
    fp, has_fp, of_op = _forward_starts(steps, points)
    begun = np.where(has_fp, fp, steps.start)
    has_bp = (ends.source > 0) & (begun <= ends.end) & (ends.end <= steps.end)
    evaluates = steps.kind == EVAL
    groups = np.where(evaluates, np.cumsum(evaluates), np.cumsum(~evaluates)) - 1
    first = np.where(evaluates, out.kind_steps["eval"], out.kind_steps["train"])
    fetched = steps.fetches > 0
    waits = np.concatenate([[0], np.cumsum((steps.marks.end - steps.marks.begin)[steps.fetched])])
    fetch_wait = waits[steps.fetched_from[1:]] - waits[steps.fetched_from[:-1]]
    pipeline, has_pipeline = _pipelines(steps, tree)
    called, has_called = _called(steps, calls)
    input_ns, _ = steps.input_ns()
    out.add_block(
        "step", count, step=out.steps + np.arange(count), kind_step=first + groups,
        kind=(steps.kind, KINDS), epoch=(steps.epoch, steps.epoch != NONE), pipeline_id=(pipeline, has_pipeline),
        start_ns=steps.start - out.zero, fp_ns=(fp - out.zero, has_fp), bp_ns=(ends.end - out.zero, has_bp),
        end_ns=steps.end - out.zero, data_wait_ns=(fp - steps.start, has_fp), fetch_wait_ns=(fetch_wait, fetched),
        fp_source=(np.where(has_fp, np.where(of_op, 0, 1), -1).astype(np.int8), _FP_SOURCES),
        bp_source=(np.where(has_bp, ends.source.astype(np.int8), -1), SOURCES),
        bp_error_ns=(ends.error, has_bp & (ends.error != UNKNOWN)), in_window=touching(steps, windows),
        updates=(steps.updates, steps.updates > 0), input_ns=(input_ns, fetched),
        called_ns=(called - out.zero, has_called), **_lengths(count, structures),
    )  # fmt: skip
    out.steps += count
    out.kind_steps["eval"] += int(evaluates.sum())
    out.kind_steps["train"] += int((~evaluates).sum())


def _forward_starts(steps: StepRows, points: Mapping[int, tuple[int | None, int | None]]) -> tuple[Ints, Bools, Bools]:
    """When the forward pass began, where that is known, and where operators told it, not the batch."""
    fp, known = steps.handed_over()
    fp, of_op = fp.copy(), np.zeros(len(steps), np.bool_)
    for index, (at, _) in points.items():
        if at is not None and steps.start[index] <= at <= steps.end[index]:
            fp[index], of_op[index] = at, True
    return fp, known | of_op, of_op


def _pipelines(steps: StepRows, tree: Mapping[int, Pipeline]) -> tuple[Ints, Bools]:
    """The pipeline of the first batch of each, and where that is known."""
    numbers, group = np.unique(steps.first_subject, return_inverse=True)
    known = np.array([number in tree for number in numbers.tolist()], np.bool_)
    ids = [tree[number].pipeline_id if number in tree else NONE for number in numbers.tolist()]
    return np.array(ids, np.int64)[group], known[group]


def _called(steps: StepRows, calls: Ints) -> tuple[Ints, Bools]:
    """When the network was first called in a step without a batch, and where it was."""
    at = np.searchsorted(calls, steps.start)
    called = np.append(calls, 0)[at]
    return called, (steps.fetches == 0) & (at < len(calls)) & (called <= steps.end)


def _lengths(count: int, structures: Mapping[int, Structure]) -> dict[str, tuple[Ints, Bools]]:
    """What a PyNative step did, of those whose sections are known; no columns without any."""
    if not structures:
        return {}
    columns = {f"{name}_ns": (np.zeros(count, np.int64), np.zeros(count, np.bool_)) for name in PHASES}
    for index, structure in structures.items():
        for name, length in structure.lengths().items():
            values, known = columns[f"{name}_ns"]
            values[index], known[index] = length, True
    return columns


def touching(steps: Iterable[Step], windows: Sequence[tuple[int, int]]) -> Bools:
    """Whether each step has something in common with a window."""
    rows, ordered = StepRows.of(steps), sorted(windows)
    begins = np.array([begin for begin, _ in ordered], np.int64)
    ends = np.maximum.accumulate(np.array([end for _, end in ordered], np.int64))
    begun = np.searchsorted(begins, rows.end, "right")
    touched: Bools = (begun > 0) & (np.append(ends, 0)[begun - 1] >= rows.start)
    return touched


_RECORDED = ("push_ns", "batch_ns", "depth", "capacity")
_READY = ("depth", "held", "tasks")


def add_fetches(
    process: Process, out: RankRows, pipelines: Mapping[int, Pipeline], steps: StepRows, first_step: int
) -> None:
    """Add a row for each batch. `first_step`: the number of the first of `steps`."""
    marks = process.marks
    step = np.full(len(marks), -1, np.int64)
    step[steps.fetched] = first_step + steps.of_fetch
    chosen = marks.rows & np.isin(marks.subject, list(pipelines))
    rows, step = marks[chosen], step[chosen]
    columns: dict[str, tuple[Ints, Bools]] = {}
    numbers, group, counts = np.unique(rows.subject, return_inverse=True, return_counts=True)
    ids = np.array([pipelines[number].pipeline_id for number in numbers.tolist()], np.int64)
    of_each = np.split(np.argsort(group, kind="stable"), np.cumsum(counts)[:-1])
    for number, own in zip(numbers.tolist(), of_each, strict=False):
        pipeline = pipelines[number]
        if pipeline.ready:
            ready = _ready(pipeline).put(columns, own, rows)
            if pipeline.ahead is not None:
                _put(columns, "capacity", len(rows), ready, pipeline.ahead, known=True)
        if pipeline.weights:
            _weights(pipeline).put(columns, own, rows)
        if pipeline.records or pipeline.taken:
            _recorded(pipeline).put(columns, own, rows)
    out.add_block(
        "fetch", len(rows), pipeline_id=ids[group], fetch=rows.number, step=(step, step >= 0),
        start_ns=rows.begin - out.zero, wait_ns=rows.end - rows.begin,
        side=(np.zeros(len(rows), np.int8), ("iterator",)), **columns,
    )  # fmt: skip


class _ByBatch:
    """What is known of some batches: by their numbers, the last that was said of each; None is null."""

    def __init__(self, names: Sequence[str], numbers: Ints, values: Sequence[tuple[Ints, Bools]]) -> None:
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        last = order[np.append(ordered[1:] != ordered[:-1], True)] if len(order) else order
        self._numbers = numbers[last]
        self._values = {name: (column[last], known[last]) for name, (column, known) in zip(names, values, strict=True)}

    def put(self, columns: dict[str, tuple[Ints, Bools]], own: Ints, rows: Marks) -> Ints:
        """Fill the columns at those of the rows `own` whose batches are known; where they are comes back."""
        numbers = rows[own].number
        at = np.searchsorted(self._numbers, numbers)
        known = np.append(self._numbers, -1)[at] == numbers
        for name, (values, is_known) in self._values.items():
            _put(columns, name, len(rows), own[known], values[at[known]], known=is_known[at[known]])
        found: Ints = own[known]
        return found


def _put(
    columns: dict[str, tuple[Ints, Bools]], name: str, count: int, at: Ints, values: Ints | int, *, known: Bools | bool
) -> None:
    """Set some rows of a column, which is made of nulls first."""
    if name not in columns:
        columns[name] = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    columns[name][0][at], columns[name][1][at] = values, known


def _recorded(pipeline: Pipeline) -> _ByBatch:
    """What MindSpore recorded of each batch: in its last save, and taken from it as the training ran."""
    records, taken = ([], ()) if pipeline.event.get("queues") else (pipeline.records, pipeline.taken)
    fields = [[getattr(record, name) for record in records] for name in _RECORDED]
    parts = [(np.array([record.batch - 1 for record in records], np.int64), [filled(values) for values in fields])]
    for event in taken:
        lists = [event[name] for name in ("push_ms", "batch_ms", "depth", "capacity")]
        length = min(map(len, lists))
        values = [filled(values[:length]) for values in lists]
        values[:2] = [(column * NS_PER_MS, known) for column, known in values[:2]]
        parts.append((event["first"] + np.arange(length), values))
    return _joined(_RECORDED, parts)


def _ready(pipeline: Pipeline) -> _ByBatch:
    """Batches ready behind each batch, those that it had held up, and tasks not begun."""
    parts = []
    for event in pipeline.ready:
        length = min(len(event[name]) for name in _READY)
        parts.append((event["first"] + np.arange(length), [filled(event[name][:length]) for name in _READY]))
    return _joined(_READY, parts)


def _weights(pipeline: Pipeline) -> _ByBatch:
    """How many bytes the batches that were weighed hold."""
    parts = [np.array(event["rows"], np.int64).reshape(-1, 2).T for event in pipeline.weights]
    return _joined(("bytes",), [(numbers, [(sizes, np.ones(len(sizes), np.bool_))]) for numbers, sizes in parts])


def _joined(names: Sequence[str], parts: Sequence[tuple[Ints, list[tuple[Ints, Bools]]]]) -> _ByBatch:
    numbers = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in parts)])
    values = [
        (
            np.concatenate([np.zeros(0, np.int64), *(columns[at][0] for _, columns in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(columns[at][1] for _, columns in parts)]),
        )
        for at in range(len(names))
    ]
    return _ByBatch(names, numbers, values)
