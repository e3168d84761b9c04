"""Rows of diagnose/load as the prediction takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.capacity import Loop, Stage
from pipeprof.verdict.rules import CROWDED_CORES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.capacity import Trial

    Row = Mapping[str, Any]

CONSUMER = -1
BOUND = 1.1  # times the busy cores of a rank: a job that uses more has ranks on other cores


def loop_of(rows: Sequence[Row], cores: float, trials: Sequence[Trial] = ()) -> Loop:
    """The training loop of one pipeline from its rows of diagnose/load.

    `cores` of the machine, 0 when not known; the rows may say which of them the training may use. `trials`: what was
    measured of changes before.
    """
    first: Row = rows[0] if rows else {}
    idle, room = first.get("idle_share"), first.get("room_cores") or cores
    return Loop(
        stages=tuple(_stage(row) for row in rows if row["op_id"] != CONSUMER),
        consumer=first.get("consumer_rate"),
        rate=first.get("loop_rate"),
        free_cores=None if idle is None or not room else idle * room,
        process_cores=first.get("process_cores"),
        cpu_count=max(1, int(cores)) if cores else 1_000,
        gil_share=first.get("gil_share"),
        delay_share=first.get("delay_share"),
        cores=room or None,
        sharing=_sharing(first, idle, room),
        trials=tuple(trials),
    )


def _sharing(row: Row, idle: float | None, room: float) -> float:
    """How many times the CPU of this rank the ranks on its cores use; 1 where each is bound to cores of its own."""
    own, job = row.get("process_cores"), row.get("job_cores")
    if not own or not job or idle is None or not room:
        return 1.0
    apart = job > BOUND * (1 - idle) * room or job - own < CROWDED_CORES
    return 1.0 if apart else float(job / own)


def _stage(row: Row) -> Stage:
    return Stage(
        op_id=row["op_id"],
        op_type=row["op_type"],
        workers=row["workers"],
        work_ns=row["work_ns"],
        rate=row["rate"],
        cores=row["cores"],
        utilisation=row["utilisation"],
        kind=row["kind"],
        row_ns=row["row_ns"],
        rows=row["rows_per_batch"],
        uses_processes=bool(row["uses_processes"]),
        is_python=bool(row["is_python"]),
        capacity=row["capacity"],
        name=row["name"],
        node=row.get("node"),
        max_row_ns=row.get("max_row_ns"),
        iterated=bool(row.get("iterated")),
        wrapped=bool(row.get("wrapped")),
        below_concat=bool(row.get("below_concat")),
        chained=bool(row.get("chained")),
    )
