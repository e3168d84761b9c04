"""`pipeprof ops` on runs whose source gives operators only in sum."""

import json

import pytest

from pipeprof.report import json_text
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question

MS = 1_000_000


def total(device, count, ms, **more):
    return {
        "source": "aicore_type",
        "device": device,
        "count": count,
        "total_ns": ms * MS,
        "mean_ns": ms * MS // count,
        **more,
    }


@pytest.fixture
def run(make_run):
    """AI Core in sum, by type and by operator; the AI CPU's executions one by one, and in sum; calls on the host."""
    return make_run(
        {
            "op_total": [
                total("AI_CORE", 9, 18, type="MatMul"),
                total("AI_CORE", 2, 2, type="Cast"),
                total("AI_CORE", 9, 18, name="Default/MatMul-op1", type="MatMul", source="aicore_detail"),
                total("AI_CORE", 2, 2, name="Default/Cast-op2", type="Cast", source="aicore_detail"),
                total("AI_CPU", 3, 6, type="GetNext", source="aicpu"),
                total("host", 5, 50, name="launch", type="node", source="api_statistic"),
                {**total("host", 4, 8, name="launch", type="node", source="api_statistic"), "rank": 1},
            ],
            "op": [
                {"op_id": 0, "start_ns": n * MS, "dur_ns": 2 * MS, "self_ns": 2 * MS, "track": "AI CPU"}
                for n in range(3)
            ],
            "op_info": [{"op_id": 0, "name": "GetNext", "type": "GetNext", "device": "AI_CPU"}],
        }
    )


def rows(run, **question):
    return json.loads(json_text.text(answer(run, Question(**question)).document()))["rows"]


def test_devices_without_executions_come_from_their_sums(run):
    found = [
        (row["rank"], row["name"], row.get("device"), row["count"], row["self_ns"], row["share"]) for row in rows(run)
    ]
    assert found == [
        (0, "GetNext", None, 3, 6 * MS, 1),
        (0, "MatMul", "AI_CORE", 9, 18 * MS, 0.9),
        (0, "Cast", "AI_CORE", 2, 2 * MS, 0.1),
        (1, "node", "host", 4, 8 * MS, 1),
    ]


def test_running_sums_and_shares_are_of_one_device(run):
    found = {row["name"]: (row["cumulative_ns"], row["cumulative_share"]) for row in rows(run)}
    assert found["Cast"] == (20 * MS, pytest.approx(1))
    assert found["GetNext"] == (6 * MS, pytest.approx(1))


def test_single_operators_and_a_regular_expression(run):
    assert [row["name"] for row in rows(run, group_by="name")] == [
        "GetNext", "Default/MatMul-op1", "Default/Cast-op2", "launch",
    ]  # fmt: skip
    assert [row["name"] for row in rows(run, opr_name=".*Mul")] == ["Default/MatMul-op1"]
    assert [row["name"] for row in rows(run, types=("Cast",))] == ["Cast"]


def test_top_counts_for_each_device(run):
    assert [row["name"] for row in rows(run, top=1)] == ["GetNext", "MatMul", "node"]


def test_groups_that_sums_cannot_be_put_into_have_executions_only(run):
    assert sum(row["count"] for row in rows(run, group_by="phase")) == 3
