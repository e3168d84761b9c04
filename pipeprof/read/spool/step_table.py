"""The rows of the table `step` of one process, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.backward import SOURCES, UNKNOWN
from pipeprof.read.spool.sections import PHASES
from pipeprof.read.spool.step_rows import EVAL, KINDS, NONE, StepRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pipeprof.read.spool.backward import BackwardEnds
    from pipeprof.read.spool.pipelines import Pipeline
    from pipeprof.read.spool.sections import Structure
    from pipeprof.read.spool.step_rows import Step
    from pipeprof.read.tables.rows import RankRows

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

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
