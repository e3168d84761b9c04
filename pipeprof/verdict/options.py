"""Changes of one operator's settings with what each brings: reports, `whatif` and `tune` choose from them. Pure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import loader
from pipeprof.verdict.candidate import SETTINGS, WORTH, Candidate, key_of
from pipeprof.verdict.capacity import CPU_SHARE, SCALING, SOURCE, Change, Loop, Stage, because, rate_now, rate_with
from pipeprof.verdict.predict import MARGIN, Prediction, predict, with_rates
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DEEP = 64  # the queue that is tried where rare stalls limit, and nobody knows how long they are
TIE = 1.15  # times the slowest: operators within it are changed together, too
MOST_WORKERS = 64
ONE_THREAD: Mapping[str, str] = {
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENCV_FOR_THREADS_NUM": "1",
}


def options(loop: Loop, op_id: int) -> list[Candidate]:
    """All changes of the operator's settings, the most promising first."""
    stage = next((stage for stage in loop.stages if stage.op_id == op_id), None)
    if stage is None:
        return []
    changes = list(_changes(stage, loop))
    made = [Candidate(key_of(one), (one,), prediction=predict(loop, one)) for one in changes]
    if not any(one.prediction.trial for one in made):
        return sorted(made, key=order)
    untried = replace(loop, trials=())
    seen = [
        (replace(one, prediction=predict(untried, change)), one.prediction.ratio)
        for one, change in zip(made, changes, strict=True)
        if one.prediction.trial and one.prediction.ratio
    ]
    return learned(made, seen)


def together(loop: Loop) -> list[Candidate]:
    """New workers for the operators that are about equally slow: either alone brings nothing."""
    rates = {stage.op_id: rate_now(loop, stage) for stage in loop.stages
             if stage.rate is not None and not stage.below_concat}  # fmt: skip
    consumer = [loop.consumer] if loop.consumer is not None else []
    before = min([*rates.values(), *consumer], default=0.0)
    slow = [stage for stage in loop.stages if stage.op_id in rates and rates[stage.op_id] <= TIE * before]
    if len(slow) < 2 or before <= 0 or any(stage.op_type not in (SOURCE, *SCALING) or stage.iterated for stage in slow):
        return []
    others = [rate for op_id, rate in rates.items() if op_id not in {stage.op_id for stage in slow}]
    target = min([*others, *consumer], default=math.inf)
    enough = {stage.op_id: _enough(stage, target, loop) for stage in slow}
    changes = tuple(
        Change(stage.op_id, workers=enough[stage.op_id][1]) for stage in slow if enough[stage.op_id][1] != stage.workers
    )
    if len(changes) < 2:
        return []
    ratio = min(target, *(rate for rate, _ in enough.values())) / before
    low = 1.0 if any(stage.computes for stage in slow) else ratio * (1 - MARGIN)
    key = "+".join(key_of(change) for change in changes)
    return [Candidate(key, changes, prediction=Prediction(ratio, min(low, ratio), ratio * (1 + MARGIN)))]


def one_thread(environment: Mapping[str, str]) -> list[Candidate]:
    """One thread for each call of NumPy and the like, where nobody chose a number."""
    free = {name: value for name, value in ONE_THREAD.items() if name not in environment}
    return [Candidate("threads=1", environment=free)] if free else []


def learned(ranked: list[Candidate], seen: Sequence[tuple[Candidate, float]]) -> list[Candidate]:
    """The candidates with the predictions that trials of the same recording correct, in their new order.

    `seen`: candidates whose prediction failed, and the speed-up that was measured. Of other values for the same
    settings of the same operators the logarithm of the gain is taken to be off by the same factor: where two workers
    brought nothing, four will not; where they brought half of what was promised, neither will four bring it all.
    """
    powers = {
        _kind(one): math.log(measured) / math.log(one.prediction.ratio)
        for one, measured in seen
        if one.prediction.ratio is not None and abs(math.log(one.prediction.ratio)) > math.log(WORTH) and measured > 0
    }
    return sorted((_corrected(one, powers.get(_kind(one))) for one in ranked), key=order)


def _kind(one: Candidate) -> frozenset[tuple[int, str]]:
    return frozenset(
        (change.op_id, name) for change in one.changes for name in SETTINGS if getattr(change, name) is not None
    )


def _corrected(one: Candidate, power: float | None) -> Candidate:
    promised = one.prediction
    if power is None or promised.trial or promised.ratio is None or promised.low is None or promised.high is None:
        return one
    ratio = promised.ratio**power
    prediction = replace(
        promised, ratio=ratio, low=promised.low * ratio / promised.ratio, high=promised.high * ratio / promised.ratio,
        basis=(*promised.basis, because("learned", power=power)),
    )  # fmt: skip
    return replace(one, prediction=prediction)


def settings_of(one: Candidate) -> frozenset[str]:
    """The names of what it sets."""
    return frozenset(name for change in one.changes for name in SETTINGS if getattr(change, name) is not None)


def order(one: Candidate) -> tuple[Any, ...]:
    """The most promising first, which fewest pairs decide; of unknown effect, behind these, what usually brings most.

    A cache takes memory and helps from the second epoch on, and workers that live on may draw other random numbers
    than as many others: they come behind what brings nearly as much.
    """
    promise = one.expected / (
        TIE if any(change.cache or (change.workers and change.persistent) for change in one.changes) else 1.0
    )
    return one.is_unknown, -round(promise, 2), not one.changes, len(one.changes), size(one)


def size(candidate: Candidate) -> tuple[int, int, str]:
    """How much it changes: settings, then workers."""
    settings = sum(getattr(one, name) is not None for one in candidate.changes for name in SETTINGS)
    return settings, sum(one.workers or 0 for one in candidate.changes), candidate.key


def outlasting(stage: Stage, taken: float | None) -> tuple[int | None, dict[str, Any] | None]:
    """Batches of a queue that outlasts the longest stall while the loop takes `taken` a second; else why none does.

    (None, None) where nobody knows.
    """
    if stage.max_row_ns is None or taken is None:
        return None, None
    if (stage.rate or 0.0) < taken:
        return None, {"code": "slow_on_average"}
    depth = math.ceil(stage.max_row_ns * taken / 1e9) + 1
    if depth <= (stage.capacity or 0):
        return None, {"code": "queue_is_deep", "depth": stage.capacity}
    return depth, None


def whole_batches(loop: Loop, op_id: int) -> Prediction:
    """What it brings that this map and the Python maps behind it come after the batch, and are called once for each.

    Such a call takes as long as its rows take now, or less: NumPy does them at once. What a row costs besides, such as
    the wait for the interpreter's lock, a batch costs once.
    """
    rates = {}
    for one in _python_maps(loop, op_id):
        if one.call_ns is None or not one.work_ns or not one.rows:
            return Prediction(None, reason=because("not_timed", op_type=one.op_type))
        most = one.call_ns + (one.work_ns - one.call_ns) / one.rows
        rates[one.op_id] = one.workers * 1e9 / most, one.workers * 1e9 * one.rows / one.work_ns
    return with_rates(loop, rates, because("calls_of_batches"))


def in_cpp(loop: Loop, op_id: int) -> Prediction:
    """What it brings that operations in C++ do it and the Python maps behind it: no slower than the functions alone."""
    rates = {one.op_id: (one.workers * 1e9 / one.call_ns, math.inf) for one in _python_maps(loop, op_id) if one.call_ns}
    return with_rates(loop, rates, because("no_lock_in_cpp"))


def unwrapped(loop: Loop, op_id: int) -> Prediction:
    """What it brings that the MindSpore dataset, whose rows a source hands on, takes the source's place.

    Its rows no longer come through Python one after the other. How fast it makes them is not known: no slower.
    """
    stage = next(one for one in loop.stages if one.op_id == op_id)
    return with_rates(loop, {op_id: (rate_now(loop, stage), math.inf)}, because("rows_without_python"))


def _python_maps(loop: Loop, op_id: int) -> list[Stage]:
    """The maps in Python from this one to the batch; none where no batch follows."""
    batch = max((one.op_id for one in loop.stages if one.op_type == "BatchOp" and one.op_id < op_id), default=op_id)
    return [one for one in loop.stages if batch < one.op_id <= op_id and one.op_type == "MapOp" and one.is_python]


def _changes(stage: Stage, loop: Loop) -> Iterator[Change]:
    """Numbers of workers, worker processes, both, and deeper queues; of a DataLoader its own settings."""
    if stage.chained:
        yield from loader.changes_of(loop, stage, loader.numbers_of(loop))
    if stage.op_type != SOURCE and stage.op_type not in SCALING:
        return
    numbers = [] if stage.iterated else _numbers(stage, loop)
    yield from (Change(stage.op_id, workers=number) for number in numbers)
    if stage.is_python and not stage.iterated:
        other = not stage.uses_processes
        if stage.op_type != SOURCE or stage.workers > 1:
            yield Change(stage.op_id, processes=other)
        stages = (replace(one, uses_processes=other) if one is stage else one for one in loop.stages)
        enough = enough_workers(replace(loop, stages=tuple(stages)), stage.op_id)
        wanted = sorted({*numbers, *_within(loop, stage, {enough})})
        yield from (Change(stage.op_id, workers=number, processes=other) for number in wanted if number > 1)
    polled = stage.op_type == SOURCE and stage.uses_processes and stage.workers > 1
    depth, why = outlasting(stage, loop.consumer) if stage.kind == "burst" else (DEEP, None)
    if (stage.kind == "burst" or polled) and why is None and stage.depth < (depth or DEEP):
        yield Change(stage.op_id, prefetch=depth or DEEP)


def _numbers(stage: Stage, loop: Loop) -> list[int]:
    """Numbers of workers: enough by the prediction, one more, twice as many, all; fewer for a source."""
    wanted = {enough_workers(loop, stage.op_id), stage.workers + 1, 2 * stage.workers, loop.cpu_count}
    if stage.op_type == SOURCE or (stage.cpu_share or 0.0) >= CPU_SHARE:
        wanted.add(1)
    return sorted(_within(loop, stage, wanted))


def _within(loop: Loop, stage: Stage, wanted: set[int | None]) -> set[int]:
    """Of some numbers of workers those that MindSpore takes and the operator does not have."""
    return {one for one in wanted if one and one <= min(loop.cpu_count, MOST_WORKERS) and one != stage.workers}


def _enough(stage: Stage, target: float, loop: Loop) -> tuple[float, int]:
    """Rate and number of workers: the smallest number that reaches the target, else the one that makes most."""
    numbers = range(1, min(loop.cpu_count, MOST_WORKERS) + 1)
    rates = [(rate, number) for number in numbers if (rate := rate_with(stage, number)) is not None]
    enough = [one for one in rates if one[0] >= target]
    if enough:
        return min(enough, key=lambda one: one[1])
    return max(rates, key=lambda one: (one[0], -one[1]), default=(stage.rate or 0.0, stage.workers))
