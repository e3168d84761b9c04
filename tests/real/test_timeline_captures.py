"""Every capture gives a trace of the documented form that holds all of it."""

from pathlib import Path

import pytest
from trace_format import check, imported, load

from pipeprof.query.engine import Engine
from pipeprof.report.timeline.trace import Choice, write

CAPTURES = sorted(path.name for path in Path(__file__).parent.joinpath("captures").iterdir())
OP_TOTALS = """
SELECT o.rep, o.rank, i.name, count(*) AS n, sum(o.dur_ns) AS total_ns FROM op AS o
INNER JOIN op_info AS i ON o.rep = i.rep AND o.rank = i.rank AND o.op_id = i.op_id GROUP BY o.rep, o.rank, i.name ORDER BY o.rep, o.rank, i.name
"""


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_as_a_trace(name, converted, tmp_path):
    run = converted(name).run
    written = write(run, tmp_path / "trace.json.gz", Choice())
    assert written.left_out == 0
    found = check(load(tmp_path / "trace.json.gz"))
    slices = {category: [event for event in found["X"] if event["cat"] == category] for category in ("step", "cpu_op")}
    assert len(slices["step"]) == run.manifest.tables["step"]
    assert len(slices["cpu_op"]) == run.manifest.tables["op"]
    assert len({event["pid"] for event in found["X"]}) == len(run.manifest.reps[0].ranks)
    queues = [event for event in found["C"] if event["name"].startswith("queue: ")]
    assert len(queues) == run.manifest.tables["queue"]


@pytest.mark.parametrize("name", ["2.10-graph", "2.10-ranks"])
def test_the_reader_of_traces_finds_the_operators_again(name, converted, tmp_path):
    run = converted(name).run
    write(run, tmp_path / "trace.json", Choice())
    with Engine.open(run) as ours, Engine.open(imported(tmp_path / "trace.json", tmp_path / "again")) as theirs:
        assert theirs.sql(OP_TOTALS).to_pylist() == ours.sql(OP_TOTALS).to_pylist()


def test_operators_of_a_graph_lie_in_the_blocks_of_their_cells(converted, tmp_path):
    run = converted("2.10-graph")
    write(run.run, tmp_path / "trace.json", Choice())
    events = load(tmp_path / "trace.json")["traceEvents"]
    cells = [event for event in events if event.get("cat") == "cell" and event["name"] == "2-Dense"]
    inside = [event for event in events if event.get("cat") == "cpu_op" and "/2-Dense/" in event["name"]]
    assert len(inside) == 10
    for event in inside:
        assert any(cell["ts"] <= event["ts"] <= cell["ts"] + cell["dur"] for cell in cells)
