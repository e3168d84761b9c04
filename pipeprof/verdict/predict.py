"""What a change of the dataset pipeline would buy. Pure: measured facts in, a prediction or a refusal out.

The formulas are those of docs/predictions.md. Rates are batches per second, times nanoseconds; unknown
is None, and a prediction that would need what is unknown is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeprof.verdict import loader
from pipeprof.verdict.capacity import (
    BESIDE,
    BESIDE_LOCK,
    CHEAP,
    MOST_DELAYED,
    SCALING,
    SOURCE,
    THREAD_QUEUE,
    Basis,
    Change,
    Loop,
    Stage,
    because,
    is_polled,
    lowest_rate,
    rate_now,
    source_changed,
    trial_of,
)
from pipeprof.verdict.rules import DOUBTED_CORES, LOCK_HELD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

WIDEST = 1.8  # largest high / low that is still called a prediction
CORES_ERROR = 0.20  # of what free cores give: MindSpore's own threads take some, others come free
LESS_CROWDED = 1.2  # what a computing worker gains at most when another one is gone
IDLE_CORES = 0.3  # an operator that copies in C++ and uses less could make at least three times as much
TRAVEL = 0.2  # of its speed that an operator loses at most when its rows go to worker processes and back
LOCKED = 0.2  # of its speed that a computing function loses at most, beside others that want the interpreter's lock
MARGIN = 0.10  # around a point: the error that 9 of 10 predictions stayed within


@dataclass(frozen=True)
class Prediction:
    """Speed-up of the whole loop: `ratio` within [`low`, `high`], or None and the `reason` why no number can be given.

    `basis` says what it was computed from, `limited_by` what is the slowest then: an op_id, or "consumer". `basis` and
    `reason` are codes with numbers. `trial`: the verb that measured it before, None where it was computed.
    """

    ratio: float | None
    low: float | None = None
    high: float | None = None
    basis: tuple[Basis, ...] = ()
    limited_by: int | str | None = None
    reason: Basis | None = None
    trial: str | None = None


def predict(loop: Loop, change: Change) -> Prediction:
    """Speed-up of the loop by the change: as it was measured before, else lowest capacity after it / before it.

    Refused (ratio None): operators that were not timed, a source whose serial row time is hidden, and intervals wider
    than 1.8x (`low` and `high` are given then). On hosts without idle cores more computing workers bring between
    nothing and what these workers could make: measured predictions were off by up to 2x there.
    """
    stage = next((stage for stage in loop.stages if stage.op_id == change.op_id), None)
    measured = tried(loop, change)
    if measured is not None:
        return measured
    refusal = _refusal(loop, stage, change)
    if stage is None or refusal:
        return Prediction(None, reason=refusal)
    if stage.chained:
        gain = loader.gain(loop, change)
        return _stated(gain.low, (gain.low, gain.ratio, gain.high), gain.basis, gain.limited_by, None)
    low, high, basis, reason = _changed(loop, stage, change)
    busy = _wants_cores(stage, change) and loop.has_no_core
    if busy and low is not None:
        low, high = min(low, rate_now(loop, stage)), max(high or 0.0, _naive(loop, stage, change))
        reason = because("no_idle_core")
    if low is None or high is None:
        return Prediction(None, basis=tuple(basis), reason=reason)
    before, _ = lowest_rate(loop, stage, rate_now(loop, stage))
    slower, faster = _elsewhere(loop, stage, change)
    slow, _ = lowest_rate(slower, stage, low)
    polled, unpolled = (without_lock(one, stage) if change.processes else one for one in (slower, faster))
    fast, limited_by = lowest_rate(unpolled, stage, high)
    basis += _missing(loop, stage)
    interval = _interval(slow / before, fast / before, before, loop, CORES_ERROR if stage.computes else MARGIN)
    unknown = [other for other in loop.stages if other.rate is None and not is_cheap(other)]
    least = min(interval[0], 1.0) if unknown and interval[1] > 1.0 else interval[0]
    found = _stated(least, interval, basis, limited_by, reason)
    if _sends_rows(stage, change) and change.prefetch is None and fast > lowest_rate(polled, stage, high)[0]:
        found = replace(found, ratio=None, low=min(found.low or 1.0, 1.0), reason=because("polled_less"))
    in_turn = any(one.below_concat and rate_now(loop, one) < fast for one in loop.stages)
    return _in_turn(found, loop) if in_turn else found


def tried(loop: Loop, change: Change) -> Prediction | None:
    """What was measured of this change before, in place of a prediction; None where nothing was."""
    stage = next((stage for stage in loop.stages if stage.op_id == change.op_id), None)
    trial = None if stage is None else trial_of(loop, stage, change)
    if trial is None:
        return None
    return Prediction(trial.times, trial.low, trial.high, (because("measured", verb=trial.verb),), trial=trial.verb)


def with_rates(loop: Loop, rates: Mapping[int, tuple[float, float]], basis: Basis) -> Prediction:
    """Speed-up of the loop where operators, by op_id, make so much at least and at most.

    The loop itself may become faster, too: it no longer shares the lock and the cores with what is gone.
    """
    first = next((stage for stage in loop.stages if stage.op_id in rates), None)
    if first is None:
        return Prediction(None, reason=because("not_measured"))
    ends = []
    for end in (0, 1):
        stages = (replace(one, rate=rates[one.op_id][end]) if one.op_id in rates else one for one in loop.stages)
        ends.append(lowest_rate(replace(loop, stages=tuple(stages)), first, rates[first.op_id][end]))
    (slow, _), (fast, limited_by) = ends
    before, _ = lowest_rate(loop, first, rate_now(loop, first))
    low, ratio, high = _interval(slow / before, fast / before, before, loop, CORES_ERROR)
    most = math.inf if loop.consumer is None else max(loop.consumer * BESIDE, loop.consumer_most or 0.0) / before
    high = max(high, min(fast / before * max(BESIDE, _freed(loop, rates)), most))
    return _stated(low, (low, ratio, high), [basis, *_missing(loop, first)], limited_by, None)


def _freed(loop: Loop, op_ids: Collection[int]) -> float:
    """Times as fast a loop may be at most whose cores or lock these operators give back, by their part of the CPU."""
    stages = [stage for stage in loop.stages if stage.op_id in op_ids]
    if not loop.is_contended or not loop.process_cores:
        return 1.0
    beside = BESIDE_LOCK if any(stage.kind in ("gil", "lock_wait") for stage in stages) else 1.0
    cores = sum(stage.cores or 0.0 for stage in stages)
    return beside / (1 - min(cores / loop.process_cores, MOST_DELAYED))


def _in_turn(found: Prediction, loop: Loop) -> Prediction:
    """Parts of a concatenation work one after the other, so what one of them gains is gained a part of the time."""
    bound = loop.consumer_most / loop.rate if loop.consumer_most and loop.rate else math.inf
    high = max(1.0, min(found.high or math.inf, bound))
    return replace(found, ratio=None, low=min(found.low or 1.0, 1.0), high=high, reason=because("works_in_turn"))


def _elsewhere(loop: Loop, stage: Stage, change: Change) -> tuple[Loop, Loop]:
    """The loop with what other sources make beside the change: least, and most."""
    changed: list[list[Stage]] = [[], []]
    for other in loop.stages:
        for stages, rate in zip(changed, _beside(other, stage, change), strict=True):
            # As of one worker: what its polls allow is in the rate already.
            stages.append(other if rate == other.rate else replace(other, rate=rate, workers=1))
    return replace(loop, stages=tuple(changed[0])), replace(loop, stages=tuple(changed[1]))


def _beside(other: Stage, stage: Stage, change: Change) -> tuple[float | None, float | None]:
    """What another operator makes beside the change, least and most: the prefetch size is of all operators.

    While a polled source waits to hand on a row its threads make more. Rows that go to a worker process and back make
    it wait, where the queues on both sides of its output hold fewer rows than its threads make between two polls.
    """
    if other.op_type != SOURCE or other.op_id == stage.op_id or not other.rate:
        return other.rate, other.rate
    if change.prefetch is not None:
        processes = other.uses_processes
        low, high, _, _ = source_changed(other, other.workers, processes=processes, prefetch=change.prefetch)
        return low or other.rate, high
    waits = 2 * other.depth < THREAD_QUEUE * other.workers
    if waits and _sends_rows(stage, change) and is_polled(other) and not other.uses_processes:
        _, high, _, _ = source_changed(other, other.workers, processes=False, prefetch=other.depth - 1)
        return other.rate, high
    return other.rate, other.rate


def _sends_rows(stage: Stage, change: Change) -> bool:
    """Whether rows go to a worker process and back that did not, and so come back later."""
    moves = bool(change.processes) and not stage.uses_processes and stage.is_python and stage.op_type != SOURCE
    return moves and change.workers in (None, stage.workers)


def _refusal(loop: Loop, stage: Stage | None, change: Change) -> Basis | None:
    if stage is not None and stage.iterated and ((change.workers or 1) > 1 or change.processes):
        return because("iterated")
    if stage is None:
        return because("not_measured")
    if stage.chained:
        return loader.refused(loop, change)
    if stage.rate is None or stage.rate <= 0:
        return because("not_timed", op_type=stage.op_type)
    if stage.op_type != SOURCE and stage.op_type not in SCALING:
        return because("scaling_not_known", op_type=stage.op_type)
    return None


def _wants_cores(stage: Stage, change: Change) -> bool:
    return stage.computes and bool(change.processes or (change.workers or 0) > stage.workers)


def _naive(loop: Loop, stage: Stage, change: Change) -> float:
    """Capacity in batches/s if each worker had a core of its own."""
    return rate_now(loop, stage) * (change.workers or stage.workers) / stage.workers


def _changed(loop: Loop, stage: Stage, change: Change) -> tuple[float | None, float | None, list[Basis], Basis | None]:
    """The stage's capacity after the change: least, most, what that rests on, and why not when there is none."""
    workers = stage.workers if change.workers is None else change.workers
    processes = stage.uses_processes if change.processes is None else change.processes
    rate = rate_now(loop, stage)
    if stage.op_type == SOURCE:
        return source_changed(stage, workers, processes=processes, prefetch=change.prefetch or stage.depth)
    if stage.kind == "burst":
        if workers == stage.workers and change.prefetch is not None:
            return None, None, [], because("stall_not_known")
        return _stalling(stage, rate, workers, processes=processes)
    if processes is not stage.uses_processes and stage.is_python:
        return _to_processes(loop, stage, workers) if processes else _to_threads(stage, rate, workers)
    if stage.kind in ("gil", "lock_wait") and not processes:
        return _locked(stage, rate)
    return _scaled(loop, stage, workers, processes=processes)


def _locked(stage: Stage, rate: float) -> tuple[float, float, list[Basis], Basis | None]:
    """More threads take turns; those that wait most of the time lose by it: x0.93 and x1.00 of twice as many."""
    if stage.kind == "gil":
        return rate, rate, [because("holds_lock")], None
    return (1 - LOCKED) * rate, (1 + MARGIN) * rate, [because("waits_for_lock")], None


def _stalling(
    stage: Stage, rate: float, workers: int, *, processes: bool
) -> tuple[float, float, list[Basis], Basis | None]:
    """A map or batch whose time goes to rare stalls. Rows are handed on in order, so all workers wait for a long one.

    Meanwhile the others work ahead as far as their queues reach. Stalls overlap where the next one comes within that,
    and where each worker process has stalls of its own: up to rate W' / W.
    """
    times = workers / (1 if processes and not stage.uses_processes else stage.workers)  # threads may wait for one stall
    if times <= 1 or not (processes or stage.stalls_within_queue):
        left = min(workers / stage.workers, 1.0)
        return (1 - MARGIN) * left * rate, (1 + MARGIN) * rate, [because("stalls_stay")], None
    least = rate if processes else (1 - MARGIN) * rate
    return least, times * rate, [because("stalls_may_overlap" if processes else "stalls_may_stay")], None


def _scaled(
    loop: Loop, stage: Stage, workers: int, *, processes: bool
) -> tuple[float | None, float | None, list[Basis], Basis | None]:
    """C' = C W' / W; when the workers compute, min(C', C (P + free) / P) and CORES_ERROR around it."""
    rate = rate_now(loop, stage)
    naive = workers / stage.workers
    basis = [because("in_proportion", op_type=stage.op_type, old=stage.workers, new=workers)]
    if not stage.computes or naive == 1:
        return rate * naive, rate * naive, basis, None
    if naive < 1:
        basis.append(because("more_core_for_each"))
        return rate * naive, rate * min(1.0, naive * LESS_CROWDED), basis, None
    basis.append(because("free_cores_limit"))
    spare = _spare(loop, stage)
    most = naive if spare is None else min(naive, spare)
    low = 1.0 if spare is None else max(1.0, most * (1 - CORES_ERROR))
    high = max(low, min(naive, most * (1 + CORES_ERROR)))
    held = loop.gil_share is None or loop.gil_share >= LOCK_HELD
    if stage.is_python and not processes and held and (stage.cores or 0.0) < 1.1:
        basis.append(because("may_hold_lock"))
        low = 1.0
    return rate * low, rate * high, basis, None


def _spare(loop: Loop, stage: Stage) -> float | None:
    """(P + free) / P: how much more the process can compute; None when it is not known."""
    used = loop.process_cores or sum(other.cores or 0.0 for other in loop.stages) or stage.cores
    if loop.free_cores is None or not used:
        return None
    return (used + loop.free_cores / loop.sharing) / used


def _to_processes(
    loop: Loop, stage: Stage, workers: int
) -> tuple[float | None, float | None, list[Basis], Basis | None]:
    """From threads to processes: nobody waits for the GIL any more, but every row travels."""
    rate = rate_now(loop, stage)
    naive = workers / stage.workers
    most = rate * naive
    if stage.kind == "gil" and stage.cores and loop.rate:
        most = workers * loop.rate / stage.cores  # one core for every worker, at the CPU time of a batch
    least = min(rate, most) if stage.kind == "gil" else rate * min(naive, 1.0) * (1 - TRAVEL)
    return least, max(least, most), [because("transfer_not_known")], None


def _to_threads(
    stage: Stage, rate: float, workers: int
) -> tuple[float | None, float | None, list[Basis], Basis | None]:
    """From processes to threads: no row travels any more, so at most W' / r, r being the time in the function.

    Where it computes it may hold the GIL: all workers together make what one makes, and wait for others that want it.
    """
    least = most = rate * workers / stage.workers
    basis = [because("rows_stay")]
    if stage.row_ns and stage.rows:
        most = max(most, workers * 1e9 / (stage.row_ns * stage.rows))
    if stage.computes:
        basis.append(because("may_hold_lock"))
        least = min(least, rate / stage.workers) * (1 - LOCKED)
    return least, most, basis, None


def without_lock(loop: Loop, stage: Stage) -> Loop:
    """The loop when this stage gives the lock back: how fast Python that waited for it is then, is not known.

    Threads that hand rows to worker processes waited for it, too: they make as many as the function takes in these.
    """
    if not _holds_lock(loop, stage):
        return loop
    others = (other if other.op_id == stage.op_id else _unlocked(other) for other in loop.stages)
    return replace(loop, stages=tuple(others))


def _holds_lock(loop: Loop, stage: Stage) -> bool:
    """Whether an operator keeps the interpreter's lock from others: one that limits, or as much of it as is a doubt."""
    enough = (stage.cores or 0.0) >= DOUBTED_CORES and (loop.gil_share or 0.0) >= LOCK_HELD
    return stage.is_python and not stage.uses_processes and (stage.kind == "gil" or enough)


def _unlocked(stage: Stage) -> Stage:
    if not stage.is_python or not stage.rate:
        return stage
    if stage.uses_processes:
        in_function = stage.workers * 1e9 / (stage.row_ns * stage.rows) if stage.row_ns and stage.rows else 0.0
        return replace(stage, rate=max(stage.rate, in_function))
    return stage if stage.computes else replace(stage, rate=None)


def is_cheap(stage: Stage) -> bool:
    """Whether an operator without times is surely fast: it does next to nothing, or copies rows with little CPU."""
    copies = stage.op_type == "BatchOp" and not stage.is_python and stage.cores is not None
    return stage.op_type in CHEAP or (copies and (stage.cores or 0.0) < IDLE_CORES)


def _interval(slow: float, fast: float, before: float, loop: Loop, margin: float) -> tuple[float, float, float]:
    """Low, ratio, high: with a margin around a point, never above what the consumer can take."""
    bound = math.inf if loop.consumer is None else loop.consumer / before
    most = math.inf if loop.consumer_most is None else loop.consumer_most / before
    ratio = min(bound, math.sqrt(slow * fast))
    low, high = (slow * (1 - margin), fast * (1 + margin)) if math.isclose(slow, fast) else (slow, fast)
    return min(low, ratio), ratio, max(ratio, min(high, most))


def _missing(loop: Loop, stage: Stage) -> list[Basis]:
    types = sorted({other.op_type for other in loop.stages if other.rate is None and other.op_id != stage.op_id})
    basis = [because("others_not_timed", op_types=types)] if types else []
    return basis + ([because("training_not_timed")] if loop.consumer is None else [])


def _stated(
    low: float, interval: tuple[float, float, float], basis: Sequence[Basis], limit: int | str | None,
    reason: Basis | None,
) -> Prediction:  # fmt: skip
    _, ratio, high = interval
    if high > WIDEST * low:
        return Prediction(None, low, high, tuple(basis), limit, reason or because("too_wide"))
    return Prediction(ratio, low, high, tuple(basis), limit, reason)
