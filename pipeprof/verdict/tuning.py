"""What `tune` tries: candidates with what they should bring, in the order in which they are tried. Pure.

A candidate is not meant to change which rows the network gets: workers, worker processes and queues hand rows on in
their order, and the number of threads of NumPy and OpenCV is none of the pipeline's. Maps that come after their batch
may give something else. That batches stay the same is checked for all of them. Those that are known to change the order
of the rows say so (`permutes`).

Candidates for MindSpore's own readers of files: more workers. Pure.

A reader that asks a sampler for row numbers (MindRecord, folders of pictures, CIFAR) hands rows on in their order with
any number of workers. One that reads files from their beginning (TFRecord, CSV, text) takes turns between the files
that its workers read: with another number of workers the same rows come in another order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pipeprof.verdict.candidate import KEEPS, SETTINGS, Candidate, Recorded, beside, cached, kept_rows, key_of
from pipeprof.verdict.capacity import (
    MANY_ROWS,
    SCALING,
    SHORT_ROW_NS,
    SOURCE,
    Change,
    Loop,
    Stage,
    is_polled,
    rate_now,
    rate_with,
)
from pipeprof.verdict.options import MOST_WORKERS, TIE, one_thread, options, order, size, together, whole_batches
from pipeprof.verdict.predict import MARGIN, Prediction, predict
from pipeprof.verdict.workers import enough_workers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


Goal = Literal["time", "memory", "cores"]

SHALLOW = 2  # the queue that is tried where memory is to be saved, or a source is polled
CONSUMER_TIE = 1.02  # a loop whose own speed is within this of the pipeline's is limited by itself


def candidates(
    loop: Loop, environment: Mapping[str, str], goal: Goal = "time", recorded: Recorded | None = None
) -> list[Candidate]:
    """Everything that could be tried on the loop, the most promising first; of equals the smaller change.

    `environment`: the variables that the training has; those that somebody set are left alone.
    """
    recorded = recorded or Recorded()
    possible = _faster(loop, environment, recorded) if goal == "time" else _cheaper(loop, environment, goal)
    made = recorded.changeable  # MindSpore puts operators of its own into a pipeline: the script cannot set those
    possible = [one for one in possible if made is None or all(change.op_id in made for change in one.changes)]
    distinct: dict[str, Candidate] = {}
    by_file = {stage.op_id for stage in loop.stages if stage.op_type in BY_FILE}
    is_joined = any(stage.op_type == "ZipOp" for stage in loop.stages)  # rows of another order stand beside other rows
    for one in (_as_written(one, recorded.together, by_file) for one in possible):
        if not (one.permutes and is_joined):
            distinct.setdefault(one.key, one)
    return list(distinct.values())


def _as_written(
    one: Candidate, together: Mapping[tuple[int, str], frozenset[int]], by_file: Collection[int]
) -> Candidate:
    """The candidate with all operators that the arguments set which would be written: the script cannot do less.

    `by_file`: readers that hand out another order with another number of workers.
    """
    changes = {change.op_id: change for change in one.changes}
    for change in one.changes:
        for name in SETTINGS:
            value = getattr(change, name)
            for op_id in together.get((change.op_id, name), ()) if value is not None else ():
                other = changes.get(op_id, Change(op_id))
                changes[op_id] = replace(other, **{name: max(value, getattr(other, name) or value)})
    ordered = tuple(changes[op_id] for op_id in sorted(changes))
    if {*ordered} == {*one.changes}:
        return one
    permutes = one.permutes or any(change.workers and change.op_id in by_file for change in ordered)
    return replace(one, key="+".join(map(key_of, ordered)), changes=ordered, permutes=permutes)


def _faster(loop: Loop, environment: Mapping[str, str], recorded: Recorded) -> list[Candidate]:
    possible = [one for stage in _changeable(loop) for one in options(loop, stage.op_id)]
    possible += together(loop)
    possible += _shallow(loop)
    possible += more_readers(loop, recorded.readers)
    possible += [one for stage in loop.stages for one in _reordered(stage, loop)]
    possible += [cached(point, loop) for point in kept_rows(recorded.caches)]
    possible += beside(loop, recorded)
    if not limits_itself(loop) and (loop.has_no_core or loop.is_contended):
        possible += one_thread(environment)
    possible = [one for one in possible if not (one.is_unknown and limits_itself(loop, recorded.readers))]
    return _once(sorted(possible, key=order))


def _changeable(loop: Loop) -> list[Stage]:
    """The operators, and of a DataLoader the stage nearest to the loop, which stands for it."""
    return [one for one in loop.stages if not one.chained] + [one for one in loop.stages if one.chained][:1]


def _cheaper(loop: Loop, environment: Mapping[str, str], goal: Goal) -> list[Candidate]:
    """What the training may not need: worker processes, workers, deep queues (memory), threads (cores)."""
    fewer = {stage: number for stage in _changeable(loop) if (number := _fewest(stage, loop)) is not None}
    saving = [Candidate(f"{stage.op_id}:workers={number}", (Change(stage.op_id, workers=number),),
                       prediction=predict(loop, Change(stage.op_id, workers=number)))
             for stage, number in fewer.items()]  # fmt: skip
    if len(fewer) > 1:
        changes = tuple(Change(stage.op_id, workers=number) for stage, number in fewer.items())
        saving.append(Candidate("+".join(map(key_of, changes)), changes, prediction=Prediction(1.0, KEEPS, 1 + MARGIN)))
    for stage in loop.stages:
        if stage.uses_processes and stage.op_type in (SOURCE, *SCALING):
            saving += [Candidate(key_of(change), (change,), prediction=predict(loop, change))
                      for change in (Change(stage.op_id, workers=fewer.get(stage), processes=False),)]  # fmt: skip
    first = next((one for one in loop.stages if not one.chained), None)
    if goal == "memory" and first is not None:
        saving += _shallower(first)
    saving += one_thread(environment) if goal == "cores" else []
    return sorted((replace(one, saves=True) for one in saving), key=_order_of_savings)


def _shallow(loop: Loop) -> list[Candidate]:
    """Shallow queues, where polls limit the threads of a source: while it waits to hand on a row, they make more.

    Not beside a source with worker processes, which keep no more rows than the queues have: they would be polled for
    each second row.
    """
    if any(stage.uses_processes and stage.op_type == SOURCE for stage in loop.stages):
        return []
    return [replace(one, prediction=predict(loop, *one.changes)) for stage in loop.stages if is_polled(stage)
            for one in _shallower(stage)]  # fmt: skip


def _shallower(stage: Stage) -> list[Candidate]:
    """Queues of two batches or rows for the whole pipeline, where they are deeper."""
    change = Change(stage.op_id, prefetch=SHALLOW)
    return [Candidate(key_of(change), (change,))] if stage.depth > SHALLOW else []


def _order_of_savings(one: Candidate) -> tuple[Any, ...]:
    """Processes first, for each has an interpreter of its own; then what gives most workers back."""
    processes = sum(change.processes is False for change in one.changes)
    return -processes, -len(one.changes), bool(one.environment), size(one)


def _fewest(stage: Stage, loop: Loop) -> int | None:
    """The smallest number of workers that keeps up with the loop as it is; None where it has no more than that."""
    if stage.chained:
        fewer = (number for number in range(1, loop.loader_workers))
        return next((one for one in fewer if _keeps_up(predict(loop, Change(stage.op_id, workers=one)))), None)
    if (stage.op_type != SOURCE and stage.op_type not in SCALING) or loop.rate is None:
        return None
    rates = ((rate_with(stage, number), number) for number in range(1, min(stage.workers, MOST_WORKERS)))
    return next((number for rate, number in rates if rate is not None and rate >= loop.rate), None)


def _keeps_up(prediction: Prediction) -> bool:
    return prediction.ratio is not None and prediction.ratio >= KEEPS


def _once(ranked: list[Candidate]) -> list[Candidate]:
    """The prefetch size holds for all operators: of the candidates that set nothing else the first of each size."""
    sizes: set[int | None] = set()
    distinct = []
    for one in ranked:
        first = one.changes[0] if one.changes else None
        if first is not None and first == Change(first.op_id, prefetch=first.prefetch):
            if first.prefetch in sizes:
                continue
            sizes.add(first.prefetch)
        distinct.append(one)
    return distinct


def worth_trying(ranked: list[Candidate], tried: Collection[str]) -> Iterator[Candidate]:
    """Of the candidates in their order those that may pay and were not tried."""
    return (one for one in ranked if one.may_pay and one.key not in tried)


def limits_itself(loop: Loop, readers: Collection[int] = ()) -> bool:
    """Whether the training waits for nothing: no operator of the pipeline is slower than the loop itself.

    Where it waits all the same, it is for a reader of files that was not timed, if there is one.
    """
    if loop.consumer is None or loop.is_contended:
        return False
    untimed = any(stage.rate is None and stage.op_id in readers for stage in loop.stages)
    if untimed and (loop.rate or loop.consumer) * TIE < loop.consumer:
        return False
    if any(stage.chained for stage in loop.stages):
        return (loop.rate or 0.0) * CONSUMER_TIE >= loop.consumer
    slowest = min((rate_now(loop, stage) for stage in loop.stages if stage.rate is not None), default=None)
    return slowest is not None and slowest * CONSUMER_TIE >= loop.consumer


def failed(prediction: Prediction, low: float, high: float) -> bool:
    """Whether what was measured (98 % interval) lies wholly outside what was predicted."""
    if prediction.low is None or prediction.high is None:
        return False
    return high < prediction.low or low > prediction.high


def _reordered(batch: Stage, loop: Loop) -> Iterator[Candidate]:
    """A batch in front of the maps that feed it, through shuffles, too: all of them, or the Python ones next to it."""
    if batch.op_type != "BatchOp" or batch.node is None or batch.is_python:  # it has a function of rows itself
        return
    nodes = {stage.node: stage for stage in loop.stages}
    maps: list[Stage] = []
    node = batch.node + 1
    # A shuffle hands on the same order whether maps come before it or after it: it moves in front of them, too.
    while (fed := nodes.get(node)) and fed.op_type in ("MapOp", "ShuffleOp") and fed.op_id > batch.op_id:
        maps += [fed] if fed.op_type == "MapOp" else []
        node += 1
    python = next((number for number, stage in enumerate(maps) if not stage.is_python), len(maps))
    for number in sorted({len(maps), python} - {0}):
        if any(_is_called_often(stage) for stage in maps[:number]):
            change = Change(batch.op_id, maps_after=number)
            waits = any(stage.kind == "lock_wait" for stage in maps[:number])
            prediction = whole_batches(loop, maps[number - 1].op_id) if waits else Prediction(None)
            yield Candidate(key_of(change), (change,), prediction=prediction)


def _is_called_often(stage: Stage) -> bool:
    """Whether calling a map's Python, row by row, is what it costs: no times tell, but it holds everything up."""
    short = stage.row_ns is not None and stage.row_ns < SHORT_ROW_NS
    return stage.is_python and not stage.uses_processes and short and (stage.rows or 0.0) >= MANY_ROWS


BY_FILE = frozenset(
    [
        "AGNewsOp", "AmazonReviewOp", "CLUEOp", "CSVOp", "ClueOp", "CoNLL2000Op", "CsvOp", "DBpediaOp", "EnWik9Op",
        "IWSLTOp", "Multi30kOp", "PennTreebankOp", "RandomDataOp", "SQuADOp", "SST2Op", "SogouNewsOp", "TFReaderOp",
        "TextFileOp", "UDPOSOp", "USPSOp", "WikiTextOp", "YahooAnswersOp", "YelpReviewOp",
    ]
)  # fmt: skip


def more_readers(loop: Loop, readers: Collection[int]) -> Iterator[Candidate]:
    """More workers for the readers among the stages: as many as are enough where that is known, twice as many, all."""
    for stage in loop.stages:
        if stage.op_id not in readers or stage.op_type == SOURCE:
            continue
        scaled = _as_map(loop, stage)
        most = min(loop.cpu_count, MOST_WORKERS)
        wanted = {enough_workers(scaled, stage.op_id) or 0, stage.workers + 1, 2 * stage.workers, most}
        for number in sorted(one for one in wanted if stage.workers < one <= most):
            change = Change(stage.op_id, workers=number)
            prediction = Prediction(None) if stage.rate is None else predict(scaled, change)
            yield Candidate(key_of(change), (change,), prediction=prediction, permutes=stage.op_type in BY_FILE)


def _as_map(loop: Loop, stage: Stage) -> Loop:
    """The loop with the reader as an operator whose rows come in proportion to its workers."""
    return replace(loop, stages=tuple(replace(one, op_type="MapOp") if one is stage else one for one in loop.stages))
