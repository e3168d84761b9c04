"""Operator executions: their step, their phase, and the points FP and BP."""

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import PointNotFoundError, choose_points, match_point, place, step_points
from pipeprof.read.spool.step_rows import Step


def execution(name, start, dur=1, kind=None):
    return Execution(name, start, dur, kind)


def row(begin, end):
    return Mark(Kind.FETCH, 0, 0, 0, begin, end)


def phases(step, *names):
    executions = [execution(name, step.start + 10 + number) for number, name in enumerate(names)]
    return [item.phase for item in place(executions, [step])]


STEP = Step("train", 0, 1000, fetches=[row(0, 5)])


def test_an_execution_belongs_to_the_step_in_which_it_started():
    steps = [Step("train", 0, 100), Step("train", 100, 200), Step("train", 300, 400)]
    placed = place([execution("A", at) for at in (0, 99, 100, 250, 300, 400)], steps)
    assert [item.step for item in placed] == [0, 0, 1, None, 2, None]


def test_an_execution_inside_an_evaluation_inside_a_step_belongs_to_the_evaluation():
    steps = [Step("train", 0, 100), Step("eval", 40, 50), Step("eval", 50, 60), Step("train", 100, 200)]
    placed = place([execution("A", at) for at in (10, 45, 55, 70, 150)], steps)
    assert [item.step for item in placed] == [0, 1, 2, 0, 3]


def test_an_execution_before_the_first_step_belongs_to_none():
    assert place([execution("A", 5)], [Step("train", 10, 20)])[0].step is None


def test_without_steps_nothing_is_placed_in_one():
    assert [item.step for item in place([execution("A", 5)], [])] == [None]


def test_placed_executions_come_in_order_of_start():
    steps = [Step("train", 0, 100), Step("train", 100, 200)]
    placed = place([execution("B", 150), execution("C", 300), execution("A", 50)], steps)
    assert [item.execution.start_ns for item in placed] == [50, 150, 300]


def test_phases_of_graph_mode_come_from_the_scope():
    names = [
        "Default/network-WithLossCell/_backbone-Net/MatMul-op0",
        "Gradients/Default/network-WithLossCell/_backbone-Net/Grad_MatMul/MatMul-op1",
        "Default/optimizer-Momentum/ApplyMomentum-op0",
        "Default/grad_reducer-DistributedGradReducer/Mul-op0",
        "Default/grad_reducer-DistributedGradReducer/AllReduce-op0",
    ]
    assert phases(STEP, *names) == ["forward", "backward", "optimizer", "other", "communication"]


def test_a_forward_operator_after_a_gradient_in_graph_mode_stays_forward():
    names = ["Gradients/Default/Grad_MatMul/MatMul-op1", "Default/MatMul-op0", "Default/ReluGrad-op3"]
    assert phases(STEP, *names) == ["backward", "forward", "forward"]


def test_in_pynative_mode_the_gradient_seed_begins_the_backward_pass():
    assert phases(STEP, "MatMul", "ReLU", "Ones", "MatMul", "ApplyMomentum") == [
        "forward", "forward", "backward", "backward", "optimizer",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ReluGrad", "Conv2DBackpropInput"])
def test_in_pynative_mode_a_gradient_operator_begins_the_backward_pass_without_a_seed(name):
    assert phases(STEP, "MatMul", name, "MatMul") == ["forward", "backward", "backward"]


def test_each_micro_step_of_gradient_accumulation_begins_with_its_forward_pass():
    step = Step("train", 0, 1000, fetches=[row(0, 5), row(100, 105)])
    executions = [
        execution("MatMul", 10),
        execution("ReluGrad", 20),
        execution("MatMul", 110),
        execution("ReluGrad", 120),
    ]
    executions += [execution("ApplyMomentum", 200)]
    assert [item.phase for item in place(executions, [step])] == [
        "forward", "backward", "forward", "backward", "optimizer",
    ]  # fmt: skip


def test_what_follows_the_update_is_after_it_also_a_second_forward_pass():
    names = ["MatMul", "MatMulGrad", "ApplyMomentum", "Mul", "MatMul", "Ones", "BiasAdd"]
    assert phases(STEP, *names) == ["forward", "backward", "optimizer", "after", "after", "after", "after"]


def test_gradients_that_follow_an_update_are_those_of_a_second_network():
    names = ["MatMul", "MatMulGrad", "Adam", "Mul", "ReluGrad", "Adam", "Mul"]
    assert phases(STEP, *names) == ["forward", "backward", "optimizer", "forward", "backward", "optimizer", "after"]


def test_what_pynative_launches_behind_a_compiled_update_is_after_it():
    compiled = ["Gradients/Default/Grad_MatMul/MatMul-op1", "Default/ApplyMomentum-op0"]
    executions = [execution(name, at) for name, at in zip([*compiled, "Mul", "Assign"], (10, 20, 60, 70), strict=True)]
    update = Mark(Kind.UPDATE, 2, 0, 0, 5, 50)
    assert [item.phase for item in place(executions, [STEP], None, [update])] == [
        "backward", "optimizer", "after", "after",
    ]  # fmt: skip


def test_evaluation_has_no_backward_pass():
    step = Step("eval", 0, 1000, fetches=[row(0, 5)])
    assert phases(step, "Ones", "MatMul", "AllReduce") == ["forward", "forward", "communication"]


def test_the_launch_list_knows_the_type_better_than_the_name():
    placed = place([execution("MatMul", 10), execution("thing", 20, kind="ReluGrad"), execution("MatMul", 30)], [STEP])
    assert [item.phase for item in placed] == ["forward", "backward", "backward"]


def test_bare_names_get_their_ordinal_in_the_step_and_full_names_stay():
    steps = [Step("train", 0, 100), Step("train", 100, 200)]
    executions = [
        execution(name, at) for name, at in (("MatMul", 1), ("A/MatMul-op0", 2), ("MatMul", 3), ("MatMul", 101))
    ]
    assert [item.name for item in place(executions, steps)] == ["MatMul#1", "A/MatMul-op0", "MatMul#2", "MatMul#1"]


def test_a_name_that_has_several_shapes_in_a_step_is_several_operators():
    shapes = ["[4, 2]", "[4, 16]", "[4, 2]"] * 2
    launched = [Execution("Default/BiasAddGrad-op0", at, 1, "BiasAddGrad", form) for at, form in enumerate(shapes)]
    first, second = "Default/BiasAddGrad-op0", "Default/BiasAddGrad-op0#2"
    placed = place(launched, [Step("train", 0, 3), Step("train", 3, 6)])
    assert [item.name for item in placed] == [first, second, first] * 2


GRAPH = ["Default/net/Cast-op0", "Default/net/MatMul-op0", "Gradients/net/MatMul-op1", "Gradients/net/Mul-op2"]


def graph_steps(*orders):
    """Steps 1000 apart, whose executions are GRAPH's at these positions, 10 apart."""
    steps = [Step("train", 1000 * number, 1000 * number + 999) for number in range(len(orders))]
    executions = [
        execution(GRAPH[index], 1000 * number + 10 * place_, 5)
        for number, order in enumerate(orders)
        for place_, index in enumerate(order)
    ]
    return place(executions, steps), steps


def test_points_are_the_first_forward_and_the_last_backward_operator():
    placed, steps = graph_steps((0, 1, 2, 3))
    points = choose_points(placed, steps, None, None)
    assert (points.fp, points.bp) == (GRAPH[0], GRAPH[3])
    assert step_points(placed, points) == {0: (0, 35)}


def test_points_are_what_most_steps_say():
    placed, steps = graph_steps((1, 0, 3, 2), (0, 1, 2, 3), (0, 1, 2, 3))
    points = choose_points(placed, steps, None, None)
    assert (points.fp, points.bp) == (GRAPH[0], GRAPH[3])
    assert step_points(placed, points)[0] == (10, 25)


def test_the_backward_operator_that_ends_last_is_bp_though_it_started_earlier():
    placed = place([execution(GRAPH[2], 10, 80), execution(GRAPH[3], 20, 5)], [Step("train", 0, 100)])
    assert choose_points(placed, [Step("train", 0, 100)], None, None).bp == GRAPH[2]


def test_evaluation_and_operators_between_steps_choose_no_points():
    steps = [Step("eval", 0, 100)]
    placed = place([execution(GRAPH[1], 10), execution(GRAPH[2], 500)], steps)
    assert choose_points(placed, steps, None, None) == choose_points([], [], None, None)


def test_a_point_of_the_user_wins_over_the_automatic_one():
    placed, steps = graph_steps((0, 1, 2, 3))
    points = choose_points(placed, steps, GRAPH[1], GRAPH[2])
    assert (points.fp, points.bp) == (GRAPH[1], GRAPH[2])
    assert step_points(placed, points) == {0: (10, 25)}


def test_of_a_point_that_runs_several_times_fp_is_the_first_start_and_bp_the_last_end():
    step = Step("train", 0, 100)
    placed = place([execution(GRAPH[1], at, 5) for at in (10, 30, 20)], [step])
    assert step_points(placed, choose_points(placed, [step], GRAPH[1], GRAPH[1])) == {0: (10, 35)}


def test_a_point_whose_name_several_shapes_share_is_all_of_them_unless_it_has_the_number_of_one():
    step, name = Step("train", 0, 100), "Default/BiasAddGrad-op0"
    placed = place([Execution(name, at, 5, None, shapes) for at, shapes in ((10, "[4, 2]"), (30, "[4, 16]"))], [step])
    assert step_points(placed, choose_points(placed, [step], name, name)) == {0: (10, 35)}
    assert step_points(placed, choose_points(placed, [step], f"{name}#2", "BiasAddGrad-op0")) == {0: (30, 35)}


def test_a_point_matches_by_its_full_name():
    assert match_point("b", ["a/b", "b"], "FP_POINT") == "b"


def test_a_point_matches_by_an_ending_that_only_one_operator_has():
    assert match_point("MatMul-op1", GRAPH, "BP_POINT") == GRAPH[2]


def test_an_ending_that_several_operators_have_is_refused_with_their_names():
    with pytest.raises(PointNotFoundError, match="FP_POINT `-op0` matches several operators") as caught:
        match_point("-op0", GRAPH, "FP_POINT")
    assert caught.value.hint == f"did you mean: `{GRAPH[0]}`, `{GRAPH[1]}`"


def test_a_point_that_matches_nothing_is_refused_with_near_names():
    with pytest.raises(PointNotFoundError, match="BP_POINT `Default/net/MatMull-op0` matches no operator") as caught:
        match_point("Default/net/MatMull-op0", GRAPH, "BP_POINT")
    assert f"`{GRAPH[1]}`" in caught.value.hint


def test_a_point_like_no_operator_still_lists_some():
    with pytest.raises(PointNotFoundError) as caught:
        match_point("zzz", GRAPH, "FP_POINT")
    assert GRAPH[0] in caught.value.hint


def test_without_recorded_operators_a_point_is_unknown_and_no_error():
    assert match_point("anything", [], "FP_POINT") is None
