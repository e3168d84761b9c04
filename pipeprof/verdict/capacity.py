"""The operators of a dataset pipeline as measured, and how many batches a second each can make. Pure.

The formulas are those of docs/predictions.md. Rates are batches per second, times nanoseconds; unknown
is None, and a prediction that would need what is unknown is refused. What a number rests on, and why there is none, are
codes with numbers; report/words words them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pipeprof.verdict.rules import CROWDED_CORES, CROWDED_IDLE, LOCK_HELD, LOCKED_CORES, SHORT_IDLE

if TYPE_CHECKING:
    from collections.abc import Mapping

Basis = dict[str, Any]  # a code with its numbers
Kind = Literal["cpu", "wait", "gil", "lock_wait", "burst", "poll"]

POLL_NS = 100e6  # GeneratorDataset's master sleeps this long when the next row is not there yet
THREAD_QUEUE = 16  # rows that a worker thread of GeneratorDataset can prepare; fixed in MindSpore
CPU_SHARE = 0.4  # of its working time that a worker computes; above, free cores limit the gain
BESIDE_PYTHON = 4.0  # times less CPU that a loop's batch takes without Python beside it, no core idle: 3.8 was seen
BESIDE_LOCK = 2.5  # times what its CPU explains that Python costs a loop which waits for its lock: 1.95 was seen
BESIDE = 1.25  # times that a loop may be faster without its pipeline, though cores are idle: 1.20 was seen
MOST_DELAYED = 0.95  # of the time that threads wanted a core: more is told of hardly any computing
NEAR_POLL = 1.25  # a row time within this of the poll law is limited by it
PREFETCH = 16  # MindSpore's default
MANY_ROWS, SHORT_ROW_NS = 8, 1e6  # from here on, up to there, the calls of a Python map are worth saving
SOURCE = "GeneratorOp"
CONSUMER = -1  # the op_id of the training loop
SCALING = frozenset(["MapOp", "BatchOp"])
CHEAP = frozenset(
    ["ShuffleOp", "RepeatOp", "EpochCtrlOp", "RenameOp", "ProjectOp", "TakeOp", "SkipOp", "ZipOp", "ConcatOp"]
)


@dataclass(frozen=True)
class Stage:
    """One operator of the pipeline, as measured.

    `work_ns`: time of all workers for one batch. `rate`: batches/s that its workers can make. `row_ns`: serial time of
    one row in one worker, `max_row_ns`: of the longest. `cores`: CPU cores that it keeps busy.
    `utilisation`: batches/s of the loop / `rate`. `node`: its position in the user's graph, the consumer's side first.
    `wrapped`: a source that hands on the rows of a MindSpore dataset. `iterated`: one whose rows MindSpore takes one
    after the other, whatever its workers. `below_concat`: it works
    a part of the time only.
    """

    op_id: int
    op_type: str
    workers: int = 1
    work_ns: float | None = None
    rate: float | None = None
    cores: float | None = None
    utilisation: float | None = None
    kind: Kind | None = None
    row_ns: float | None = None
    rows: float | None = None
    uses_processes: bool = False
    is_python: bool = False
    capacity: int | None = None
    name: str | None = None
    node: int | None = None
    max_row_ns: float | None = None
    iterated: bool = False
    wrapped: bool = False
    below_concat: bool = False
    chained: bool = False  # takes turns with the other stages that are

    @property
    def stalls_within_queue(self) -> bool:
        """Whether a worker that goes on may meet the next stall before its queue is full; as far as that is known.

        Where all its time goes to stalls there is one in longest / mean rows.
        """
        return not (self.max_row_ns and self.row_ns) or self.max_row_ns <= self.depth * self.row_ns

    @property
    def depth(self) -> int:
        """Rows or batches that its queue holds: MindSpore's default where that is not known."""
        return self.capacity or PREFETCH

    @property
    def call_ns(self) -> float | None:
        """Time inside its function for one batch, all rows together: at most its work."""
        return None if self.row_ns is None or not self.rows else min(self.row_ns * self.rows, self.work_ns or math.inf)

    @property
    def cpu_share(self) -> float | None:
        """Share of its working time that a worker of the operator computes: kappa = (cores / W) / rho."""
        if self.cores is None or not self.utilisation:
            return None
        return self.cores / self.workers / self.utilisation

    @property
    def computes(self) -> bool:
        """Whether free cores limit what more workers can do."""
        if self.kind in ("wait", "poll", "lock_wait"):
            return False
        return self.kind == "cpu" or (self.cpu_share is not None and self.cpu_share >= CPU_SHARE)


@dataclass(frozen=True)
class Trial:
    """A change of one operator that was measured: `verb` is whatif or tune, `old` and `new` the settings by name.

    `times` as fast, within [`low`, `high`], which are None after a single pair.
    """

    verb: str
    op_type: str
    name: str | None
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    times: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Loop:
    """The training loop: its stages, what the consumer could take, and the machine. `rate` is what it makes now.

    `gil_share`: share of the time that Python code holds the interpreter's lock; None: not measured. `delay_share`: of
    the time that its threads wanted a core, that in which they had none. `cpu_count`: most workers that MindSpore
    allows; `cores`: those that the training may use, None: all of them. `sharing`: how many times the CPU of this rank
    all ranks use that share its cores: each of them is changed. `trials`: what was measured of changes before.
    `restart_ns`: what an epoch takes to start the workers of a DataLoader and to end them; None: not known, or they
    live on. `epoch_batches`: that its iterators hand out.
    """

    stages: tuple[Stage, ...]
    consumer: float | None = None
    rate: float | None = None
    free_cores: float | None = None
    process_cores: float | None = None
    cpu_count: int = 1
    gil_share: float | None = None
    cores: float | None = None
    delay_share: float | None = None
    sharing: float = 1.0
    trials: tuple[Trial, ...] = ()
    restart_ns: float | None = None
    epoch_batches: float | None = None

    @property
    def loader_workers(self) -> int:
        """Worker processes of a DataLoader; 0 where the loop makes its batches itself."""
        return next((stage.workers for stage in self.stages if stage.chained and stage.uses_processes), 0)

    @property
    def consumer_undelayed(self) -> float:
        """Batches/s that the consumer could take at most if its threads never waited for a core."""
        return (self.consumer or 0.0) / (1 - min(self.delay_share or 0.0, MOST_DELAYED))

    @property
    def consumer_most(self) -> float | None:
        """Batches/s that the consumer could take at most without the pipeline: its CPU time as now, on all cores.

        More than `consumer` only where both want the same: cores, of which none is idle, or the interpreter's lock.
        """
        if self.consumer is None or not self.is_contended or not self.process_cores or not self.rate:
            return self.consumer
        own = self.process_cores - sum(stage.cores or 0.0 for stage in self.stages)
        python = sum(stage.cores or 0.0 for stage in self.stages if stage.is_python and not stage.uses_processes)
        beside = BESIDE_PYTHON if python >= LOCKED_CORES else 1.0
        return self.consumer * max(1.0, beside * self.room / own) if own > 0 else math.inf

    @property
    def is_contended(self) -> bool:
        """Whether the loop's own speed depends on what its pipeline does."""
        return self.is_crowded or (self.gil_share or 0.0) >= LOCK_HELD

    @property
    def is_crowded(self) -> bool:
        """Whether so little of the cores was idle that its threads and its pipeline's may take them from each other."""
        return self.free_cores is not None and self.free_cores < crowded_below(self.room)

    @property
    def has_no_core(self) -> bool:
        """Whether none of the cores that the training may use was idle."""
        return self.free_cores is not None and self.free_cores < SHORT_IDLE * self.room

    @property
    def room(self) -> float:
        """Cores that the training may use."""
        return self.cores or self.cpu_count


def crowded_below(cores: float) -> float:
    """Idle cores, below which a loop and its pipeline may take cores from each other: half a core, or 12 % of all."""
    return max(CROWDED_CORES, CROWDED_IDLE * cores)


@dataclass(frozen=True)
class Change:
    """What is changed at one operator; None leaves it as it is. `prefetch` is global in MindSpore, whatever the op.

    At a stage of a DataLoader it is of the whole loader: `workers`, 0 for none, is num_workers, `prefetch` the
    prefetch_factor, `persistent` whether its workers live on from epoch to epoch.
    `maps_after`: so many of the maps that feed a batch come after it instead, and are called once for a batch.
    `cache`: rows behind the operator are kept in memory, at most so many bytes. `max_rowsize`: MiB of shared memory
    that each worker process keeps for a row.
    """

    op_id: int
    workers: int | None = None
    prefetch: int | None = None
    processes: bool | None = None
    maps_after: int | None = None
    cache: int | None = None
    max_rowsize: int | None = None
    persistent: bool | None = None


def as_predicted(change: Change, row: Mapping[str, Any]) -> Change:
    """The change of an operator (a row with its type and `uses_processes`), with what its prediction takes for granted.

    A source in threads stays in threads: with several workers MindSpore's default for a GeneratorDataset is processes.
    """
    stays = row.get("op_type") == SOURCE and change.processes is None and (change.workers or 1) > 1
    return replace(change, processes=bool(row.get("uses_processes"))) if stays else change


def trial_of(loop: Loop, stage: Stage, change: Change) -> Trial | None:
    """The trial of this very change of this operator as it is now; None without one."""
    alike = [one for one in loop.stages if (one.op_type, one.name) == (stage.op_type, stage.name)]
    if len(alike) > 1 and not stage.chained:  # nobody can tell of which of them it was
        return None
    meant = {(one.op_type, one.name) for one in loop.stages if one.chained} if stage.chained else set()
    meant |= {(stage.op_type, stage.name)}
    now = settings_now(loop, stage)
    wanted = {name: value for name in now if (value := getattr(change, name)) is not None}
    for trial in loop.trials:
        is_of = (trial.op_type, trial.name) in meant and not set(trial.new) - set(now)
        as_now = all(value in (None, now.get(name)) for name, value in trial.old.items())
        if is_of and as_now and {**now, **trial.new} == {**now, **wanted}:
            return trial
    return None


def settings_now(loop: Loop, stage: Stage) -> dict[str, Any]:
    """The settings of an operator; of a stage of a DataLoader those of the loader."""
    if stage.chained:
        workers = loop.loader_workers
        ahead = max((one.capacity or 0 for one in loop.stages if one.chained), default=0)
        restarts = None if loop.restart_ns is None else False
        return {"workers": workers, "prefetch": ahead // workers if workers else None, "persistent": restarts}
    now: dict[str, Any] = {"workers": stage.workers, "processes": stage.uses_processes, "prefetch": stage.depth}
    return now | {"maps_after": 0, "cache": None, "max_rowsize": None}  # as what a tuning changes has them before


def poll_row_ns(workers: int, *, processes: bool, prefetch: int = PREFETCH) -> float:
    """Shortest time between two rows of a GeneratorDataset with that many workers; 0 for one worker.

    Poll law: 100 ms / (Q W), Q rows per worker: 16 for threads, max(2, min(prefetch, 4 prefetch // W)) for processes.
    """
    if workers < 2:
        return 0.0
    queue = max(2, min(prefetch, 4 * prefetch // workers)) if processes else THREAD_QUEUE
    return POLL_NS / (queue * workers)


def rate_now(loop: Loop, stage: Stage) -> float:
    """The stage's capacity now; for a source with several workers not above the poll law, nor below what was seen."""
    rate = stage.rate if stage.rate is not None else math.inf
    if stage.op_type != SOURCE or stage.workers < 2 or not stage.rows:
        return rate
    law = poll_row_ns(stage.workers, processes=stage.uses_processes, prefetch=stage.depth)
    return min(rate, max(1e9 / (law * stage.rows), loop.rate or 0.0))


def rate_with(stage: Stage, workers: int) -> float | None:
    """Capacity with that many workers, cores aside; None when it cannot be told."""
    if stage.op_type == SOURCE and not stage.iterated:
        low, _, _, _ = source_changed(stage, workers, processes=stage.uses_processes, prefetch=stage.depth)
        return low
    if stage.rate is None or stage.op_type not in SCALING or stage.kind == "lock_wait":
        return stage.rate
    return stage.rate * workers / stage.workers


def because(code: str, **facts: Any) -> Basis:
    """What a prediction rests on, or why there is none."""
    return {"code": code, **facts}


def source_changed(
    stage: Stage, workers: int, *, processes: bool, prefetch: int
) -> tuple[float | None, float | None, list[Basis], Basis | None]:
    """A source's capacity, least and most: t' = max(t / W', poll law).

    While it waits to hand on a row, its threads make more: with shallower queues most is t / W'. Where rare stalls take
    its time, all workers may wait for the one that stalls, and then be polled: t' = t / W' to t + poll law.
    """
    rate = stage.rate or 0.0
    if not stage.rows:
        return None, None, [], because("rows_not_known")
    if workers == stage.workers and processes == stage.uses_processes and workers < 2:
        return rate, rate, [because("prefetch_unused")], None
    serial, row = _serial_row(stage)
    shallower = workers > 1 and not processes and prefetch < stage.depth
    if serial is None and (workers < 2 or shallower):
        return None, None, [], because("row_hidden")
    law = poll_row_ns(workers, processes=processes, prefetch=prefetch)
    basis = [row, because("not_polled") if workers < 2 else because("polled", workers=workers, least_ns=law)]
    if serial is None:  # limited by the polls: anything from nothing to what was seen
        seen = 1e9 / (rate * stage.rows) * stage.workers
        return 1e9 / (max(seen / workers, law) * stage.rows), 1e9 / (law * stage.rows), basis, None
    basis += [because("makes_meanwhile")] if shallower else []
    alone = max(serial / (1 if stage.kind == "gil" and not processes else workers), 1.0)
    least, most = (1e9 / (max(alone, polls) * stage.rows) for polls in (law, 0.0 if shallower else law))
    if stage.kind == "burst" and workers > stage.workers:
        basis.append(because("stalls_may_stay"))
        least, most = 1e9 / ((serial + law) * stage.rows), 1e9 / (alone * stage.rows)
    if stage.kind == "cpu" and not processes and workers > stage.workers and alone > law:
        basis.append(because("may_hold_lock"))
        least = min(least, rate)
    return least, most, basis, None


def _serial_row(stage: Stage) -> tuple[float | None, Basis]:
    """Time of one row in one worker, and where it comes from; None when the polls hide it."""
    if stage.row_ns is not None:
        return stage.row_ns, because("row_in_worker", row_ns=stage.row_ns)
    between = 1e9 / ((stage.rate or math.inf) * (stage.rows or 1.0))
    if stage.workers < 2:
        return between, because("row_alone", row_ns=between)
    if not is_polled(stage):
        return between * stage.workers, because("between_rows", row_ns=between, workers=stage.workers)
    return None, because("polls_limit_now")


def is_polled(stage: Stage) -> bool:
    """Whether it hands out rows about as fast as its workers are polled (`poll_row_ns`), however fast they are."""
    if stage.op_type != SOURCE or stage.workers < 2 or not stage.rate or not stage.rows:
        return False
    law = poll_row_ns(stage.workers, processes=stage.uses_processes, prefetch=stage.depth)
    return stage.kind == "poll" or 1e9 / (stage.rate * stage.rows) <= NEAR_POLL * law


def lowest_rate(loop: Loop, changed: Stage, rate: float) -> tuple[float, int | str | None]:
    """Lowest capacity, the changed stage having `rate`, and whose it is.

    Another part of a concatenation works a part of the time only, so its capacity is not the loop's.
    """
    rates: list[tuple[float, int | str | None]] = [
        (rate if stage.op_id == changed.op_id else rate_now(loop, stage), stage.op_id)
        for stage in loop.stages
        if stage.rate is not None and (stage.op_id == changed.op_id or not stage.below_concat)
    ]
    if loop.consumer is not None:
        rates.append((loop.consumer, "consumer"))
    return min(rates, key=lambda item: item[0])
