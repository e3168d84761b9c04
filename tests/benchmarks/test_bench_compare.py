"""How long a comparison takes: 2 x 20 repetitions x 1,000 steps x 205 metrics; a small one when benchmarks are off.

pytest tests/benchmarks/test_bench_compare.py --benchmark-enable
"""

import numpy as np
import pytest
from run_files import write

import pipeprof
from pipeprof.record.run import Manifest, Rep, Run

OPS = 198  # with the five of steps and memory, and two phases: 205 metrics
MS = 1_000_000


def make_run(folder, *, reps, steps, seed, op_steps=5):
    """A run of `reps` repetitions with operators in `op_steps` steps of each."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    manifest = Manifest(run_id=folder.name, started_at="2026-01-01T00:00:00Z", pipeprof_version="0", state="complete")
    manifest.job, manifest.command = "boot:1", ["python", "train.py"]
    run = Run(folder, manifest)
    for rep in range(reps):
        ends = np.cumsum(np.exp(chance.normal(np.log(10 * MS), 0.05, steps))).astype(np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        numbers = np.arange(steps)
        write(run, "step", rep=rep, step=numbers, kind=["train"] * steps, kind_step=numbers, start_ns=starts,
              fp_ns=starts + MS, end_ns=ends, fetch_wait_ns=np.full(steps, MS), in_window=[False] * steps)  # fmt: skip
        write(run, "memory", rep=rep, t_ns=[0], device=["process"], pid=[1], rss_bytes=[10**9])
        at = np.repeat(np.arange(op_steps) * (steps // op_steps), OPS)
        times = np.exp(chance.normal(np.log(50_000), 0.05, len(at))).astype(np.int64)
        write(
            run,
            "op",
            rep=rep,
            op_id=np.tile(np.arange(OPS), op_steps),
            step=at,
            start_ns=starts[at],
            dur_ns=times,
            self_ns=times,
        )
        write(run, "op_info", rep=rep, op_id=np.arange(OPS), name=[f"net/op{number}" for number in range(OPS)],
              type=["MatMul"] * OPS)  # fmt: skip
        manifest.reps.append(Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0))
    run.save()
    return run


@pytest.fixture(scope="module", params=[5, 1000], ids=["operators in windows", "operators in every step"])
def sides(request, tmp_path_factory):
    off = request.config.getoption("benchmark_disable") and not request.config.getoption("benchmark_enable")
    size = {"reps": 4, "steps": 50} if off else {"reps": 20, "steps": 1000}
    size["op_steps"] = min(request.param, size["steps"])
    folder = tmp_path_factory.mktemp("sides")
    return [make_run(folder / name, seed=seed, **size).path for seed, name in enumerate(("base", "new"))]


def test_compare(benchmark, sides):
    content = benchmark.pedantic(pipeprof.compare, sides, rounds=3)
    assert content["verdict"] in ("unchanged", "inconclusive")
    assert len([metric for metric in content["metrics"] if not metric["name"].startswith("count/")]) == OPS + 7
