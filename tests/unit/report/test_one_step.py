"""Operators of one chosen training step, in the operator table and in the report."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.report import charts
from pipeprof.report.build import build
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question
from pipeprof.report.sections.of_run import sections
from tests.unit.report.conftest import MS, trained

NAMES = {1: "MatMul", 2: "ReLU", 3: "Cast"}
OF_THE_STEP = [("ReLU", 1, 30 * MS), ("MatMul", 1, 10 * MS), ("Cast", 1, 5 * MS)]


@pytest.fixture
def run(make_run):
    """Five steps, operators in the last three; in step 3 a ReLU takes most, and a Cast runs there alone."""
    executions = [(step, 1, 10) for step in (2, 3, 4)] + [(2, 2, 1), (3, 2, 30), (4, 2, 1), (3, 3, 5)]
    return make_run({
        "step": trained(*[100 * MS] * 5, warm=1, in_window=False),
        "op": [
            {"op_id": op_id, "step": step, "start_ns": step * 100 * MS + op_id, "dur_ns": dur * MS, "self_ns": dur * MS}
            for step, op_id, dur in executions
        ],
        "op_info": [{"op_id": op_id, "name": f"net/{name}", "type": name} for op_id, name in NAMES.items()],
        "op_total": [{"source": "aicore_type", "device": "AI_CORE", "type": "Sum", "count": 9, "total_ns": 9 * MS}],
    }, source="import:ascend", state="complete")  # fmt: skip


@pytest.mark.parametrize("group", ["type", "name", "phase"])
def test_groups_count_what_ran_in_the_step(run, group):
    rows = answer(run, Question(step=3, group_by=group)).parts[0].rows
    assert sum(row["self_ns"] for row in rows) == 45 * MS
    if group == "type":
        assert [(row["type"], row["count"], row["self_ns"]) for row in rows] == OF_THE_STEP


def test_single_operators_and_their_sum_are_those_of_the_step(run):
    content = answer(run, Question(step=3, print_only="device"))
    assert [(row["type"], 1, row["self_ns"]) for row in content.parts[0].rows] == OF_THE_STEP
    assert content.total["device_ns"] == 45 * MS
    assert answer(run, Question(print_only="device")).total["device_ns"] == 67 * MS


@pytest.mark.parametrize("step", [1, 7])
def test_a_step_without_operators_says_where_there_are_some(run, step):
    with pytest.raises(UsageError, match=f"no operator was recorded in training step {step}") as error:
        answer(run, Question(step=step))
    assert error.value.hint == "they were recorded in steps 2 to 4"


def operators(run, step):
    return next(part for part in sections(build(run, step=step)) if part.name == "operators")


def test_the_report_shows_the_operators_of_a_chosen_step_or_says_that_it_has_none_and_shows_all(run):
    part = operators(run, 3)
    assert part.title == "Operators of step 3"
    assert [row[:2] for row in part.blocks[0].rows] == [["ReLU", "1"], ["MatMul", "1"], ["Cast", "1"]]
    assert not any("Sum" in row for block in part.blocks for row in block.rows)
    part = operators(run, 1)
    assert part.title == "Operators"
    assert part.notes[0] == (
        "No operator was recorded in training step 1; they were recorded in steps 2 to 4: these are of all steps"
    )
    assert part.blocks[0].rows[0][:2] == ["ReLU", "3"]


def test_the_page_of_a_step_has_no_operators_of_others_below_its_chart(run):
    def chart(step):
        return next(one for one in charts.charts_of(run, build(run, step=step)) if one.name == "chart-operators")

    whole, one, none = chart(None), chart(3), chart(1)
    assert (one.title, one.table) == ("Operators of step 3 by type", [])
    assert (whole.title, bool(whole.table)) == (none.title, bool(none.table)) == ("Operators by type", True)
    assert "Executions in training steps count." in whole.caption
