"""The generator of distributed trainings: its schedules, and its truth against sums done by hand."""

from __future__ import annotations

from collections import Counter

import fleet_jobs
import pytest
from fleet_jobs import CAUSES, PASSES, Job, Shape, draw, execute, measure, operations, schedule

from pipeprof.query.engine import Engine


def job_of(shape, times, steps=1):
    """A job whose passes take `times(op)` and all else nothing."""
    ops = operations(shape)
    dur = [[float(times(op)) if op.kind in PASSES else 0.0 for op in ops] for _ in range(steps)]
    return Job(shape, "none", ops, dur, [[0.0] * len(ops) for _ in dur])


def short(order):
    return " ".join(f"{kind[0]}{chunk}.{batch}" for kind, chunk, batch in order)


def test_one_forward_one_backward():
    shape = Shape(pp=2, dp=1, tp=1, vpp=1, microbatches=3, steps=1)
    assert short(schedule(shape, 0)) == "f0.0 f0.1 b0.0 f0.2 b0.1 b0.2"
    assert short(schedule(shape, 1)) == "f0.0 b0.0 f0.1 b0.1 f0.2 b0.2"


def test_interleaved_chunks_take_turns():
    shape = Shape(pp=2, dp=1, tp=1, vpp=2, microbatches=2, steps=1)
    assert short(schedule(shape, 1)) == "f0.0 f0.1 f1.0 b1.0 f1.1 b1.1 b0.0 b0.1"


def test_every_pass_runs_once_in_every_shape():
    for vpp in (1, 2):
        shape = Shape(pp=4, dp=1, tp=1, vpp=vpp, microbatches=8, steps=1)
        for stage in range(4):
            assert set(Counter(schedule(shape, stage)).values()) == {1}
            assert len(schedule(shape, stage)) == 2 * 8 * vpp


def test_a_pipeline_of_two_stages_by_hand():
    """Forward 1, backward 2: the last stage works from 1 to 7, then the first has its last backward pass."""
    shape = Shape(pp=2, dp=1, tp=1, vpp=1, microbatches=2, steps=1)
    job = job_of(shape, lambda op: 1 if op.kind == "forward" else 2)
    assert max(execute(job.ops, job.dur[0])[1]) == 9
    assert measure(job)["slowdown"] == 1


def test_a_slow_replica_by_hand():
    """One takes 10 + 20, the other 20 + 40; were both average, 15 + 30."""
    job = job_of(Shape(1, 2, 1, 1, 1, 1), lambda op: (10 if op.kind == "forward" else 20) * (1 + op.rank))
    truth = measure(job)
    assert truth["slowdown"] == pytest.approx(60 / 45)
    assert truth["m_w"] == pytest.approx(1)
    assert truth["replica_0"] == pytest.approx(1)
    assert truth["replica_1"] == pytest.approx(60 / 45)


def test_gaps_of_the_host_are_no_part_of_the_slow_down():
    job = job_of(Shape(1, 1, 1, 1, 1, 1), lambda _: 10)
    job.gap[0][0] = 5.0
    assert measure(job)["slowdown"] == 1
    assert measure(job)["launch"] == pytest.approx(25 / 20)


@pytest.mark.parametrize("cause", CAUSES)
def test_a_planted_cause_costs_something_and_a_healthy_job_nothing(cause):
    job = draw(7, cause, most_ranks=8)
    assert job.truth["cost"] >= 0.05 if cause != "none" else job.truth["cost"] == pytest.approx(0)
    assert draw(7, cause, most_ranks=8).truth == job.truth


def test_a_written_run_has_the_ranks_stages_and_times_of_the_job(tmp_path):
    job = draw(3, "last_stage", most_ranks=8, exact=True)
    with Engine.open(fleet_jobs.write(job, tmp_path / "run")) as engine:
        peers = engine.sql("SELECT rank, peers FROM rank_peer ORDER BY rank").to_pylist()
        steps = engine.sql("SELECT DISTINCT step, end_ns - start_ns AS dur FROM step ORDER BY step").to_pylist()
        ran = engine.rows("rank/operation", steps=100)
    assert [row["peers"] for row in peers] == [job.shape.place(rank)[0] for rank in range(job.shape.ranks)]
    assert sum(row["dur"] for row in steps) / len(steps) == pytest.approx(job.truth["step_ns"], rel=1e-6)
    assert len(ran) == len(job.ops) * job.shape.steps
