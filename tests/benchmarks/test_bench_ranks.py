"""How long it takes to compare many ranks; few ranks when benchmarks are off.

pytest tests/benchmarks/test_bench_ranks.py --benchmark-enable
"""

import resource

import pytest
from rank_runs import SLOW, make_run

from pipeprof.query.engine import Engine
from pipeprof.report.ranks import rank_verdicts

SMALL, SIZES = 4, (8, 64, 1024)


def judge(run):
    with Engine.open(run) as engine:
        return rank_verdicts(engine, several=True)["straggler"]


@pytest.mark.parametrize("ranks", SIZES)
def test_comparing_ranks(benchmark, tmp_path, ranks):
    run = make_run(tmp_path / "run", ranks if benchmark.enabled else SMALL)
    found = benchmark.pedantic(judge, args=(run,), rounds=3 if benchmark.enabled else 1)
    assert [item["rank"] for item in found["found"]] == [SLOW]
    benchmark.extra_info["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
