"""Traces of real trainings, drawn by us and read again: every operator has the count, time and own time it had."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_format import check, imported, load

from pipeprof.query.engine import Engine
from pipeprof.report.timeline.trace import Choice, write

TORCH = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "torch"
pytestmark = pytest.mark.skipif(not TORCH.is_dir(), reason="the traces of shared/data/torch are not here")


def totals(run):
    with Engine.open(run) as engine:
        rows = engine.rows("op/key_averages", group_by="name", stack_depth=0, python_functions=True)
    return {
        (row["key"], row["category"]): (row["count"], row["self_ns"], row["total_ns"]) for row in rows
    }  # fmt: skip


@pytest.mark.parametrize("name", ["small/small.cycle1.pt.trace.json.gz", "cuda/control.json.gz"])
def test_the_same_operator_totals_again(name, tmp_path):
    run = imported(TORCH / name, tmp_path / "run")
    written = write(run, tmp_path / "ours.json.gz", Choice())
    assert written.left_out == 0
    drawn = check(load(tmp_path / "ours.json.gz"))
    assert sum(len(drawn[phase]) for phase in "stf") == run.manifest.tables["flow"]
    expected = totals(run)
    assert len(expected) > 50
    assert totals(imported(tmp_path / "ours.json.gz", tmp_path / "again")) == expected
