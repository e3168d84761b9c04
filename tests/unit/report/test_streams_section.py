"""What ran on which device and stream, and one chosen step, as the report shows them."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import chosen

US = 1_000


def op(op_id, dur, track, step=0, **more):
    times = {"start_ns": 0, "dur_ns": dur * US, "self_ns": dur * US}
    return {"op_id": op_id, "step": step, "track": track, **times, **more}


@pytest.fixture
def run(make_run):
    ends = [0, 100 * US, 300 * US]
    return make_run({
        "step": [
            {"step": n, "kind_step": n, "kind": "train", "epoch": 0, "start_ns": ends[n], "end_ns": ends[n + 1],
             "fp_ns": ends[n] + 20 * US, "bp_ns": ends[n + 1] - 10 * US, "in_window": False}
            for n in (0, 1)
        ],
        "op_info": [
            {"op_id": 1, "name": "Default/net/MatMul-op1", "type": "MatMul", "device": "AI_CORE"},
            {"op_id": 2, "name": "Default/GetNext-op2", "type": "GetNext", "device": "AI_CPU"},
        ],
        "op": [op(1, 60, "stream 5"), op(1, 50, "stream 5", 1), op(2, 30, "AI CPU", None, wait_ns=4 * US)],
    }, source="import:ascend", state="complete")  # fmt: skip


def tables(run, name, **more):
    (section,) = chosen(build(run, **more), [name])
    return {block.head[0]: [dict(zip(block.head, row, strict=True)) for row in block.rows] for block in section.blocks}


def test_the_ai_cpu_has_a_table_although_its_operators_belong_to_no_step(run):
    found = tables(run, "operators")
    assert found["device"] == [
        {"device": "AI_CORE", "types": "1", "executions": "2", "own time": "110 us"},
        {"device": "AI_CPU", "types": "1", "executions": "1", "own time": "30.0 us"},
    ]
    (row,) = found["type on AI_CPU"]
    assert (row["type on AI_CPU"], row["total"], row["waiting to start"]) == ("GetNext", "30.0 us", "4.00 us")


def test_streams_are_summed_up_with_their_tasks(run):
    first, second = tables(run, "operators")["stream (2 of 2)"]
    assert (first["tasks"], first["own time"], first["of its steps"]) == ("2", "110 us", "36.7 %")
    assert first["most time in"] == ".../net/MatMul-op1 (110 us)"
    assert (second["stream (2 of 2)"], second["of its steps"]) == ("AI CPU", "-")


def test_a_chosen_step_is_shown_in_its_parts_beside_the_mean(run):
    rows = tables(run, "steps", step=1)["part of step 1"]
    assert [(row["part of step 1"], row["begins"], row["ends"], row["mean"]) for row in rows] == [
        ("time before the forward pass", "0 ns", "20.0 us", "20.0 us"),
        ("forward and backward pass", "20.0 us", "190 us", "120 us"),
        ("tail", "190 us", "200 us", "10.0 us"),
        ("the whole step", "0 ns", "200 us", ""),
    ]
    assert "part of step 1" not in tables(run, "steps")
    with pytest.raises(UsageError, match="no training step 2: this run has 0 to 1"):
        build(run, step=2)
