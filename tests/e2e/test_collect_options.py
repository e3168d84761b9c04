"""Repetitions, op windows and switches of `collect`."""

import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.mindspore


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("model_train", "jit_loop")]


@pytest.fixture(params=["pynative_loop", "train_one_step_cell_in_graph_mode", "fixed_tensors", *SLOW])
def style(request):
    return request.param


def test_schedule_records_exactly_its_steps(recorded, style):
    """As torch.profiler.schedule: skip 2, then wait 1, warm up 1, record 2, twice. Steps count from 0."""
    recording = recorded("loops.py", style, options=("--schedule", "skip_first=2,wait=1,warmup=1,active=2,repeat=2"))
    rows = recording.training()
    wanted = {step for step in (4, 5, 8, 9) if step < len(rows)}
    assert {row["step"] for row in recording.rows("op")} == wanted
    warm_up = {step for step in (3, 7) if step < len(rows)}
    disturbed = {row["kind_step"] for row in rows if row["in_window"]}
    assert wanted | warm_up <= disturbed <= wanted | warm_up | {2, 6}  # a window opens at the end of the step before


def test_every_step_has_its_operators_with_ops_all(recorded, style):
    recording = recorded("loops.py", style, options=("--ops", "all", "--graph-lines"))
    counts = recording.sql("SELECT step, count(*) AS n FROM op WHERE step IS NOT NULL GROUP BY step ORDER BY step")
    assert [row["step"] for row in counts] == [row["step"] for row in recording.training()]
    assert len({row["n"] for row in counts[1:]}) == 1, counts
    assert not recording.sql("SELECT * FROM op WHERE step IS NULL")


def test_operators_of_a_graph_have_the_lines_that_lead_to_them(recorded):
    recording = recorded("loops.py", "train_one_step_cell_in_graph_mode", options=("--ops", "all", "--graph-lines"))
    names = "SELECT name, frame FROM op_info JOIN stack USING (rep, rank, stack_id) WHERE type = 'MatMul'"
    frames = {row["name"]: row["frame"] for row in recording.sql(names)}
    assert any(name.startswith("Gradients/") for name in frames)
    (package,) = importlib.util.find_spec("mindspore").submodule_search_locations
    source = Path(package, "nn", "layer", "basic.py").read_text(encoding="utf-8").splitlines()
    for frame in frames.values():
        place = re.fullmatch(r"mindspore/nn/layer/basic.py\((\d+)\): Dense.construct", frame)
        assert place is not None, frame
        assert "self.matmul(" in source[int(place[1]) - 1]
    assert not list(recording.path.rglob("graph-dump"))


def test_no_operators_with_ops_off(recorded):
    recording = recorded("loops.py", "pynative_loop", options=("--ops", "off"))
    assert recording.rows("op") == []
    assert not recording.path.joinpath("op").exists()
    assert "--ops off" in {gap.what: gap.why for gap in recording.manifest.not_measured}["op"]
    assert not [row for row in recording.training() if row["in_window"]]


def test_repetitions_are_reps_of_one_run(recorded):
    recording = recorded("loops.py", "pynative_loop", options=("--reps", "2"))
    assert {row["rep"] for row in recording.rows("step")} == {0, 1}
    for rep in (0, 1):
        assert sum(row["rep"] == rep for row in recording.training()) == 18
    assert [rep.exit_code for rep in recording.manifest.reps] == [0, 0]
    pids = [rep.ranks[0].pid for rep in recording.manifest.reps]
    assert len(set(pids)) == 2
    for rep in recording.manifest.reps:  # each counts from its own zero
        ends = [row["end_ns"] for row in recording.training() if row["rep"] == rep.rep]
        assert max(ends) <= rep.dur_ns


def test_repetitions_end_with_the_first_failure(pipeprof):
    recording = pipeprof.collect(["false"], "--reps", "3")
    assert recording.done.returncode == 1
    assert len(recording.manifest.reps) == 1


def test_queue_samples_can_be_switched_off(recorded):
    recording = recorded("loops.py", "pynative_loop", options=("--queue-interval", "0"))
    assert recording.rows("queue") == []
    assert len(recording.training()) == 18


def test_queue_samples_are_within_their_capacity_and_the_iterators_life(recorded):
    recording = recorded("loops.py", "model_train", options=("--queue-interval", "5"))
    pipelines = {row["pipeline_id"]: row for row in recording.rows("pipeline")}
    samples = recording.rows("queue")
    assert samples
    for row in samples:
        assert 0 <= row["depth"] <= row["capacity"]
        assert pipelines[row["pipeline_id"]]["created_ns"] <= row["t_ns"]


def test_service_times_can_be_switched_off(recorded):
    recording = recorded("loops.py", "pynative_loop", options=("--no-service",))
    assert recording.rows("op_service") == []
    assert "--no-service" in {gap.what: gap.why for gap in recording.manifest.not_measured}["op_service"]
