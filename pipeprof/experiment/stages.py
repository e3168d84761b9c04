"""A run's training pipeline as the prediction wants it: which operators there are, and what was measured of each."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError, did_you_mean, near_names
from pipeprof.query.rows import JudgedStage, typed
from pipeprof.verdict import loop as measured
from pipeprof.verdict.capacity import Trial
from pipeprof.verdict.decision import with_kinds
from pipeprof.verdict.storage import storage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.engine import Engine
    from pipeprof.query.rows import StorageUse
    from pipeprof.record.run import Run
    from pipeprof.verdict.capacity import Loop
    from pipeprof.verdict.storage import CachePoint

CLEARLY_LONGER = 1.2  # times the wait of the lowest rank; ranks that are alike differ by less


@dataclass(frozen=True)
class Pipeline:
    """A training pipeline.

    `ops` are its rows of queue/tree with their `node`, `load` those of diagnose/load.
    """

    key: str
    site: str | None
    ops: tuple[Mapping[str, Any], ...]
    load: tuple[JudgedStage, ...] = ()


def training_pipelines(engine: Engine) -> list[Pipeline]:
    """Pipelines that fed training steps on the rank that holds the others up, the longest waited for first."""
    waited = [row for row in engine.rows("queue/pipelines") if row["role"] == "train"]
    first = _latest(waited)
    waited = [row for row in waited if (row["rep"], row["rank"]) == first]
    tree, load = (
        [row for row in engine.rows(name) if (row["rep"], row["rank"]) == first]
        for name in ("queue/tree", "diagnose/load")
    )
    stages = typed(JudgedStage, with_kinds(load))
    pipelines = []
    for row in sorted(waited, key=lambda row: (-row["wait_ns"], row["pipeline_key"])):
        key = row["pipeline_key"]
        mine = tuple(stage for stage in stages if stage.pipeline_key == key)
        nodes = {stage.op_id: stage.node for stage in mine}
        ops = tuple(op | {"node": nodes.get(op["op_id"])} for op in tree if op["pipeline_key"] == key)
        pipelines.append(Pipeline(key, row["site"], ops, mine))
    return pipelines


def _latest(waited: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Repetition and rank whose pipelines are looked at: the lowest, unless another waits clearly longer for its own.

    Ranks wait for each other, so the others wait for the one that waits longest for its data.
    """
    first = min(((row["rep"], row["rank"]) for row in waited), default=(0, 0))
    wait_ns: Counter[tuple[int, int]] = Counter()
    for row in waited:
        if row["rep"] == first[0]:
            wait_ns[row["rep"], row["rank"]] += row["wait_ns"]
    longest = max(wait_ns, key=lambda key: (wait_ns[key], -key[1]), default=first)
    return longest if wait_ns[longest] > CLEARLY_LONGER * wait_ns[first] else first


def described_pipelines(run: Run) -> list[Pipeline]:
    """Training pipelines of the lowest rank with their operators alone, sampled or not; most batches first."""
    from pipeprof.record import store  # noqa: PLC0415 - its library starts threads

    made = [row for row in store.read(run, "pipeline").to_pylist() if row["role"] == "train"]
    first = min(((row["rep"], row["rank"]) for row in made), default=(0, 0))
    batches = Counter(
        row["pipeline_id"] for row in store.read(run, "fetch").to_pylist() if (row["rep"], row["rank"]) == first
    )
    ops = [row for row in store.read(run, "pipeline_op").to_pylist() if (row["rep"], row["rank"]) == first]
    pipelines: dict[str, Pipeline] = {}
    made = [row for row in made if (row["rep"], row["rank"]) == first]
    for row in sorted(made, key=lambda row: (-batches[row["pipeline_id"]], row["pipeline_id"])):
        mine = tuple(op for op in ops if op["pipeline_id"] == row["pipeline_id"])
        pipelines.setdefault(row["pipeline_key"], Pipeline(row["pipeline_key"], row["site"], mine))
    return list(pipelines.values())


def loop_of(pipeline: Pipeline, trials: Sequence[Mapping[str, Any]] = ()) -> Loop:
    """What was measured, as the prediction takes it. The only place that knows where the figures come from.

    `trials`: of record/trials, what was measured of changes before.
    """
    return measured.loop_of(pipeline.load, float(os.cpu_count() or 1), [Trial(**one) for one in trials])


def uses_of(pipeline: Pipeline, uses: Sequence[StorageUse]) -> list[StorageUse]:
    """Those of the pipeline."""
    place = {(stage.rep, stage.rank, stage.pipeline_key) for stage in pipeline.load[:1]}
    return [use for use in uses if (use.rep, use.rank, use.pipeline_key) in place]


def storage_advice(
    pipeline: Pipeline, own: Sequence[StorageUse], loop: Loop
) -> tuple[list[dict[str, Any]], list[CachePoint]]:
    """What storage costs the pipeline, and the caches behind its operators, with what was measured of them before."""
    advice = storage_of(pipeline.load, own, float(os.cpu_count() or 1), loop.trials)
    return advice, [point for one in advice for point in one["points"]]


def find_op(pipelines: Sequence[Pipeline], text: str) -> tuple[Pipeline, Mapping[str, Any]]:
    """The operator that is meant by an op_id, a name, or a type that occurs once.

    Raises UsageError, with near names, when there is none or more than one.
    """
    for pipeline in pipelines:
        matching = _matching(pipeline.ops, text)
        if len(matching) == 1:
            return pipeline, matching[0]
        if matching:
            listed = ", ".join(f"{op['op_id']} ({op['name'] or op['op_type']})" for op in matching)
            raise UsageError(f"`{text}` names {len(matching)} operators: {listed}", "give the number with --op")
    ops = [op for pipeline in pipelines for op in pipeline.ops]
    names = [str(op[part]) for op in ops for part in ("name", "op_type") if op[part]]
    listed = ", ".join(f"{op['op_id']} ({op['name'] or op['op_type']})" for op in ops)
    near = near_names(text, names)
    hint = did_you_mean(text, names) if near else f"choose from {listed}"
    raise UsageError(f"the training pipeline has no operator `{text}`", hint)


def _matching(ops: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    wanted = text.lower()
    matches = (
        [op for op in ops if str(op["op_id"]) == text],
        [op for op in ops if op["name"] == text],
        [op for op in ops if (op["name"] or "").lower().rpartition(".")[2] == wanted],
        [op for op in ops if op["op_type"].lower() in (wanted, wanted + "op")],
    )
    return next((matching for matching in matches if matching), [])
