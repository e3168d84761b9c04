"""The label of a pipeline, from its construction alone: capacities, the stage with the lowest, and what limits it.

The load of a stage is the time it needs for one batch with all its workers; the largest load decides. Python that
computes in the training process shares one interpreter, so its loads add up to one more load. A generator with two or
more workers runs into MindSpore's poll law as soon as it is the slowest anyway (see PROVENANCE.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from pipelines import PYTHON_SOURCES, Branch, Map, Pipeline, Source, Work

CONSUMER = "consumer"
FILTER = "filter"
TIE = 1.15
BISTABLE = (0.25, 1.5)  # load of a polled source over the others': whether its queues run empty is a matter of chance
CORES = 2
SATURATED = 0.9  # of all cores
DOMINANT = 0.7  # of the time: the stretch of a concatenation that is labelled
POLL_MS, POLL_ROWS = 100, 16
SLEEP_OVERHEAD_MS = 0.07
OP_TYPES = {
    "generator": "GeneratorOp",
    "random": "GeneratorOp",
    "slices": "GeneratorOp",
    "text": "TextFileOp",
    "folder": "ImageFolderOp",
    "mindrecord": "MindRecordOp",
}
# ms of one worker per row, beside the declared work: measured with MindSpore 2.10 on the machine of PROVENANCE.md
OVERHEAD_MS = {"generator": 0.04, "random": 0.06, "slices": 0.05, "text": 0.01, "folder": 0.1, "mindrecord": 0.03}
MAP_OVERHEAD_MS, PROCESS_OVERHEAD_MS = 0.05, 0.25
# A model that computes on all cores is slowed by what else computes: `pipeprof headspace`, 3 pairs each, makes the first
# one x1.74 (1.46 to 2.08), the second one x1.20 (1.12 to 1.34). A loop of NumPy beside processes or Python is as well:
# x3.66 (3.59 to 3.73; 2 pairs), x1.21 (1.15 to 1.31; 4), x1.14 (1.00 to 1.15; 6)
MEASURED = {
    "loop_model": "tiny", "loop_model_wide": "tiny",
    "drawn_20261121_00": "source", "drawn_20261122_04": "one", "drawn_20261121_27": "two",
}  # fmt: skip
FILTER_MS = 0.075  # per row that arrives: the predicate is Python


@dataclass(frozen=True)
class Load:
    """What a stage needs for one batch, ms: of time with all its workers, of the interpreter, of all cores."""

    stage: str
    op_type: str
    op_name: str | None
    ms: float
    py_ms: float = 0.0
    cpu_ms: float = 0.0
    kinds: tuple[str, ...] = ()
    branch: int | None = None
    polled_ms: float = 0.0


@dataclass(frozen=True)
class Label:
    """The right answer. `accepted` are all stages that count as right, `kinds` all kinds; the first one is meant."""

    bottleneck: str
    kind: str | None
    accepted: tuple[str, ...]
    kinds: tuple[str, ...]
    batch_ms: float
    margin: float
    cpu: float  # share of all cores

    @property
    def saturated(self) -> bool:
        """Whether nearly all cores are needed, so that whoever computes is slower than designed."""
        return self.cpu > SATURATED


def label(pipeline: Pipeline) -> Label:
    """The label of a pipeline. Concatenated branches are judged one after the other; the longest stretch decides.

    Where an intervention said something else than the construction, both are accepted.
    """
    found = _built(pipeline)
    measured = MEASURED.get(pipeline.name)
    return replace(found, accepted=(*found.accepted, measured), kinds=(*found.kinds, "cpu")) if measured else found


def _built(pipeline: Pipeline) -> Label:
    found = loads(pipeline)
    if pipeline.join != "concat":
        return _judge(found)
    total = sum(branch.share for branch in pipeline.branches)
    judged = []
    for number, branch in enumerate(pipeline.branches):
        active = [load for load in found if load.branch in (None, number)]
        one = _judge(active)
        judged.append((one.batch_ms * branch.share / total, one))
    time, longest = max(judged, key=lambda pair: pair[0])
    batch_ms = sum(ms for ms, _ in judged)
    same = sum(ms for ms, one in judged if one.bottleneck == longest.bottleneck)
    if max(time, same) < DOMINANT * batch_ms:
        raise ValueError(f"{pipeline.name}: no branch is dominant")
    return Label(**{**vars(longest), "batch_ms": batch_ms})


def loads(pipeline: Pipeline) -> list[Load]:
    """The load of every stage, the consumer last."""
    size = pipeline.batch.size
    found = []
    for number, branch in enumerate(pipeline.branches):
        found += _branch(branch, number, size * branch.keep, pipeline.prefetch)
    found += [_map(one, size, None) for one in pipeline.maps]
    batch = pipeline.batch
    each = _wall(batch.work) + 0.05 + 0.002 * size
    found.append(
        Load("batch", "BatchOp", batch.name if batch.work.how != "none" else None, each / batch.workers,
             _python(batch.work, inside=True), _cpu(batch.work), _kinds(batch.work, batch.workers, processes=False))
    )  # fmt: skip
    consumer = pipeline.consumer
    busy = 0.0 if consumer.form == "sleep" else 1.0
    extra = SLEEP_OVERHEAD_MS if consumer.form == "sleep" else 0.0
    found.append(Load(CONSUMER, CONSUMER, None, consumer.ms + extra, 0.0, busy * consumer.ms))
    return found


def _branch(branch: Branch, number: int, rows: int, prefetch: int) -> list[Load]:
    return [
        _source(branch.source, rows, number, prefetch),
        *(_map(one, rows, number) for one in branch.maps),
        *_filter(branch, rows, number),
    ]


def _filter(branch: Branch, rows: int, number: int) -> list[Load]:
    spent = FILTER_MS * rows
    return [Load(FILTER, "FilterOp", None, spent, spent, spent, ("cpu", "gil"), number)] if branch.keep > 1 else []


def _source(source: Source, rows: int, number: int, prefetch: int) -> Load:
    work, workers = source.work, source.workers
    each = (_wall(work) + OVERHEAD_MS[source.form]) / workers
    kinds = _kinds(work, workers, processes=source.processes)
    polled = source.form in PYTHON_SOURCES and workers > 1
    floor = poll_floor_ms(workers, prefetch, processes=source.processes) if polled else 0.0
    name = source.name if source.form in PYTHON_SOURCES else None
    inside = not (source.processes and workers > 1)
    return Load(
        source.name, OP_TYPES[source.form], name, each * rows, _python(work, inside=inside) * rows, _cpu(work) * rows,
        kinds, number, floor * rows,
    )  # fmt: skip


def poll_floor_ms(workers: int, prefetch: int, *, processes: bool) -> float:
    """Least time per row of a generator with several workers."""
    queue = max(2, min(prefetch, 4 * prefetch // workers)) if processes else POLL_ROWS
    return POLL_MS / (queue * workers)


def _map(one: Map, rows: int, number: int | None) -> Load:
    work = one.work
    extra = 0.0 if work.how == "vision" else PROCESS_OVERHEAD_MS if one.processes else MAP_OVERHEAD_MS
    name = None if work.how == "vision" else one.name
    kinds = _kinds(work, one.workers, processes=one.processes)
    return Load(
        one.name, "MapOp", name, (_wall(work) + extra) / one.workers * rows,
        _python(work, inside=not one.processes) * rows, _cpu(work) * rows, kinds, number,
    )  # fmt: skip


def _wall(work: Work) -> float:
    mean = work.ms + (work.stall_ms / work.every if work.every else 0.0)
    return mean + (SLEEP_OVERHEAD_MS if work.how == "sleep" else 0.0)


def _python(work: Work, *, inside: bool) -> float:
    return work.ms if work.how == "py" and inside else 0.0


def _cpu(work: Work) -> float:
    return work.ms if work.how in ("py", "np", "vision", "decode") else 0.0


def _kinds(work: Work, workers: int, *, processes: bool) -> tuple[str, ...]:
    if work.every and work.stall_ms / work.every > work.ms:
        return ("burst",)
    if work.how == "sleep":
        return ("wait",)
    if work.how == "py" and not processes:
        return ("cpu", "gil") if workers == 1 else ("gil",)
    return ("cpu",)


def _polled(found: list[Load]) -> list[Load]:
    """The loads with the poll law where it acts: on a source that is slower than everything else even without it."""
    done = []
    for load in found:
        others = max(other.ms for other in found if other is not load)
        if load.polled_ms <= max(others, load.ms / TIE):
            done.append(load)
            continue
        if BISTABLE[0] < load.ms / others < BISTABLE[1]:
            raise ValueError("whether the poll law acts is open")
        if load.ms < others:
            done.append(load)
            continue
        kinds = ("poll",) if load.polled_ms > TIE * load.ms else ("poll", *load.kinds)
        done.append(replace(load, ms=max(load.ms, load.polled_ms), kinds=kinds))
    return done


def _judge(found: list[Load]) -> Label:
    found = _polled(found)
    ranked = sorted(found, key=lambda load: -load.ms)
    interpreter = sum(load.py_ms for load in found)
    pythons = sorted((load for load in found if load.py_ms), key=lambda load: -load.py_ms)
    if pythons and interpreter > TIE * ranked[0].ms:
        top, batch_ms = pythons[0], interpreter
        accepted = tuple(load.stage for load in pythons if load.py_ms > top.py_ms / TIE)
        kinds: tuple[str, ...] = ("gil",)
        rest = max((load.ms for load in found if load.stage not in accepted), default=0.0)
        margin = min(batch_ms / rest, _ratio([load.py_ms for load in pythons]))
    else:
        top, batch_ms = ranked[0], max(ranked[0].ms, interpreter)
        accepted = tuple(load.stage for load in ranked if load.ms > top.ms / TIE)
        kinds = top.kinds
        margin = _ratio([load.ms for load in ranked])
    others = chain.from_iterable(load.kinds for load in found if load.stage in accepted[1:])
    cpu = sum(load.cpu_ms for load in found) / (CORES * batch_ms)
    kinds = tuple(dict.fromkeys([*kinds, *others]))
    kind = kinds[0] if top.stage != CONSUMER else None
    return Label(top.stage, kind, accepted, kinds, batch_ms, margin, cpu)


def _ratio(values: list[float]) -> float:
    return values[0] / values[1] if len(values) > 1 and values[1] > 0 else 99.0
