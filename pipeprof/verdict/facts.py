"""What the rules look at: facts of one training pipeline on one rank, and of its stages, from rows of diagnose/load.

Every attribute here is a definition; where a threshold is part of one it is named in `rules.py`. Unknown is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipeprof.verdict.capacity import CONSUMER, crowded_below
from pipeprof.verdict.clause import codes
from pipeprof.verdict.rules import CROWDED_IDLE, KINDS, USED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import SimpleNamespace

    from typing_extensions import Self

    from pipeprof.query.rows import JudgedStage

ITERABLE = "Iterable"  # a stage: all of a loader without hooks


@dataclass(frozen=True)
class StageFacts:
    """One stage; the fields are columns of diagnose/load, with their units. The training loop is one as well."""

    op_id: int
    op_type: str
    name: str | None
    workers: int
    below_concat: bool
    rows_per_batch: float | None
    row_ns: float | None
    law_row_ns: float | None
    rate: float | None
    utilisation: float | None
    cores: float | None
    python_cores: float
    cpu_share: float | None
    work_cv: float | None
    longest_batches: float | None
    burst_share: float | None
    drop_ratio: float | None
    gil_share: float | None
    lock_share: float | None
    overrun: float | None

    @classmethod
    def of(cls, row: JudgedStage | SimpleNamespace) -> Self:
        """The facts of a row, or of such columns."""
        return cls(
            op_id=row.op_id, op_type=row.op_type, name=row.name, workers=row.workers,
            below_concat=row.below_concat, rows_per_batch=row.rows_per_batch, row_ns=row.row_ns,
            law_row_ns=row.law_row_ns, rate=row.rate, utilisation=row.utilisation, cores=row.cores,
            python_cores=row.python_cores, cpu_share=row.cpu_share, work_cv=row.work_cv,
            longest_batches=row.longest_batches, burst_share=row.burst_share, drop_ratio=row.drop_ratio,
            gil_share=row.gil_share, lock_share=row.lock_share, overrun=row.overrun,
        )  # fmt: skip

    @cached_property
    def kind(self) -> str | None:
        """What keeps it busy: poll | lock_wait | burst | gil | cpu | wait; None for the loop, or if that is unknown."""
        return None if self.op_id == CONSUMER else next(codes(KINDS, self), None)

    @property
    def use(self) -> float | None:
        """By what stages are put in order: utilisation; of one without times the drop of queue fill."""
        return self.drop_ratio if self.utilisation is None else self.utilisation

    @property
    def row_law_ratio(self) -> float | None:
        """Time between two of its rows over the shortest time that its master's sleeps allow."""
        if not self.law_row_ns or not self.rate or not self.rows_per_batch:
            return None
        return 1e9 / (self.rate * self.rows_per_batch) / self.law_row_ns

    @property
    def worker_law_ratio(self) -> float | None:
        """Time between two rows that its workers could make, over the same."""
        if not self.law_row_ns or self.row_ns is None or not self.workers:
            return None
        return self.row_ns / self.workers / self.law_row_ns

    @property
    def cores_per_worker(self) -> float | None:
        """CPU that each of its workers uses, in cores."""
        return None if self.cores is None or not self.workers else self.cores / self.workers

    @property
    def untimed_cores(self) -> float | None:
        """CPU in cores beyond the work that is timed: what its threads do between rows, such as turning an epoch."""
        if self.cores is None or self.utilisation is None or not self.workers:
            return None
        return self.cores - self.utilisation * self.workers


@dataclass(frozen=True)
class Facts:
    """One training pipeline on one rank; `stages` in the order of op_id.

    `cores`: those that it may use, else the machine's, 0 when not known; `idle_share` is of the same ones.
    `queued`: operators that do not take turns with others, so that there are queues between them.
    `job_cores`: what all ranks on this machine used; None where not known. `first` is the stage that was named, when
    one was.
    """

    stages: tuple[StageFacts, ...]
    wait_share: float
    batches: int
    idle_share: float | None = None
    process_cores: float | None = None
    gil_share: float | None = None
    cores: float = 0.0
    job_cores: float | None = None
    delay_share: float | None = None
    first: StageFacts | None = None
    queued: int = 1

    @classmethod
    def of(cls, rows: Sequence[JudgedStage], machine_cores: float, *, alone: bool = True) -> Self:
        """The facts of a pipeline's rows, of which none may be without `wait_share`; `alone`: of the only rank.

        Where only the rank's own CPU is known, what the others use is not: it is no other program's.
        """
        row = rows[0]
        return cls(
            tuple(StageFacts.of(row) for row in sorted(rows, key=lambda row: row.op_id)),
            row.wait_share or 0.0,
            row.batches or 0,
            row.idle_share,
            row.process_cores,
            row.gil_share,
            row.room_cores or machine_cores,
            row.process_cores if row.job_cores is None and alone else row.job_cores,
            row.delay_share,
            queued=sum(not one.chained for one in rows if one.op_id != CONSUMER),
        )

    @cached_property
    def operators(self) -> tuple[StageFacts, ...]:
        """The stages without the training loop."""
        return tuple(stage for stage in self.stages if stage.op_id != CONSUMER)

    @property
    def loop(self) -> StageFacts | None:
        """The training loop."""
        return next((stage for stage in self.stages if stage.op_id == CONSUMER), None)

    @cached_property
    def busiest(self) -> StageFacts | None:
        """The operator with the highest utilisation."""
        return _largest((stage, stage.utilisation) for stage in self.operators)

    @property
    def busy(self) -> float:
        """The highest utilisation of an operator; 0 when none is timed."""
        return (self.busiest.utilisation if self.busiest else None) or 0.0

    @property
    def busy_over_loop(self) -> float:
        """The highest utilisation of an operator - the share of its time that the loop does not wait."""
        return self.busy - (1.0 - self.wait_share)

    @property
    def pace_ratio(self) -> float | None:
        """The larger of these two / the smaller one."""
        low, high = sorted((self.busy, 1.0 - self.wait_share))
        return high / low if low > 0 else None

    @cached_property
    def python_cores(self) -> float:
        """Cores of Python in the pipeline that computes inside the process."""
        return math.fsum(stage.python_cores for stage in self.stages)

    @cached_property
    def lock_holder(self) -> StageFacts | None:
        """The stage with the most Python inside the process."""
        return _largest((stage, stage.python_cores) for stage in self.stages)

    @property
    def busiest_python_share(self) -> float | None:
        """What the busiest operator has of all Python inside the process; None without any Python."""
        own = self.busiest.python_cores if self.busiest else 0.0
        return own / self.python_cores if self.python_cores > 0 else None

    @cached_property
    def drop_stage(self) -> StageFacts | None:
        """Where queue fill drops most. A part of a concatenation works part of the time, so its queue says nothing."""
        return _largest((stage, stage.drop_ratio) for stage in self.stages if not stage.below_concat)

    @property
    def drop(self) -> float | None:
        """The largest drop of queue fill."""
        return self.drop_stage.drop_ratio if self.drop_stage else None

    @property
    def untimed_drop(self) -> float | None:
        """The largest drop, where it is at an operator without times."""
        stage = self.drop_stage
        timed = stage is None or stage.op_id == CONSUMER or stage.utilisation is not None
        return None if timed else self.drop

    @property
    def drop_at_busiest(self) -> float:
        """The largest drop, where it is at the busiest operator; else 0."""
        agree = self.busiest is not None and self.busiest is self.drop_stage
        return (self.drop if agree else None) or 0.0

    @property
    def pipeline_share(self) -> float | None:
        """The data pipeline's part of the CPU that the training's processes used; None where no stage's is known."""
        used = [stage.cores for stage in self.operators if stage.cores is not None]
        return min(1.0, math.fsum(used) / self.process_cores) if used and self.process_cores else None

    @property
    def share_over_wait(self) -> float | None:
        """That part - the loop's wait for data: above 0, the pipeline costs more by computing than by waiting."""
        return None if self.pipeline_share is None else self.pipeline_share - self.wait_share

    @property
    def freed(self) -> float | None:
        """Times as fast if the pipeline's CPU and the waiting for it were the loop's: 1 / ((1 - CPU) (1 - waiting)).

        Without idle cores, and for a loop that can use them, which MindSpore's can.
        """
        if self.pipeline_share is None or self.pipeline_share >= 1 or self.wait_share >= 1:
            return None
        return 1.0 / ((1.0 - self.pipeline_share) * (1.0 - self.wait_share))

    @property
    def idle_room(self) -> float | None:
        """Idle cores over half a core, or over 12 % of all where that is more: a loop short of CPU leaves less idle."""
        if self.idle_share is None:
            return None
        return (
            self.idle_share * self.cores / crowded_below(self.cores) if self.cores else self.idle_share / CROWDED_IDLE
        )

    @cached_property
    def taker(self) -> StageFacts | None:
        """The operator with the most CPU."""
        return _largest((stage, stage.cores) for stage in self.operators)

    @cached_property
    def untimed_worker(self) -> StageFacts | None:
        """The operator with the most CPU beyond its timed work."""
        return _largest((stage, stage.untimed_cores) for stage in self.operators)

    @property
    def untimed_cores(self) -> float | None:
        """CPU beyond its timed work, of the operator that has most of it, in cores."""
        return self.untimed_worker.untimed_cores if self.untimed_worker else None

    @property
    def best_guess(self) -> StageFacts | None:
        """The busiest operator, without times the one with the largest drop; what makes the batches alone is it."""
        if len(self.operators) == 1 and self.operators[0].op_type == ITERABLE:
            return self.operators[0]
        return self.busiest if self.busy > 0 else self.drop_stage

    @cached_property
    def stalling(self) -> float:
        """The highest utilisation of a stage that stalls now and then (burst); 0 when none does."""
        stalls = (stage.utilisation or 0.0 for stage in self.operators if stage.kind == "burst")
        return max(stalls, default=0.0)

    @cached_property
    def contender(self) -> StageFacts | None:
        """Of the operators that are used, or not timed, the one with the most CPU."""
        used = (stage for stage in self.operators if stage.utilisation is None or stage.utilisation >= USED)
        return _largest((stage, stage.cores or 0.0) for stage in used)

    @property
    def contending_cores(self) -> float | None:
        """CPU of the contending stage, in cores."""
        return None if self.contender is None else self.contender.cores or 0.0

    @property
    def others_share(self) -> float:
        """Share of the cores that other programs use; 0 when not known."""
        if self.idle_share is None or self.job_cores is None or not self.cores:
            return 0.0
        return 1.0 - self.idle_share - self.job_cores / self.cores

    @property
    def first_utilisation(self) -> float | None:
        """Utilisation of the stage that was named."""
        return self.first.utilisation if self.first else None

    @property
    def over_capacity(self) -> float | None:
        """The loop's pace / the capacity of the stage that was named. Bursts have no steady pace to compare with."""
        return None if self.first is None or self.first.kind == "burst" else self.first.utilisation

    @property
    def overrun(self) -> float | None:
        """How many times too long the work of the stage that was named was measured."""
        return self.first.overrun if self.first else None

    @property
    def runner_up(self) -> StageFacts | None:
        """The busiest of the other stages, the loop included."""
        return _largest((stage, stage.utilisation) for stage in self.stages if stage is not self.first)

    @property
    def margin(self) -> float | None:
        """Utilisation of the stage that was named - that of the runner-up."""
        other = self.runner_up.utilisation if self.runner_up else None
        return None if self.first_utilisation is None or other is None else self.first_utilisation - other

    @property
    def drop_elsewhere(self) -> float | None:
        """The largest drop, where it is not at the stage that was named."""
        return None if self.drop_stage is self.first else self.drop


def _largest(measured: Iterable[tuple[StageFacts, float | None]]) -> StageFacts | None:
    """The first stage with the largest value; one without a value is none."""
    with_value = [(stage, value) for stage, value in measured if value is not None]
    return max(with_value, key=lambda item: item[1])[0] if with_value else None
