"""A run's training pipeline as the prediction wants it: which operators there are, and what was measured of each."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.verdict.capacity import CHEAP, SOURCE, Kind, Loop, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.engine import Engine

GIL_CORES = 0.85
WAITS, COMPUTES = 0.3, 0.7  # share of its working time that an operator computes

# Time of a worker per row and rows per batch, from MindSpore's own lines where it printed any.
_SERVICE = """
SELECT op_service.op_id, source,
  sum(avg_ns * rows) / nullif(sum(rows), 0) AS row_ns,
  sum(rows) / nullif(sum(coalesce(batches, 1)), 0) AS rows_per_batch
FROM op_service INNER JOIN pipeline
  ON op_service.rep = pipeline.rep AND op_service.rank = pipeline.rank
  AND op_service.pipeline_id = pipeline.pipeline_id
WHERE pipeline.pipeline_key = '{key}' AND op_service.rank = {rank}
GROUP BY op_service.op_id, source ORDER BY op_service.op_id, source
"""
_NODES = """
SELECT DISTINCT op_id, node, pipeline.site AS site
FROM pipeline_op INNER JOIN pipeline
  ON pipeline_op.rep = pipeline.rep AND pipeline_op.rank = pipeline.rank
  AND pipeline_op.pipeline_id = pipeline.pipeline_id
WHERE pipeline.pipeline_key = '{key}' AND pipeline_op.rank = {rank}
ORDER BY op_id, node
"""

# The host while the training was in its steps: before and after, other things keep it busy.
_MACHINE = """
WITH inside AS (
  SELECT cpu.* FROM cpu
  WHERE rep = 0 AND rank = {rank}
    AND t_ns >= (SELECT min(start_ns) FROM step WHERE rep = 0 AND rank = {rank} AND kind = 'train')
    AND t_ns <= (SELECT max(end_ns) FROM step WHERE rep = 0 AND rank = {rank} AND kind = 'train') + 1000000000
)
SELECT
  avg(idle_ratio) FILTER (WHERE scope = 'host') AS idle,
  sum(user_ratio + sys_ratio) FILTER (WHERE scope = 'process') AS cores,
  count(DISTINCT t_ns) FILTER (WHERE scope = 'process') AS samples
FROM inside
"""


@dataclass(frozen=True)
class Pipeline:
    """The training pipeline: rows of queue/tree with `node` and `site`, by op_id."""

    key: str
    rank: int
    site: str | None
    ops: tuple[Mapping[str, Any], ...]


def training_pipelines(engine: Engine) -> list[Pipeline]:
    """Pipelines that fed training steps on the lowest rank, the one that the loop waited for longest first."""
    waited = [row for row in engine.rows("queue/pipelines") if row["role"] == "train"]
    rank = min((row["rank"] for row in waited), default=0)
    waited = [row for row in waited if row["rank"] == rank and row["rep"] == 0]
    tree = [row for row in engine.rows("queue/tree") if row["rank"] == rank and row["rep"] == 0]
    found = []
    for row in sorted(waited, key=lambda row: (-row["wait_ns"], row["pipeline_key"])):
        key = row["pipeline_key"]
        numbers = engine.sql(_NODES.format(key=key, rank=rank)).to_pylist()
        nodes = {item["op_id"]: item["node"] for item in numbers}
        site = next((item["site"] for item in numbers), None)
        ops = tuple(op | {"node": nodes.get(op["op_id"])} for op in tree if op["pipeline_key"] == key)
        found.append(Pipeline(key, rank, site, ops))
    return found


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
    known = [op for pipeline in pipelines for op in pipeline.ops]
    names = [str(op[part]) for op in known for part in ("name", "op_type") if op[part]]
    near = difflib.get_close_matches(text, names, n=3, cutoff=0.5) or [
        f"{op['op_id']} ({op['name'] or op['op_type']})" for op in known
    ]
    raise UsageError(f"the training pipeline has no operator `{text}`", f"it has {', '.join(near)}")


def _matching(ops: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    wanted = text.lower()
    found = (
        [op for op in ops if str(op["op_id"]) == text],
        [op for op in ops if op["name"] == text],
        [op for op in ops if (op["name"] or "").lower().rpartition(".")[2] == wanted],
        [op for op in ops if op["op_type"].lower() in (wanted, wanted + "op")],
    )
    return next((matching for matching in found if matching), [])


def loop_of(engine: Engine, pipeline: Pipeline) -> Loop:
    """What was measured, as the prediction takes it. The only place that knows where the figures come from."""
    waits = [row for row in engine.rows("step/data_wait") if row["rank"] == pipeline.rank and row["rep"] == 0]
    wait = waits[0] if waits else {}
    rate = wait["steps"] * 1e9 / wait["step_ns"] if wait.get("step_ns") else None
    share = min(1.0, wait.get("data_wait_share") or 0.0)
    cpu = {
        row["op_id"]: row["mean_cores"]
        for row in engine.rows("queue/pipeline_cpu")
        if row["pipeline_key"] == pipeline.key and row["rank"] == pipeline.rank
    }
    service = engine.sql(_SERVICE.format(key=pipeline.key, rank=pipeline.rank)).to_pylist()
    log = {row["op_id"]: row for row in service if row["source"] == "log"}
    hook = {row["op_id"]: row for row in service if row["source"] == "hook"}
    stages = tuple(
        _stage(op, log.get(op["op_id"]), hook.get(op["op_id"]), cpu.get(op["op_id"]), rate)
        for op in pipeline.ops
        if not op["inlined"] and op["op_type"] not in CHEAP
    )
    free, used, count = _machine(engine, pipeline.rank)
    consumer = rate / (1 - share) if rate is not None and share < 0.999 else None
    return Loop(_with_gil(stages), consumer, rate, free, used, count)


def _stage(
    op: Mapping[str, Any],
    log: Mapping[str, Any] | None,
    hook: Mapping[str, Any] | None,
    cores: float | None,
    rate: float | None,
) -> Stage:
    timed = log or hook
    source = op["op_type"] == SOURCE
    workers = op["workers"] or 1
    row_ns = timed["row_ns"] if timed else None
    rows = timed["rows_per_batch"] if timed else None
    work = row_ns * rows if row_ns is not None and rows else None
    at_once = 1 if source and log else workers  # the lines give the time between two rows of a source
    can = at_once * 1e9 / work if work else None
    used = rate / can if rate is not None and can else None
    kappa = cores / workers / used if cores is not None and used and not source else None
    kind: Kind | None = None if kappa is None else "cpu" if kappa >= COMPUTES else "wait" if kappa <= WAITS else None
    serial = hook["row_ns"] if source and hook else row_ns if source and workers == 1 else None
    return Stage(
        op_id=op["op_id"],
        op_type=op["op_type"],
        workers=workers,
        work_ns=work,
        rate=can,
        cores=cores,
        utilisation=used,
        kind=kind,
        row_ns=serial,
        rows=rows,
        uses_processes=bool(op["uses_processes"]),
        is_python=bool(op["is_python"]),
        capacity=op["capacity"],
    )


def _with_gil(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Two or more Python operators that keep one core busy together wait for each other's GIL."""
    inside = [stage for stage in stages if stage.is_python and not stage.uses_processes]
    computing = [stage for stage in inside if (stage.cores or 0.0) >= 0.1]
    if len(computing) < 2 or not GIL_CORES <= sum(stage.cores or 0.0 for stage in computing) <= 1.15:
        return stages
    return tuple(replace(stage, kind="gil") if stage in computing else stage for stage in stages)


def _machine(engine: Engine, rank: int) -> tuple[float | None, float | None, int]:
    """Free cores, cores that the training used, cores there are."""
    row = engine.sql(_MACHINE.format(rank=rank)).to_pylist()[0]
    count = os.cpu_count() or 1
    idle, samples = row["idle"], row["samples"]
    return (None if idle is None else count * idle), (row["cores"] / samples if samples else None), count
