"""One thing that `tune` could try, what it should bring, and the candidates that no operator's speed tells of. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.verdict.capacity import SOURCE, Change, Loop, because
from pipeprof.verdict.predict import MARGIN, Prediction, tried
from pipeprof.verdict.storage import CACHE_BYTES, CachePoint, best_point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORTH = 1.02  # a smaller gain is not worth a trial, nor a setting
KEEPS = 0.98  # of its speed that a training has to keep by the prediction, where something is to be saved
LARGE_ROW = 256 << 10  # bytes that a process hands over with a row: from here on memory that is kept may pay
ROOM = 1.5  # times the mean row that has to fit into that memory
MIB = 1 << 20
# What changes of unknown effect are taken to bring, for their place in the order. In real tunings calls for whole
# batches brought most, longer queues and kept memory little, and what changes no operator (threads, cores) nothing.
USUAL = {"maps_after": 1.5, "workers": 1.2, "prefetch": 1.05, "max_rowsize": 1.03}
LEAST = 1.02
SETTINGS = ("workers", "prefetch", "processes", "maps_after", "cache", "max_rowsize", "persistent")


@dataclass(frozen=True)
class Recorded:
    """What a recording says beside the loop.

    `caches`: points of verdict/storage, the source first. `row_bytes`: of a row that an operator hands on, by op_id.
    `nodes`: the cores of each NUMA node that the training may use, as ranges and how many they are. `readers`: op_ids
    of MindSpore's own readers of files. `changeable`: of operators that the script makes; None: of all. `together`: by
    op_id and setting the op_ids, itself included, that one argument of the script sets.
    """

    caches: Sequence[CachePoint] = ()
    row_bytes: Mapping[int, float] = field(default_factory=dict)
    nodes: Sequence[tuple[str, int]] = ()
    readers: frozenset[int] = frozenset()
    changeable: frozenset[int] | None = None
    together: Mapping[tuple[int, str], frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """Changes that are tried together, and the speed that they should bring; `prediction` without a ratio: not known.

    `saves`: it is tried for what the training needs less, not for its speed. `runtime_threads`: of MindSpore's
    operators. `cpus`: the cores that the command is put on, as taskset writes them. `permutes`: it may hand out the
    rows in another order, so it is only tried when that was allowed.
    """

    key: str
    changes: tuple[Change, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prediction: Prediction = field(default_factory=lambda: Prediction(None))
    saves: bool = False
    runtime_threads: int | None = None
    cpus: str | None = None
    permutes: bool = False

    @property
    def expected(self) -> float:
        """The speed-up by which candidates are put in order: predicted, the middle of its interval, else usual."""
        predicted = self.prediction
        if predicted.ratio is not None:
            return predicted.ratio
        if predicted.low is None or predicted.high is None:
            changed = (USUAL[name] for one in self.changes for name in USUAL if getattr(one, name) is not None)
            return max(changed, default=LEAST)
        return math.sqrt(max(predicted.low, 1e-9) * max(predicted.high, 1e-9))

    @property
    def is_unknown(self) -> bool:
        """Whether nothing could be predicted, not even an interval."""
        return self.prediction.ratio is None and self.prediction.high is None

    @property
    def may_pay(self) -> bool:
        """Whether a gain that matters is predicted; without a number, whether its interval has one.

        Of what saves something: whether no loss is predicted.
        """
        least = KEEPS if self.saves else WORTH
        if self.prediction.ratio is not None:
            return self.prediction.ratio >= least
        return self.is_unknown or (self.prediction.high or 0.0) >= least


def key_of(change: Change, number: int | None = None) -> str:
    """The changes of one operator, as a candidate is known by; `number` of the operator, None: its op_id."""
    parts = {name: getattr(change, name) for name in SETTINGS}
    return f"{change.op_id if number is None else number}:" + ",".join(
        f"{name}={value}" for name, value in parts.items() if value is not None
    )


def kept_rows(caches: Sequence[CachePoint]) -> list[CachePoint]:
    """Of the caches those that can be tried: behind a Python source and its maps, not known to be larger than allowed.

    None of them is nearer to the loop than the best: that would only take more from what may still change.
    """
    chain = list(itertools.takewhile(lambda one: one.op_type in (SOURCE, "MapOp"), caches))
    if not chain or chain[0].op_type != SOURCE:
        return []
    fitting = [one for one in chain if one.changes is None and (one.bytes or 0) <= CACHE_BYTES]
    best = best_point(fitting)
    return [] if best is None else [one for one in fitting if one.op_id >= best.op_id and one.ratio >= WORTH]


def cached(point: CachePoint, loop: Loop) -> Candidate:
    """Builds the candidate for a cache, with what was measured of it before, else with what is predicted."""
    change = Change(point.op_id, cache=CACHE_BYTES)
    ratio = point.ratio
    measured = tried(loop, change)
    if measured is not None:
        return Candidate(key_of(change), (change,), prediction=measured)
    prediction = Prediction(ratio, ratio * (1 - MARGIN), ratio * (1 + MARGIN))
    if point.untimed:
        prediction = Prediction(None, 1.0, prediction.high, reason=because("others_may_limit"))
    return Candidate(key_of(change), (change,), prediction=prediction)


def beside(loop: Loop, recorded: Recorded) -> Iterator[Candidate]:
    """What nothing predicts: memory that worker processes keep for large rows, MindSpore's threads, one NUMA node."""
    for stage in loop.stages:
        size = recorded.row_bytes.get(stage.op_id, 0.0)
        # Not of a batch: what a script says there, MindSpore multiplies by the size of the batch.
        if stage.uses_processes and not stage.chained and stage.op_type != "BatchOp" and size >= LARGE_ROW:
            change = Change(stage.op_id, max_rowsize=math.ceil(ROOM * size / MIB))
            yield Candidate(key_of(change), (change,))
    if loop.has_no_core or loop.is_contended:
        number = max(1, int(loop.room) // 2)
        yield Candidate(f"runtime_threads={number}", runtime_threads=number)
    fitting = [cpus for cpus, cores in recorded.nodes if (loop.process_cores or math.inf) * loop.sharing <= cores]
    if len(recorded.nodes) > 1 and fitting:
        yield Candidate(f"cpus={fitting[0]}", cpus=fitting[0])
