"""What to change at the stage that limits: the parameter, from what to what, what it buys, and when not to.

A change is only suggested when its predicted effect is not a loss. Where no number can be predicted the reason is
given, with the most that any cure of this stage can bring: the capacity of the next one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.candidate import WORTH, Candidate, cached, kept_rows
from pipeprof.verdict.capacity import (
    BESIDE,
    MANY_ROWS,
    PREFETCH,
    SCALING,
    SHORT_ROW_NS,
    SOURCE,
    Change,
    Loop,
    poll_row_ns,
)
from pipeprof.verdict.evidence import operator
from pipeprof.verdict.facts import ITERABLE
from pipeprof.verdict.loader import ORDER
from pipeprof.verdict.options import (
    ONE_THREAD,
    in_cpp,
    one_thread,
    options,
    outlasting,
    settings_of,
    together,
    unwrapped,
    whole_batches,
)
from pipeprof.verdict.predict import Prediction, predict, without_lock
from pipeprof.verdict.rules import DOUBTED_CORES, LOCK_HELD
from pipeprof.verdict.storage import best_point
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeprof.query.rows import JudgedStage
    from pipeprof.verdict.capacity import Basis, Stage
    from pipeprof.verdict.storage import CachePoint


BOUND = "bound"  # the suggestion that says what no cure of an operator exceeds
THREAD_ROWS_S = 160.0  # at most from each thread of a source that has several: 16 rows between two polls of 100 ms
LESS_PYTHON = ("whole_batches", "to_cpp", "unwrap_source")  # which take their CPU away, not elsewhere
BESIDE_WAITING = 2.0  # the same for one that mostly waits, whose threads go to sleep meanwhile: 1.96 was seen, and of
# a stage that waits beside a slow one 1.46
NEAR = 2.0  # times the shortest row of a source, up to which it is said together with the advice
THREADED = 1.5  # cores that a row keeps busy in one of several worker processes, from which threads crowd each other
CPU_SHORT = 0.10  # of the machine idle; where more is, workers that have nothing to do harm nobody


@dataclass(frozen=True)
class Suggestion:
    """One change. `gain` is the predicted speed-up of the loop, within [`gain_low`, `gain_high`]; None: not known.

    `code` says which, with `facts`; reports word both. `old` and `new` are values of `parameter`; `place` is the
    file:line to edit; `not_when` the code and numbers of the counter-indication; `then` what limits afterwards: an
    op_id or "consumer"; `trial` the verb that measured the gain, None for a prediction. One with a `parameter` is of
    the changes in verdict/options, with the prediction of that change.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    op_id: int | None = None
    parameter: str | None = None
    old: Any = None
    new: Any = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    basis: tuple[Basis, ...] = ()
    not_when: Mapping[str, Any] | None = None
    place: str | None = None
    verify: str | None = None
    then: int | str | None = None
    trial: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For reports."""
        return asdict(self) | {"basis": list(self.basis)}


def suggestions(row: JudgedStage, kind: str | None, loop: Loop, *, shared: bool = False) -> list[Suggestion]:
    """What to do about this stage: largest gain first, the bound of all last.

    `shared`: it limits by the CPU that it takes from the training, so that less of it is what helps.

    In front of all gains stands that other programs must stop, because what is predicted was measured beside them.
    """
    advice = _of_type(row, kind, loop)
    if shared:
        advice = [by_cpu(item) if item.code in LESS_PYTHON else item for item in advice]
    takes_less = any(item.code.startswith("cheaper") or item.code in LESS_PYTHON for item in advice)
    if (not advice or (shared and not takes_less)) and kind != "host_saturated":
        computes = _of("cheaper_rows" if row.is_python else "cheaper_operations", row, place=row.code)
        advice.append(_of("cheaper_waits", row, place=row.code) if kind == "wait" else computes)
    advice.sort(key=lambda item: -(item.gain or 0.0))
    if kind == "host_saturated":
        advice.insert(0, Suggestion("stop_other_programs", op_id=row.op_id))
    bound = _bound(row, kind, loop)
    return advice if bound is None else [*advice, bound]


def beside_settings(
    row: JudgedStage, kind: str | None, loop: Loop, points: Sequence[CachePoint], environment: Mapping[str, str]
) -> Iterator[Suggestion]:
    """What needs no other setting of this stage: rows that are kept in memory, one thread for each call of a library.

    `points`: caches of verdict/storage; `environment`: the variables that the training had.
    """
    best = best_point(points)
    if best is not None:
        gained = cached(best, loop).prediction
        facts = {"op": best.op, "bytes": best.bytes, "prediction": _stated(gained)}
        yield Suggestion(
            "keep_rows", facts, best.op_id, place=best.site, basis=gained.basis,
            not_when={"code": "rows_change"} if best.python else None, **_gains(gained),
            verify=_verify(best, loop, cached(best, loop), "--cache") if best in kept_rows(points) else None,
        )  # fmt: skip
    if row.is_python and kind in ("cpu", "gil") and loop.is_contended:
        for threads in one_thread(environment):
            if threads.environment == ONE_THREAD:  # nobody chose a number
                crowding = row.workers > 1 and (row.call_cores or 0.0) >= THREADED
                yield _of("one_thread", row, {"call_cores": row.call_cores if crowding else None})


def _of_type(row: JudgedStage, kind: str | None, loop: Loop) -> list[Suggestion]:
    """What can be done about a stage of its type, in no order."""
    advice: list[Suggestion] = []
    if row.chained:
        advice += _loader(row, kind, loop)
    elif row.op_type == SOURCE:
        advice += _source(row, kind, loop)
    elif row.op_type in SCALING:
        advice += _workers(row, kind, loop)
    elif row.op_type == "ShuffleOp":
        advice.append(_of("smaller_shuffle", row, parameter="buffer_size", place=row.site))
    elif row.op_type == ITERABLE:
        advice.append(_of("faster_batches", row, place=row.code or row.site))
    elif row.is_python:
        advice.append(_of("cheaper_waits" if kind == "wait" else "cheaper_rows", row, place=row.code))
    else:
        advice.append(_reading(row, kind, loop))
    if row.op_type in (SOURCE, *SCALING):
        advice += _together(row, loop)
    return advice


def by_cpu(item: Suggestion) -> Suggestion:
    """Without a prediction: the pace of stages says nothing of what the training gains by their CPU."""
    facts = {**item.facts, "prediction": None}
    return replace(item, facts=facts, gain=None, gain_low=None, gain_high=None, basis=(), then=None)


def _reading(row: JudgedStage, kind: str | None, loop: Loop) -> Suggestion:
    """Of a reader of files: more workers, unless it computes and no core is free for them."""
    facts = {"kind": kind, "crowded": loop.is_crowded}
    if kind == "cpu" and loop.is_crowded:
        return _of("faster_reading", row, facts, place=row.site)
    return _of("faster_reading", row, facts, parameter="num_parallel_workers", old=row.workers, place=row.site)


def _of(code: str, row: JudgedStage, facts: Mapping[str, Any] | None = None, **more: Any) -> Suggestion:
    """Builds a suggestion on the operator of the row."""
    return Suggestion(code, {"op": operator(row), "workers": row.workers, **(facts or {})}, row.op_id, **more)


def _bound(row: JudgedStage, kind: str | None, loop: Loop) -> Suggestion | None:
    """The most that any change of this stage can bring; None when that is nothing, or not known."""
    stage = next((stage for stage in loop.stages if stage.op_id == row.op_id), None)
    if stage is not None and kind == "gil":  # which the stage by itself need not tell: an import knows no functions
        stage = replace(stage, kind="gil", is_python=True)
    others = loop if stage is None else without_lock(loop, stage)
    bound = most(row, others)
    if bound is None or bound < WORTH:
        return None
    limit = _next(row, others)
    then = "consumer" if limit is None else limit["op_id"]
    return _of("bound", row, {"times": bound, "next": limit}, gain_high=bound, place=row.code, then=then)


def for_consumer(rows: Sequence[JudgedStage], loop: Loop) -> list[Suggestion]:
    """A loop that does not wait: what its data pipeline takes from it; where CPU is short, what that could give up.

    Of a loader the workers that each epoch starts anew, which no batch is seen to wait for.
    """
    advice = [
        _lock_holder(row)
        for row in rows
        if (row.python_cores or 0) >= DOUBTED_CORES and (row.gil_share or 0) >= LOCK_HELD
    ]
    if loop.free_cores is not None and loop.free_cores < CPU_SHORT * loop.room:
        advice += [spare for row in rows if (spare := _fewer(row, loop)) is not None]
    staged = next((row for row in rows if row.chained), None)
    return advice if staged is None else [*advice, *_lasting(staged, loop)]


def _lock_holder(row: JudgedStage) -> Suggestion:
    if row.op_type not in SCALING:
        return _of("lock_ahead_of_time", row, place=row.code)
    return _of(
        "lock_to_processes", row, parameter="python_multiprocessing", old=False, new=True, place=row.site,
        not_when={"code": "rows_are_large"},
    )  # fmt: skip


def most(row: JudgedStage, loop: Loop) -> float | None:
    """Speed-up of the loop at most if this stage took no time: what the others can make / what is made now.

    All of it in the window in which the loop was watched: a stage makes at least what was taken from it there. None
    when it is not known.
    """
    if not loop.rate:
        return None
    others = [
        max(stage.rate * (BESIDE_WAITING if _waits(stage.rate, loop) else 1.0), _undelayed(stage, loop))
        for stage in loop.stages
        if stage.rate is not None and stage.op_id != row.op_id
    ]
    if loop.consumer is not None and loop.consumer_most is not None:
        beside = BESIDE_WAITING if _waits(loop.consumer, loop) else BESIDE
        others.append(max(loop.consumer * beside, loop.consumer_most, loop.consumer_undelayed))
    return max(1.0, min(others) / loop.rate) if others else None


def _undelayed(stage: Stage, loop: Loop) -> float:
    """Batches/s that a `batch` in C++ could make, which copies and does nothing else, if it never waited for a core."""
    if not loop.is_crowded or stage.op_type != "BatchOp" or stage.is_python or not stage.cores or not loop.rate:
        return 0.0
    return stage.workers * loop.rate / stage.cores


def _waits(rate: float, loop: Loop) -> bool:
    """Whether who could make so much mostly waits: its threads sleep in between, and work more slowly on waking."""
    return loop.rate is not None and loop.rate < 0.5 * rate


def _next(row: JudgedStage, loop: Loop) -> dict[str, Any] | None:
    """The operator that limits when this stage no longer does; None for the training itself."""
    rated: list[tuple[float, dict[str, Any] | None]] = [
        (stage.rate, {"op_id": stage.op_id, "op_type": stage.op_type, "name": stage.name})
        for stage in loop.stages
        if stage.rate is not None and stage.op_id != row.op_id
    ]
    if loop.consumer is not None:
        rated.append((loop.consumer, None))
    return min(rated, key=lambda item: item[0])[1]


def _workers(row: JudgedStage, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    now = row.workers
    if kind == "burst":
        yield from _stalling(row, loop)
        return
    if kind == "lock_wait":
        yield from _without_lock(row, loop)
        return
    yield from _whole_batches(row, kind, loop)
    if kind == "gil":
        yield from _processes(row, loop)
        return
    more = _best(row, loop, lambda change: (change.workers or 0) > now, "workers")
    if more is not None:
        wanted = more.changes[0].workers
        not_when = {"code": "cores_busy"} if kind == "cpu" else {"code": "fewer_cpus", "cpus": wanted}
        yield from _predicted(row, more, loop, not_when)
    elif now >= loop.cpu_count:
        yield _of(
            "most_workers_compute" if kind == "cpu" else "most_workers_wait", row, {"cpus": loop.cpu_count},
            parameter="num_parallel_workers", old=now, new=now, place=row.code,
        )  # fmt: skip
    if kind == "cpu" and row.is_python and not row.uses_processes:
        yield from _processes(row, loop)


def _together(row: JudgedStage, loop: Loop) -> Iterator[Suggestion]:
    """More workers for all operators that are as slow as this one, none of which holds the lock or stalls."""
    stages = {stage.op_id: stage for stage in loop.stages}
    for one in together(loop):
        kinds = {stages[change.op_id].kind for change in one.changes}
        mine = next((change for change in one.changes if change.op_id == row.op_id), None)
        if mine is None or not one.may_pay or not kinds.isdisjoint(("gil", "burst", "lock_wait")):
            continue
        changes = [
            {"op": operator(stage), "old": stage.workers, "new": change.workers,
             "stays_threads": _stays_threads(stage, change.workers or stage.workers)}
            for change in one.changes
            for stage in (stages[change.op_id],)
        ]  # fmt: skip
        yield _of(
            "workers_together", row, {"changes": changes, "prediction": _stated(one.prediction)},
            parameter="num_parallel_workers", old=row.workers, new=mine.workers, place=row.site,
            not_when={"code": "cores_busy"} if "cpu" in kinds else None, **_gains(one.prediction),
        )  # fmt: skip


def _whole_batches(row: JudgedStage, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    """A Python map of many short rows: most of its time is the call, which batches need once."""
    rows, row_ns = row.rows_per_batch, row.row_ns
    calls = kind in ("cpu", "gil", "lock_wait") and row.is_python and row.op_type == "MapOp"
    if calls and rows is not None and rows >= MANY_ROWS and row_ns is not None and row_ns < SHORT_ROW_NS:
        gained = whole_batches(loop, row.op_id)
        facts = {"rows": rows, "row_ns": row_ns, "prediction": _stated(gained)}
        yield _of(
            "whole_batches", row, facts, place=row.site, not_when={"code": "rows_differ"}, basis=gained.basis,
            **_gains(gained),
        )  # fmt: skip


def _without_lock(row: JudgedStage, loop: Loop) -> Iterator[Suggestion]:
    """A stage that waits for the interpreter's lock: once for a batch, or never. More threads wait with it."""
    yield from _whole_batches(row, "lock_wait", loop)
    if row.op_type == "MapOp":
        gained = in_cpp(loop, row.op_id)
        facts = {"prediction": _stated(gained)}
        yield _of("to_cpp", row, facts, place=row.code, basis=gained.basis, **_gains(gained))
    else:
        yield _of("cheaper_rows", row, place=row.code)


def _processes(row: JudgedStage, loop: Loop) -> Iterator[Suggestion]:
    """Worker processes for Python that computes. A source hands rows out in polls then, so it must be seen to gain."""
    for one in _in_processes(row, loop):
        yield _moved("to_processes", row, loop, one, {"code": "rows_are_large_or_threads"})


def _in_processes(row: JudgedStage, loop: Loop) -> Iterator[Candidate]:
    """Worker processes for the operator's Python, two or more where there are CPUs for them, if that may pay."""
    if row.uses_processes or not row.is_python:
        return
    both = ("workers", "processes") if row.workers == 1 and loop.cpu_count > 1 else ("processes",)
    one = _best(row, loop, lambda change: bool(change.processes), *both)
    if one is not None and one.may_pay:
        yield one


def _moved(code: str, row: JudgedStage, loop: Loop, one: Candidate, not_when: Mapping[str, Any]) -> Suggestion:
    workers = one.changes[0].workers or row.workers
    return _of(
        code, row, {"new_workers": workers, "prediction": _stated(one.prediction)}, parameter="python_multiprocessing",
        old=False, new=True, basis=one.prediction.basis, place=row.site, not_when=not_when,
        verify=_verify(row, loop, one, f"--workers {workers} --processes"), **_gains(one.prediction),
    )  # fmt: skip


def _shortest(row: JudgedStage, row_ms: float) -> dict[str, Any]:
    """Below which time of a row more workers bring nothing, how long one takes now, and whether that is near."""
    now_ns = row.row_ns
    if now_ns is None and row.workers == 1 and row.work_ns and row.rows_per_batch:
        now_ns = row.work_ns / row.rows_per_batch
    now_ms = None if now_ns is None else now_ns / 1e6
    return {
        "code": "rows_are_short",
        "row_ms": row_ms,
        "now_ms": now_ms,
        "near": now_ms is None or now_ms < NEAR * row_ms,
    }


def _loader(row: JudgedStage, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    """More worker processes for all chained stages, which may live on from epoch to epoch; then a cheaper stage.

    No worker runs the stage that orders the rows: only a cheaper one helps there.
    """
    now = loop.loader_workers
    more = _best(row, loop, lambda change: (change.workers or 0) > now, "workers")
    both = _best(row, loop, lambda change: (change.workers or 0) > now, "workers", "persistent")
    if more is not None and both is not None and both.expected >= WORTH * more.expected:
        more = both
    runs_in_workers = row.op_type != ORDER
    if more is not None and runs_in_workers and more.may_pay and not (kind == "cpu" and loop.has_no_core):
        wanted = more.changes[0].workers
        not_when = {"code": "cores_busy"} if kind == "cpu" else {"code": "fewer_cpus", "cpus": wanted}
        yield _of_loader("loader_workers", row, more, loop, not_when)
    yield from _lasting(row, loop)
    yield _of("cheaper_waits" if kind == "wait" else "cheaper_rows", row, place=row.code)


def _lasting(row: JudgedStage, loop: Loop) -> Iterator[Suggestion]:
    """Workers of the loader that live on, where starting them at each epoch weighs."""
    one = _best(row, loop, lambda _: True, "persistent")
    if one is not None and one.may_pay:
        yield _of_loader("loader_persistent", row, one, loop, None)


def _of_loader(
    code: str, row: JudgedStage, one: Candidate, loop: Loop, not_when: Mapping[str, Any] | None
) -> Suggestion:
    """Other settings of the loader whose stage the row is."""
    change, now = one.changes[0], loop.loader_workers
    facts = {"new_workers": change.workers or now, "persistent": change.persistent, "restart_ns": loop.restart_ns,
             "batches": loop.epoch_batches, "prediction": _stated(one.prediction)}  # fmt: skip
    words = (f"--workers {change.workers}" if change.workers else "", "--persistent" if change.persistent else "")
    parameter, old, new = (
        ("num_workers", now, change.workers) if change.workers else ("persistent_workers", False, True)
    )
    return _of(
        code, row, facts, parameter=parameter, old=old, new=new, basis=one.prediction.basis, place=row.site,
        not_when=not_when, verify=_verify(row, loop, one, " ".join(filter(None, words))), **_gains(one.prediction),
    )  # fmt: skip


def _source(row: JudgedStage, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    now = row.workers
    if kind == "burst" and not row.wrapped:
        yield from _stalling(row, loop)
        return
    if row.wrapped:
        gained = unwrapped(loop, row.op_id)
        facts = {"prediction": _stated(gained)}
        yield _of("unwrap_source", row, facts, place=row.site, basis=gained.basis, **_gains(gained))
        return
    if row.iterated:
        yield from _by_number(row, kind, loop)
        return
    other = _best(row, loop, lambda change: change.workers != now, "workers")
    wanted = None if other is None or not other.may_pay else other.changes[0].workers
    if other is not None and wanted is not None and wanted < now:
        rows_s = 1e9 / row.law_row_ns if row.law_row_ns else THREAD_ROWS_S * now
        yield from _predicted(row, other, loop, None, why={"code": "polls", "rows_per_second": rows_s})
    elif kind == "gil":
        yield _of("source_holds_lock", row, place=row.code, not_when={"code": "threads_never_help"})
    elif other is not None and wanted is not None and (kind != "cpu" or other.prediction.ratio is not None):
        polls = poll_row_ns(wanted, processes=bool(row.uses_processes), prefetch=row.capacity or PREFETCH)
        yield from _predicted(row, other, loop, _shortest(row, polls / 1e6))
    if kind in ("cpu", "gil"):
        yield from _processes(row, loop)
    more = now > 1 or (wanted is not None and wanted > now)
    would_poll = None if more else {"code": "source_would_poll", "rows_per_second": THREAD_ROWS_S}
    yield _of("cheaper_reading", row, {"kind": kind}, place=row.code, not_when=would_poll)


def by_number(loop: Loop, op_id: int) -> tuple[int, Prediction]:
    """Workers of a source that is iterated if it had `__getitem__`, and what they would bring; 1 for nothing to gain.

    MindSpore takes the rows of others one after the other. Predicted as for a source whose rows take as long. Workers
    in threads do not help one that holds the lock or stalls now and then.
    """
    numbered = replace(loop, stages=tuple(replace(one, iterated=False) for one in loop.stages))
    in_vain = any(one.op_id == op_id and (one.wrapped or one.kind in ("gil", "burst")) for one in loop.stages)
    wanted = 1 if in_vain else enough_workers(numbered, op_id) or 1
    prediction = predict(numbered, Change(op_id, workers=wanted))
    return (wanted if (prediction.ratio or prediction.high or WORTH) >= WORTH else 1), prediction


def _by_number(row: JudgedStage, kind: str | None, loop: Loop) -> Iterator[Suggestion]:
    """A source that is iterated: what `__getitem__` would allow, and cheaper rows."""
    wanted, prediction = by_number(loop, row.op_id)
    if wanted > 1:
        polls = poll_row_ns(wanted, processes=False)
        yield _of(
            "rows_by_number", row, {"new_workers": wanted, "prediction": _stated(prediction)}, place=row.code,
            basis=prediction.basis, not_when=_shortest(row, polls / 1e6), **_gains(prediction),
        )  # fmt: skip
    yield _of("cheaper_reading", row, {"kind": kind}, place=row.code)


def _stalling(row: JudgedStage, loop: Loop) -> Iterator[Suggestion]:
    """A queue that outlasts the stalls; else processes of which each stalls on its own, and rarer stalls."""
    queue = _deeper(row, loop)
    if queue.code != "deeper_queue":
        for one in _in_processes(row, loop):
            if (one.changes[0].workers or row.workers) > 1:
                yield _moved("stalls_apart", row, loop, one, {"code": "stalls_come_with_rows"})
    yield queue


def _deeper(row: JudgedStage, loop: Loop) -> Suggestion:
    """Bursts: a queue that holds what is taken during the longest stall, if the stage is fast enough on average."""
    stage = next(stage for stage in loop.stages if stage.op_id == row.op_id)
    depth, why = outlasting(stage, loop.consumer)
    deeper = Change(row.op_id, prefetch=depth)
    prediction = predict(loop, deeper)
    if depth is None or not Candidate("", (deeper,), prediction=prediction).may_pay:
        return _of("rarer_stalls", row, {"why": why}, place=row.code)
    facts = {"depth": depth, "stall_ns": row.max_row_ns, "prediction": _stated(prediction)}
    return _of(
        "deeper_queue", row, facts if prediction.trial else {**facts, "prediction": None}, parameter="prefetch_size",
        old=row.capacity, new=depth, place=row.site, not_when={"code": "memory_short"},
        verify=_verify(row, loop, Candidate("", (deeper,), prediction=prediction), f"--prefetch {depth}"),
        **_gains(prediction),
    )  # fmt: skip


def _best(row: JudgedStage, loop: Loop, fits: Callable[[Change], bool], *names: str) -> Candidate | None:
    """Of the changes of exactly these settings of the operator, of those that fit, the most promising one."""
    return next(
        (
            one
            for one in options(loop, row.op_id)
            if settings_of(one) == {*names} and not one.is_unknown and fits(one.changes[0])
        ),
        None,
    )


def _predicted(
    row: JudgedStage,
    one: Candidate,
    loop: Loop,
    not_when: Mapping[str, Any] | None,
    why: Mapping[str, Any] | None = None,
) -> Iterator[Suggestion]:
    """Another number of workers, unless it is predicted to bring nothing."""
    if not one.may_pay:
        return
    wanted, prediction = one.changes[0].workers or row.workers, one.prediction
    threads = _stays_threads(row, wanted)
    yield _of(
        "workers", row,
        {"new_workers": wanted, "why": why, "prediction": _stated(prediction), "stays_threads": threads},
        parameter="num_parallel_workers", old=row.workers, new=wanted, basis=prediction.basis, not_when=not_when,
        place=row.site, verify=_verify(row, loop, one, f"--workers {wanted}"), **_gains(prediction),
    )  # fmt: skip


def _stays_threads(stage: Stage | JudgedStage, workers: int) -> bool:
    """Of a GeneratorDataset with several workers MindSpore's own default is processes; predictions are of threads."""
    return stage.op_type == SOURCE and workers > 1 and not stage.uses_processes


def _gains(prediction: Prediction) -> dict[str, Any]:
    return {
        "gain": prediction.ratio, "gain_low": prediction.low, "gain_high": prediction.high,
        "then": prediction.limited_by, "trial": prediction.trial,
    }  # fmt: skip


def _stated(prediction: Prediction) -> dict[str, Any]:
    """Facts of the gain, or why there is none."""
    return {name: getattr(prediction, name) for name in ("ratio", "low", "high", "reason", "trial")}


def _fewer(row: JudgedStage, loop: Loop) -> Suggestion | None:
    """Workers that are not needed: 1.3 times what the loop takes is enough."""
    if row.op_type not in SCALING or not row.work_ns or not loop.rate or row.workers < 2:
        return None
    enough = math.ceil(loop.rate * row.work_ns / 1e9 * 1.3)
    if enough >= row.workers:
        return None
    new = max(1, enough)
    facts = {"new_workers": new, "why": {"code": "cpu_short"}, "prediction": None}
    return _of(
        "workers", row, facts, parameter="num_parallel_workers", old=row.workers, new=new, place=row.site,
        not_when={"code": "faster_soon"},
    )  # fmt: skip


def _verify(row: JudgedStage | CachePoint, loop: Loop, one: Candidate, options: str) -> str | None:
    """The command that tries it; the operator stands in it by its name where that is one word and its alone.

    None for what was measured before.
    """
    if one.prediction.trial:
        return None
    name = row.name or ""
    alone = sum(stage.name == name for stage in loop.stages) == 1
    op = name if alone and name.isidentifier() and name.isascii() else row.op_id
    return f"pipeprof whatif RUN --op {op} {options}"
