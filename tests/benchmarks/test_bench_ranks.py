"""How long it takes to compare many ranks; few ranks when benchmarks are off.

pytest tests/benchmarks/test_bench_ranks.py --benchmark-enable
"""

from __future__ import annotations

import resource

import numpy as np
import pytest
from run_files import write

from pipeprof.query.engine import Engine
from pipeprof.record.run import Manifest, Run
from pipeprof.report.ranks import ranks_of

MS = 1_000_000
STEPS, EVENTS, SLOW = 100, 10, 3
SMALL, SIZES = 4, (8, 64, 1024)


def make_run(folder, ranks):
    """Step traces of `ranks` ranks: STEPS steps of about 100 ms with EVENTS collectives; one rank is 8 % slower."""
    run = Run(folder, Manifest(run_id="x", started_at="2026-01-01T00:00:00Z", pipeprof_version="0", state="complete"))
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(1)
    work = chance.normal(60, 1, (STEPS, ranks)) * MS
    work[:, SLOW] += 8 * MS
    length = (work.max(axis=1) + 20 * MS).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    number = np.arange(STEPS, dtype=np.int64)
    for rank in range(ranks):
        bp = start + work[:, rank].astype(np.int64)
        write(run, "step", rank=rank, step=number, kind_step=number, kind=["train"] * STEPS, start_ns=start,
              fp_ns=start + MS, bp_ns=bp, end_ns=start + length, in_window=[False] * STEPS)  # fmt: skip
        begin = np.linspace(bp, start + length - MS, EVENTS, axis=1).astype(np.int64)
        write(run, "collective", rank=rank, step=np.repeat(number, EVENTS), track=["stream 3"] * (STEPS * EVENTS),
              name=[f"AllReduce-op{event}" for event in range(EVENTS)] * STEPS,
              kind=["all_reduce"] * (STEPS * EVENTS), start_ns=begin.ravel(),
              dur_ns=np.full(STEPS * EVENTS, MS, np.int64))  # fmt: skip
    return run


def judge(run):
    with Engine.open(run) as engine:
        return ranks_of(engine, {}, top=10, several=True)["straggler"]


@pytest.mark.parametrize("ranks", SIZES)
def test_comparing_ranks(benchmark, tmp_path, ranks):
    run = make_run(tmp_path / "run", ranks if benchmark.enabled else SMALL)
    found = benchmark.pedantic(judge, args=(run,), rounds=3 if benchmark.enabled else 1)
    assert [item["rank"] for item in found["found"]] == [SLOW]
    benchmark.extra_info["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
