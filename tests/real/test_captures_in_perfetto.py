"""Perfetto's trace processor finds in our timeline of a capture all that is in the run, on the threads it is on."""

from pathlib import Path

import pytest
from perfetto import COUNTERS, FAULTS, SLICES, ask, needs_perfetto

from pipeprof.query.engine import Engine
from pipeprof.report.timeline.trace import Choice, write

pytestmark = [needs_perfetto, pytest.mark.slow]
CAPTURES = sorted(path.name for path in Path(__file__).parent.joinpath("captures").iterdir())
OPS = """
SELECT o.rank, o.track, i.name, count(*) AS n, CAST(sum(o.dur_ns) AS BIGINT) AS total_ns FROM op AS o
INNER JOIN op_info AS i ON o.rep = i.rep AND o.rank = i.rank AND o.op_id = i.op_id GROUP BY ALL
"""
QUEUES = (
    "SELECT rank, pipeline_id, op_id, count(*) AS n, max(depth) AS most FROM queue WHERE depth IS NOT NULL GROUP BY ALL"
)


def rank_of(process):
    return int(process.removeprefix("rank ").partition(" ")[0])


@pytest.fixture
def drawn(converted, tmp_path):
    def draw(name):
        run = converted(name).run
        write(run, tmp_path / "trace.json.gz", Choice())
        return run, ask(tmp_path / "trace.json.gz", FAULTS, SLICES, COUNTERS)

    return draw


@pytest.mark.parametrize("name", CAPTURES)
def test_it_finds_everything_and_has_no_complaint(name, drawn):
    run, (faults, slices, counters) = drawn(name)
    assert faults == []
    with Engine.open(run) as engine:
        ops, queues = engine.sql(OPS).to_pylist(), engine.sql(QUEUES).to_pylist()
    found = {
        (rank_of(row["process"]), row["thread"], row["name"]): (row["n"], row["total_ns"])
        for row in slices
        if row["category"] == "cpu_op"
    }
    assert found == {(row["rank"], row["track"], row["name"]): (row["n"], row["total_ns"]) for row in ops}
    assert sum(row["n"] for row in slices if row["category"] == "step") == run.manifest.tables["step"]
    depths = sorted(
        (rank_of(row["process"]), row["n"], row["most"]) for row in counters if row["name"].startswith("queue")
    )
    assert depths == sorted((row["rank"], row["n"], row["most"]) for row in queues)
