"""`pipeprof ops` on runs whose source gives operators only in sum."""

import json

import pytest

from pipeprof.report import json_text
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question
from tests.unit.report.conftest import MS


def total(device, count, ms, source="aicore_type", **more):
    times = {"total_ns": ms * MS, "mean_ns": ms * MS // count}
    return {"source": source, "device": device, "count": count, **times, **more}


@pytest.fixture
def run(make_run):
    """AI Core in sum, by type and by operator; the AI CPU's executions one by one, and in sum; calls on the host."""
    launch = {"source": "api_statistic", "name": "launch", "type": "node"}
    executed = {"op_id": 0, "dur_ns": 2 * MS, "self_ns": 2 * MS, "track": "AI CPU"}
    return make_run({
        "op_total": [
            total("AI_CORE", 9, 18, type="MatMul"), total("AI_CORE", 2, 2, type="Cast"),
            total("AI_CORE", 9, 18, "aicore_detail", name="Default/MatMul-op1", type="MatMul"),
            total("AI_CORE", 2, 2, "aicore_detail", name="Default/Cast-op2", type="Cast"),
            total("AI_CPU", 3, 6, "aicpu", type="GetNext"), total("host", 5, 50, **launch),
            total("host", 4, 8, rank=1, **launch),
        ],
        "op": [executed | {"start_ns": n * MS} for n in range(3)],
        "op_info": [{"op_id": 0, "name": "GetNext", "type": "GetNext", "device": "AI_CPU"}],
    })  # fmt: skip


def rows(run, **question):
    return json.loads(json_text.text(answer(run, Question(**question)).document()))["rows"]


def test_devices_without_executions_come_from_their_sums_and_running_sums_are_of_one_device(run):
    names = ("name", "device", "rank", "count", "self_ns", "share", "cumulative_ns")
    found = rows(run)
    assert [tuple(row.get(name) for name in names) for row in found] == [
        ("GetNext", None, 0, 3, 6 * MS, 1, 6 * MS), ("MatMul", "AI_CORE", 0, 9, 18 * MS, 0.9, 18 * MS),
        ("Cast", "AI_CORE", 0, 2, 2 * MS, 0.1, 20 * MS), ("node", "host", 1, 4, 8 * MS, 1, 8 * MS),
    ]  # fmt: skip
    assert [row["cumulative_share"] for row in found] == pytest.approx([1, 0.9, 1, 1])


@pytest.mark.parametrize(("question", "names"), [
    ({"group_by": "name"}, ["GetNext", "Default/MatMul-op1", "Default/Cast-op2", "launch"]),
    ({"opr_name": ".*Mul"}, ["Default/MatMul-op1"]), ({"types": ("Cast",)}, ["Cast"]),
    ({"top": 1}, ["GetNext", "MatMul", "node"]),  # counts for each device
])  # fmt: skip
def test_single_operators_and_a_regular_expression(run, question, names):
    assert [row["name"] for row in rows(run, **question)] == names


def test_groups_that_sums_cannot_be_put_into_have_executions_only(run):
    assert sum(row["count"] for row in rows(run, group_by="phase")) == 3
