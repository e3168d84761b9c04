"""How long the SQL and the rules of the diagnosis take, per 10 million queue samples; a small run when benchmarks are off.

pytest tests/benchmarks/test_bench_diagnosis.py --benchmark-enable
"""

from itertools import groupby

import numpy as np
import pytest
from run_files import write

from pipeprof.query.engine import Engine
from pipeprof.query.rows import JudgedStage, typed
from pipeprof.record.run import Manifest, Run
from pipeprof.verdict.decision import decide, with_kinds

MS = 1_000_000
OPS = 8
RANKS = 8
LARGE, SMALL = 10_000_000, 20_000


def make_run(folder, samples):
    """A training with a chain of OPS operators on RANKS ranks, whose fourth one is slow; `samples` in all."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0", state="complete"))
    chance = np.random.default_rng(1)
    times = samples // OPS // RANKS
    for rank in range(RANKS):
        write(run, "pipeline", rank=rank, pipeline_id=[0], pipeline_key=["a"], role=["train"])
        kinds = ["BatchOp", *["MapOp"] * (OPS - 2), "GeneratorOp"]
        write(run, "pipeline_op", rank=rank, pipeline_id=[0] * OPS, op_id=list(range(OPS)), op_type=kinds,
              workers=[1] * OPS, capacity=[16] * OPS, is_python=[True] * OPS)  # fmt: skip
        write(run, "pipeline_edge", rank=rank, pipeline_id=[0] * (OPS - 1), producer_id=list(range(1, OPS)),
              consumer_id=list(range(OPS - 1)))  # fmt: skip
        t_ns = np.repeat(np.arange(times, dtype=np.int64) * 100 * MS, OPS)
        op_id = np.tile(np.arange(OPS, dtype=np.int64), times)
        depth = np.where(op_id <= 4, 0, 16) + chance.integers(0, 2, len(op_id))
        write(run, "queue", rank=rank, pipeline_id=np.zeros(len(op_id), np.int64), op_id=op_id, t_ns=t_ns,
              depth=depth.astype(np.int64), capacity=np.full(len(op_id), 16, np.int64))  # fmt: skip
        batches = max(40, times // 5)
        ends = (np.arange(batches, dtype=np.int64) + 1) * (times * 100 * MS // batches)
        step = ends[0]
        write(run, "fetch", rank=rank, fetch=np.arange(batches), pipeline_id=np.zeros(batches, np.int64),
              step=np.arange(batches), start_ns=ends - step // 2, wait_ns=np.full(batches, step // 2 - 1000),
              side=["iterator"] * batches)  # fmt: skip
        write(run, "step", rank=rank, step=np.arange(batches), kind=["train"] * batches, kind_step=np.arange(batches),
              pipeline_id=np.zeros(batches, np.int64), start_ns=ends - step, end_ns=ends,
              fp_ns=ends - step // 2, fetch_wait_ns=np.full(batches, step // 2 - 1000),
              in_window=[False] * batches)  # fmt: skip
    run.save()
    return run


@pytest.fixture(scope="module")
def run(request, tmp_path_factory):
    off = request.config.getoption("benchmark_disable") and not request.config.getoption("benchmark_enable")
    return make_run(tmp_path_factory.mktemp("large") / "run", SMALL if off else LARGE)


def test_bottleneck(benchmark, run):
    def ask():
        with Engine.open(run) as engine:
            rows = typed(JudgedStage, with_kinds(engine.rows(JudgedStage.query)))
        ranks = [list(found) for _, found in groupby(rows, key=lambda row: row.rank)]
        return [decide(found, 8.0).first.op_id for found in ranks]

    assert benchmark.pedantic(ask, rounds=3) == [4] * RANKS
