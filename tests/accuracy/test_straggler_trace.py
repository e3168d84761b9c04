"""Traces as published: what the example makes of one has the slow-down of the job that the trace is of."""

import importlib.util
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fleet_jobs import draw, execute

from pipeprof.record.run import load
from pipeprof.report.build import build

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "straggler_trace.py"


@pytest.fixture(scope="module")
def convert():
    spec = importlib.util.spec_from_file_location("straggler_trace", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def trace_of(job, path):
    """The job in the published columns, with a transfer that took place with nobody on each rank."""
    rows, begin = [], 100.0
    for number, dur in enumerate(job.dur):
        start, end = execute(job.ops, dur)
        seen = Counter()
        for op, first, last in zip(job.ops, start, end, strict=True):
            stage, replica, _ = job.shape.place(op.rank)
            common = {"dp_rank": replica, "stage": stage, "rank": op.rank, "step": 10 + number, "mc": op.chunk}
            timed = {"start_ts": begin + first / 1e9, "duration": (last - first) / 1e9}
            rows.append({**common, **timed, "optype": op.name, "seq_id": seen[op.rank, op.name]})
            seen[op.rank, op.name] += 1
            if op.kind == "optimizer":
                rows.append({**common, **timed, "optype": "forward-recv", "seq_id": seen[op.rank, "forward-recv"]})
        begin += 2 * max(end) / 1e9
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize(("seed", "cause", "code"), [(8, "last_stage", "stage_imbalance"), (3, "slow_worker", "slow_worker"), (4, "input_length", "input_length")])  # fmt: skip
def test_a_published_trace_has_its_slow_down_and_cause(tmp_path, convert, seed, cause, code):
    job = next(job for job in (draw(seed + 8 * turn, cause, exact=True) for turn in range(50)) if job.shape.tp == 1 and job.shape.pp > 1)  # fmt: skip
    trace_of(job, tmp_path / "trace.parquet")
    convert(tmp_path / "trace.parquet", tmp_path / "run")
    causes = build(load(tmp_path / "run"))["ranks"]["causes"]
    assert causes["why"] is None
    slow = causes["slowdown"]
    assert causes["found"][0]["code"] == code
    assert slow["s"] == pytest.approx(job.truth["slowdown"], rel=1e-3)
    assert (slow["m_w"], slow["m_s"]) == pytest.approx((job.truth["m_w"], job.truth["m_s"]), abs=0.01)
    assert {row["stage"]: row["s"] for row in slow["by_stage"]} == pytest.approx(
        {stage: job.truth[f"stage_{stage}"] for stage in range(job.shape.pp)}, rel=1e-3
    )
