"""Rows of diagnose/load as the prediction takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipeprof.verdict.capacity import CONSUMER, Loop, Stage
from pipeprof.verdict.rules import CROWDED_CORES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.rows import JudgedStage
    from pipeprof.verdict.capacity import Kind, Trial

BOUND = 1.1  # times the busy cores of a rank: a job that uses more has ranks on other cores


def loop_of(rows: Sequence[JudgedStage], cores: float, trials: Sequence[Trial] = ()) -> Loop:
    """The training loop of one pipeline.

    `cores` of the machine, 0 when not known; the rows may say which of them the training may use. `trials`: what was
    measured of changes before.
    """
    if not rows:
        return Loop((), None, None, cpu_count=_cpus(cores), cores=cores or None, trials=tuple(trials))
    first = rows[0]
    idle, room = first.idle_share, first.room_cores or cores
    return Loop(
        stages=tuple(_stage(row) for row in rows if row.op_id != CONSUMER),
        consumer=first.consumer_rate,
        rate=first.loop_rate,
        free_cores=None if idle is None or not room else idle * room,
        process_cores=first.process_cores,
        cpu_count=_cpus(cores),
        gil_share=first.gil_share,
        delay_share=first.delay_share,
        cores=room or None,
        sharing=_sharing(first, idle, room),
        trials=tuple(trials),
        restart_ns=first.restart_ns,
        epoch_batches=first.epoch_batches,
    )


def _cpus(cores: float) -> int:
    """More than anyone has where they are not known."""
    return max(1, int(cores)) if cores else 1_000


def _sharing(row: JudgedStage, idle: float | None, room: float) -> float:
    """How many times the CPU of this rank the ranks on its cores use; 1 where each is bound to cores of its own."""
    own, job = row.process_cores, row.job_cores
    if not own or not job or idle is None or not room:
        return 1.0
    apart = job > BOUND * (1 - idle) * room or job - own < CROWDED_CORES
    return 1.0 if apart else job / own


def _stage(row: JudgedStage) -> Stage:
    return Stage(
        op_id=row.op_id,
        op_type=row.op_type,
        workers=row.workers,
        work_ns=row.work_ns,
        rate=row.rate,
        cores=row.cores,
        utilisation=row.utilisation,
        kind=cast("Kind | None", row.kind),
        row_ns=row.row_ns,
        rows=row.rows_per_batch,
        uses_processes=bool(row.uses_processes),
        is_python=bool(row.is_python),
        capacity=row.capacity,
        name=row.name,
        node=row.node,
        max_row_ns=row.max_row_ns,
        iterated=bool(row.iterated),
        wrapped=bool(row.wrapped),
        below_concat=bool(row.below_concat),
        chained=bool(row.chained),
    )
