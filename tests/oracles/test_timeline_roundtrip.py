"""Traces of real trainings, drawn by us and read again: every operator has the count, time and own time it had."""

from pathlib import Path

import pytest
from captured import outside, own
from trace_format import check, imported, load

from pipeprof.query.engine import Engine
from pipeprof.report.timeline.trace import Choice, write

GPU = Path(__file__).resolve().parents[1] / "real" / "gpu"
TRACES = [
    own("torch") / "small.cycle1.pt.trace.json.gz", GPU / "launches_small.pt.trace.json.gz",
    *outside("torch/small/small.cycle1.pt.trace.json.gz", "torch/cuda/control.json.gz"),
]  # fmt: skip


def totals(run):
    with Engine.open(run) as engine:
        rows = engine.rows("op/key_averages", group_by="name", stack_depth=0, python_functions=True)
    return {
        (row["key"], row["category"]): (row["count"], row["self_ns"], row["total_ns"]) for row in rows
    }  # fmt: skip


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_same_operator_totals_again(path, tmp_path):
    run = imported(path, tmp_path / "run")
    written = write(run, tmp_path / "ours.json.gz", Choice())
    assert written.left_out == 0
    drawn = check(load(tmp_path / "ours.json.gz"))
    assert sum(len(drawn[phase]) for phase in "stf") == run.manifest.tables["flow"]
    expected = totals(run)
    assert len(expected) > 50
    assert totals(imported(tmp_path / "ours.json.gz", tmp_path / "again")) == expected
