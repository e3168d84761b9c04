"""What is measured of the dataset's worker processes, against what their own Python measured in the same run."""

import json

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.alone]

STEPS = 60
OPERATORS = {"map": "MapOp", "batch": "BatchOp", "source": "GeneratorOp"}
KINDS = {"map": "cpu", "batch": "wait", "source": "cpu"}


def truth(recording):
    """(calls, wall, CPU) of the slow function, ns."""
    line = next(line for line in recording.done.stdout.splitlines() if line.startswith("truth "))
    return json.loads(line.removeprefix("truth "))


STAGES = "FROM pipeline_load"
CALLS = """
    SELECT op_type, CAST(sum(rows) AS BIGINT) AS rows, sum(avg_ns * rows) / sum(rows) AS wall,
           sum(cpu_ns * rows) / sum(rows) AS cpu
    FROM op_service JOIN pipeline_op USING (rep, rank, pipeline_id, op_id) WHERE source = 'hook' GROUP BY op_type
"""
WORKERS = """
    SELECT op_type, count(DISTINCT pid) AS number
    FROM cpu JOIN pipeline_op USING (rep, rank, pipeline_id, op_id) WHERE scope = 'process' GROUP BY op_type
"""


def of(recording, kind, text):
    """The row of the operator of the slow function."""
    (row,) = (row for row in recording.sql(text) if row["op_type"] == OPERATORS[kind])
    return row


@pytest.fixture(scope="module", params=["map", "batch", "source"])
def recorded(pipeprof_in, request):
    pipeprof = pipeprof_in(f"workers-{request.param}")
    found = pipeprof.collect(pipeprof.script("workers.py", request.param, str(STEPS)), "-q", "--ops", "off")
    assert found.done.returncode == 0, found.done.stderr
    return request.param, found, pipeprof


def test_every_row_is_counted(recorded):
    kind, found, _ = recorded
    calls, _, _ = truth(found)
    assert calls * 0.95 <= of(found, kind, CALLS)["rows"] <= calls


def test_a_row_takes_what_its_python_took(recorded):
    kind, found, _ = recorded
    calls, wall, cpu = truth(found)
    row = of(found, kind, CALLS)
    assert row["wall"] == pytest.approx(wall / calls, rel=0.15)
    assert row["cpu"] == pytest.approx(cpu / calls, rel=0.15, abs=0.02 * wall / calls)


def test_the_stage_has_the_work_and_the_cores_of_its_workers(recorded):
    kind, found, _ = recorded
    calls, wall, _ = truth(found)
    row = of(found, kind, STAGES)
    work = wall / calls * (1 if kind == "batch" else 4)
    assert row["uses_processes"]
    assert row["work_ns"] == pytest.approx(work, rel=0.35)  # of the steady state, and with MindSpore's part
    assert (row["cores"] > 0.1) == (kind != "batch")
    assert row["python_cores"] == 0.0  # the lock of the training's interpreter is not theirs


def test_the_slow_function_is_named_with_its_kind(recorded):
    kind, found, pipeprof = recorded
    report = pipeprof.run("report", str(found.path), "--format", "json")
    diagnosis = json.loads(report.stdout)["diagnosis"]
    assert (diagnosis["verdict"], diagnosis["op_type"]) == ("input_bound", OPERATORS[kind])
    assert diagnosis["kind"] in (KINDS[kind], "host_saturated" if KINDS[kind] == "cpu" else KINDS[kind])


def test_the_second_operator_with_workers_is_measured_too(recorded):
    kind, found, _ = recorded
    if kind == "map":
        row = of(found, "batch", STAGES)
        assert row["work_ns"] < 0.5 * of(found, "map", STAGES)["work_ns"]
        assert row["cpu_share"] < 0.5


def test_worker_processes_are_known_by_their_operator(recorded):
    kind, found, _ = recorded
    assert of(found, kind, WORKERS)["number"] == 2


def test_what_workers_counted_outlives_a_killed_training(pipeprof):
    found = pipeprof.collect(pipeprof.script("workers.py", "map", "80", "kill"), "-q", "--ops", "off")
    assert found.done.returncode == -9
    row = of(found, "map", STAGES)
    assert row["cores"] > 0.1
    assert row["work_ns"] > 0


def test_cpu_of_spawned_workers_is_known(pipeprof):
    found = pipeprof.collect(pipeprof.script("workers.py", "map", "30", "spawn"), "-q", "--ops", "off")
    assert found.done.returncode == 0, found.done.stderr
    assert "error" not in found.done.stdout
    assert of(found, "map", STAGES)["cores"] > 0.1
    assert OPERATORS["map"] not in {row["op_type"] for row in found.sql(CALLS)}
