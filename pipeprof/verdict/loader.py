"""What other settings of a DataLoader make of the time of a batch. Pure; formulas: docs/predictions.md.

Its stages take turns: in the loop itself, or in each worker process, of which every one makes batches of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeprof.verdict.capacity import CPU_SHARE, Basis, Change, Loop, Stage, because

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STAGES = frozenset({"Collate", "Dataset", "Sampler", "Transform"})  # op_type
ORDER = "Sampler"  # the stage that always runs in the loop itself
MARGIN = 0.10  # of a stage's time, by which a prediction is off
CORES_ERROR = 0.20  # of what free cores give
LIKELY, UNEVEN = 8.0, 4.0  # powers of `_beside`: two sides that are alike take 9 % longer, and 19 %
HANDED_NS = 2e6  # at most, that the loop takes to get a batch from another process and to send it an order
JUST = 0.85  # of what workers could make, from which on they only just keep up
STARTED_NS = (10e6, 60e6)  # that a worker takes to be started and ended, where none was: 10 to 25 ms were seen
DEEPER = 4  # times as many batches ahead, where rare stalls limit
KEPT_NS = 5e6  # at most, that an epoch takes to begin whose workers live already, beside its first batch: 1 to 3 ms


@dataclass(frozen=True)
class Gain:
    """Time of a batch now / after a change, at least and at most; what limits then, and what it rests on."""

    low: float
    ratio: float
    high: float
    limited_by: int | str
    basis: tuple[Basis, ...]


def refused(loop: Loop, change: Change) -> Basis | None:
    """Why nothing is predicted; None where something is."""
    turn = [stage for stage in loop.stages if stage.chained]
    if not loop.rate or not loop.consumer or any(stage.work_ns is None for stage in turn):
        return because("loader_not_timed")
    if change.persistent is not None and loop.restart_ns is None:
        return because("no_epoch_began")
    if change.prefetch is not None and change.workers is None and any(stage.kind == "burst" for stage in turn):
        return because("stall_not_known")
    return None


def gain(loop: Loop, change: Change) -> Gain:
    """Speed-up of the loop by other settings of its loader, which `refused` did not refuse."""
    now, wanted = loop.loader_workers, loop.loader_workers if change.workers is None else change.workers
    batch = 1e9 / (loop.rate or 1.0)
    before = [batch + start for start in _starts(loop, now, now, persistent=False)]
    starts = _starts(loop, now, wanted, persistent=bool(change.persistent))
    basis: list[Basis] = []
    limit: int | str = _longest(loop)
    times = (batch, batch, batch)
    if wanted != now:
        times, limit, basis = _other_number(loop, now, wanted)
    elif change.prefetch is not None:
        basis = [because("queue_of_batches")]
    if change.persistent and wanted:
        basis.append(because("starts_saved", restart_ns=loop.restart_ns, batches=loop.epoch_batches))
    most, likely, least = (time + start for time, start in zip(times, reversed(starts), strict=True))
    margin = MARGIN if change.prefetch is not None or change.persistent else 0.0
    low, ratio, high = (one / other for one, other in zip(before, (most, likely, least), strict=True))
    return Gain(low * (1 - margin), ratio, high * (1 + margin), limit, tuple(basis))


def changes_of(loop: Loop, stage: Stage, numbers: Sequence[int]) -> Iterator[Change]:
    """What can be tried at a loader: other numbers of workers, workers that live on, both, and longer queues."""
    now = loop.loader_workers
    restarts = loop.restart_ns is not None
    if now and stage.capacity and any(one.kind == "burst" for one in loop.stages if one.chained):
        yield Change(stage.op_id, prefetch=DEEPER * stage.capacity // now)
    if now and restarts:
        yield Change(stage.op_id, persistent=True)
    for number in numbers:
        yield Change(stage.op_id, workers=number)
        if number and restarts:
            yield Change(stage.op_id, workers=number, persistent=True)


def numbers_of(loop: Loop) -> list[int]:
    """Numbers of workers that may help: one more, twice as many, and as many as keep up with the loop.

    Where these only just do, one more than that. At most one for each CPU: libraries warn of more.
    """
    now = loop.loader_workers
    turn_ns = sum(stage.work_ns or 0.0 for stage in loop.stages if stage.chained and stage.op_type != ORDER)
    needed = turn_ns * (loop.consumer or 0.0) / 1e9
    wanted = {math.ceil(needed), math.ceil(needed / JUST)}
    wanted |= {now + 1, 2 * now} if max(wanted) > now else set()
    return sorted({min(number, loop.cpu_count) for number in wanted if number} - {now})


def _other_number(loop: Loop, now: int, wanted: int) -> tuple[tuple[float, float, float], int | str, list[Basis]]:
    """Time of a batch with so many workers, at most, likely and at least; what limits; and what that rests on."""
    turn = [one for one in loop.stages if one.chained]
    rows = sum(one.work_ns or 0.0 for one in turn if one.op_type != ORDER)
    order = sum(one.work_ns or 0.0 for one in turn if one.op_type == ORDER)
    batch, own = 1e9 / (loop.rate or 1.0), 1e9 / (loop.consumer or 1.0)
    if not wanted:
        likely = rows + order + own
        return (likely * (1 + MARGIN), likely, likely * (1 - MARGIN)), _longest(loop), [because("in_the_loop")]
    made, loops = rows / wanted, order + own
    # As much slower than its parts as it is now: batches of unequal size, workers that wait for each other.
    slower = max(1.0, batch / _beside(rows / now, order + own, LIKELY)) if now else 1.0
    first = 0.0 if now or not loop.epoch_batches else (rows - (made if made > loops else 0.0)) / loop.epoch_batches
    likely = _beside(made, loops, LIKELY) + first
    most = _beside(made * slower, loops + (0.0 if now else HANDED_NS), UNEVEN) * (1 + MARGIN) + first
    undisturbed = order + 1e9 / (loop.consumer_most or 1.0)
    least = max(made, min(loops, undisturbed)) * (1 - MARGIN)
    basis = [because("loader_in_proportion", old=now, new=wanted)]
    limit: int | str = "consumer" if loops > made else _longest(loop)
    if wanted > now and _computes(turn):
        basis.append(because("free_cores_limit"))
        spare = _spare(loop)
        if spare is None:
            return (batch, likely, least), limit, basis
        crowded, relieved = (batch / times for times in spare)
        limit = _longest(loop) if crowded > max(likely, loops) else limit
        most = max(most, min(batch, crowded / (1 - CORES_ERROR)))
        likely = max(likely, crowded)
        if not loop.has_no_core:  # else they may get a core each, where what else runs has ended
            least = max(least, relieved / (1 + CORES_ERROR))
    return (max(most, likely), likely, min(least, likely)), limit, basis


def _longest(loop: Loop) -> int:
    """The stage that takes most of the turn."""
    return max((stage for stage in loop.stages if stage.chained), key=lambda stage: stage.work_ns or 0.0).op_id


def _beside(made: float, taken: float, evenly: float) -> float:
    """Time of a batch where one side makes batches and the other takes them: the longer, or more where they are alike.

    Each waits for the other now and then, the more the less even their times are.
    """
    return float((made**evenly + taken**evenly) ** (1 / evenly))


def _computes(turn: Sequence[Stage]) -> bool:
    """Whether free cores limit what more workers can do: of stages that compute, enough of the time.

    Also of those that wait for the interpreter's lock: in processes of their own they compute instead.
    """
    computing = sum(stage.work_ns or 0.0 for stage in turn if stage.computes or stage.kind == "lock_wait")
    return computing >= CPU_SHARE * sum(stage.work_ns or 0.0 for stage in turn)


def _spare(loop: Loop) -> tuple[float, float] | None:
    """(P + free) / P: how much more its processes can compute, likely and at most; None when it is not known.

    More than one core for the loop, beside its workers', is of threads of libraries. They may only wait for work while
    they compute, as OpenMP's do, and give their cores to whoever needs them. Programs beside the training share with
    each of its processes: more of these get more.
    """
    if loop.free_cores is None or not loop.process_cores:
        return None
    room = loop.process_cores + loop.free_cores / loop.sharing
    apart = sum(stage.cores or 0.0 for stage in loop.stages if stage.chained and stage.uses_processes)
    return room / loop.process_cores, max(room, loop.room / loop.sharing) / min(loop.process_cores, 1.0 + apart)


def _starts(loop: Loop, now: int, wanted: int, *, persistent: bool) -> tuple[float, float, float]:
    """What starting workers takes from each batch, at least, likely and at most: each epoch starts them anew."""
    if loop.restart_ns is None or not loop.epoch_batches or not wanted:
        return 0.0, 0.0, 0.0
    if persistent:
        made = sum(stage.work_ns or 0.0 for stage in loop.stages if stage.chained)  # the first batch may be waited for
        return 0.0, KEPT_NS / 2 / loop.epoch_batches, (KEPT_NS + made) / loop.epoch_batches
    if wanted == now:
        return (loop.restart_ns / loop.epoch_batches,) * 3
    if now:
        each = loop.restart_ns / now
        return tuple(wanted * each * part / loop.epoch_batches for part in (0.7, 1.0, 1.3))  # type: ignore[return-value]
    low, high = STARTED_NS
    return tuple(wanted * each / loop.epoch_batches for each in (low, (low * high) ** 0.5, high))  # type: ignore[return-value]
