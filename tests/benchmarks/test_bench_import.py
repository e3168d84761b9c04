"""How long it takes to import a big MegEngine profile; a small one when benchmarks are off.

pytest tests/benchmarks/test_bench_import.py --benchmark-enable
"""

from import_bench import write_profile

from pipeprof.query.engine import Engine
from pipeprof.read.foreign import import_path
from pipeprof.record.run import load

LARGE, SMALL = 20_000, 50


def test_import_of_a_profile(benchmark, tmp_path):
    operators = LARGE if benchmark.enabled else SMALL
    profile, run = tmp_path / "profile.json", tmp_path / "run"
    write_profile(profile, operators)

    benchmark.pedantic(import_path, args=(profile, run), kwargs={"force": True}, rounds=3 if benchmark.enabled else 1)

    with Engine.open(load(run)) as engine:
        assert engine.sql("SELECT count(*) AS count FROM op_info").to_pylist() == [{"count": operators}]
