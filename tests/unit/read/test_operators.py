"""Operator executions: their step, their phase, and the points FP and BP."""

import pytest

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.marks import Kind, Mark
from pipeprof.read.spool.operators import PointNotFoundError, choose_points, match_point, place, step_points
from pipeprof.read.spool.step_rows import Step


def execution(name, start, dur=1, kind=None, shapes=None):
    return Execution(name, start, dur, kind, shapes)


def rows(*begins):
    return [Mark(Kind.FETCH, 0, 0, 0, begin, begin + 5) for begin in begins]


STEP = Step("train", 0, 1000, fetches=rows(0))
TWO = [Step("train", 0, 100), Step("train", 100, 200)]


@pytest.mark.parametrize(
    ("steps", "starts", "expected"),
    [
        ([*TWO, Step("train", 300, 400)], (0, 99, 100, 250, 300, 400), [0, 0, 1, None, 2, None]),
        # an evaluation inside a step has its own
        ([TWO[0], Step("eval", 40, 50), Step("eval", 50, 60), TWO[1]], (10, 45, 55, 70, 150), [0, 1, 2, 0, 3]),
        ([Step("train", 10, 20)], (5,), [None]),
        ([], (5,), [None]),
    ],
)
def test_an_execution_belongs_to_the_step_in_which_it_started(steps, starts, expected):
    placed = place([execution("A", at) for at in starts], steps)
    assert [item.step for item in placed] == expected


def test_placed_executions_come_in_order_of_start():
    placed = place([execution("B", 150), execution("C", 300), execution("A", 50)], TWO)
    assert [item.execution.start_ns for item in placed] == [50, 150, 300]


NET = "Default/network-WithLossCell/_backbone-Net"
REDUCER = "Default/grad_reducer-DistributedGradReducer"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # in graph mode the scope tells, and what follows a gradient there stays what it is
        ([f"{NET}/MatMul-op0", f"Gradients/{NET}/Grad_MatMul/MatMul-op1",
          "Default/optimizer-Momentum/ApplyMomentum-op0", f"{REDUCER}/Mul-op0", f"{REDUCER}/AllReduce-op0"], "forward backward optimizer other communication"),
        (["Gradients/Default/Grad_MatMul/MatMul-op1", "Default/MatMul-op0", "Default/ReluGrad-op3"],
         "backward forward forward"),
        # in PyNative mode the seed of the gradients begins the backward pass, or the first gradient without one
        (["MatMul", "ReLU", "Ones", "MatMul", "ApplyMomentum"], "forward forward backward backward optimizer"),
        (["MatMul", "ReluGrad", "MatMul"], "forward backward backward"),
        (["MatMul", "Conv2DBackpropInput", "MatMul"], "forward backward backward"),
        # what follows the update is after it, also a second forward pass; gradients there are of a second network
        (["MatMul", "MatMulGrad", "ApplyMomentum", "Mul", "MatMul", "Ones", "BiasAdd"],
         "forward backward optimizer after after after after"),
        (["MatMul", "MatMulGrad", "Adam", "Mul", "ReluGrad", "Adam", "Mul"],
         "forward backward optimizer forward backward optimizer after"),
    ],
)  # fmt: skip
def test_phases_of_a_step(names, expected):
    placed = place([execution(name, 10 + number) for number, name in enumerate(names)], [STEP])
    assert [item.phase for item in placed] == expected.split()


@pytest.mark.parametrize(
    ("step", "executions", "expected"),
    [
        # each micro step of gradient accumulation begins with its forward pass
        (Step("train", 0, 1000, fetches=rows(0, 100)), [("MatMul", 10), ("ReluGrad", 20), ("MatMul", 110),
         ("ReluGrad", 120), ("ApplyMomentum", 200)], "forward backward forward backward optimizer"),
        # an evaluation has no backward pass
        (Step("eval", 0, 1000, fetches=rows(0)), [("Ones", 10), ("MatMul", 11), ("AllReduce", 12)],
         "forward forward communication"),
        # the launch list knows the type better than the name
        (STEP, [("MatMul", 10), ("thing", 20, 1, "ReluGrad"), ("MatMul", 30)], "forward backward backward"),
    ],
)  # fmt: skip
def test_phases_follow_the_batches_and_the_types(step, executions, expected):
    assert [item.phase for item in place([execution(*one) for one in executions], [step])] == expected.split()


def test_what_pynative_launches_behind_a_compiled_update_is_after_it():
    names = ["Gradients/Default/Grad_MatMul/MatMul-op1", "Default/ApplyMomentum-op0", "Mul", "Assign"]
    executions = [execution(name, at) for name, at in zip(names, (10, 20, 60, 70), strict=True)]
    placed = place(executions, [STEP], None, [Mark(Kind.UPDATE, 2, 0, 0, 5, 50)])
    assert [item.phase for item in placed] == ["backward", "optimizer", "after", "after"]


def test_bare_names_get_their_ordinal_in_the_step_and_full_names_one_for_each_shape():
    executions = [execution(name, at) for name, at in (("MatMul", 1), ("A/M-op0", 2), ("MatMul", 3), ("MatMul", 101))]
    assert [item.name for item in place(executions, TWO)] == ["MatMul#1", "A/M-op0", "MatMul#2", "MatMul#1"]
    shapes, name = ["[4, 2]", "[4, 16]", "[4, 2]"] * 2, "Default/BiasAddGrad-op0"
    launched = [execution(name, at, 1, "BiasAddGrad", form) for at, form in enumerate(shapes)]
    placed = place(launched, [Step("train", 0, 3), Step("train", 3, 6)])
    assert [item.name for item in placed] == [name, f"{name}#2", name] * 2


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


def chosen(placed, steps, fp=None, bp=None):
    points = choose_points(placed, steps, fp, bp)
    return points.fp, points.bp, step_points(placed, points).get(0)


def test_points_are_the_first_forward_and_the_last_backward_operator():
    assert chosen(*graph_steps((0, 1, 2, 3))) == (GRAPH[0], GRAPH[3], (0, 35))
    assert chosen(*graph_steps((1, 0, 3, 2), (0, 1, 2, 3), (0, 1, 2, 3))) == (GRAPH[0], GRAPH[3], (10, 25))  # in most
    placed = place([execution(GRAPH[2], 10, 80), execution(GRAPH[3], 20, 5)], TWO)
    assert choose_points(placed, TWO, None, None).bp == GRAPH[2]  # it ends last, though it started earlier


def test_evaluation_and_operators_between_steps_choose_no_points():
    steps = [Step("eval", 0, 100)]
    placed = place([execution(GRAPH[1], 10), execution(GRAPH[2], 500)], steps)
    assert choose_points(placed, steps, None, None) == choose_points([], [], None, None)


def test_a_point_of_the_user_wins_over_the_automatic_one():
    assert chosen(*graph_steps((0, 1, 2, 3)), GRAPH[1], GRAPH[2]) == (GRAPH[1], GRAPH[2], (10, 25))


def test_of_a_point_that_runs_several_times_fp_is_the_first_start_and_bp_the_last_end():
    placed = place([execution(GRAPH[1], at, 5) for at in (10, 30, 20)], TWO)
    assert chosen(placed, TWO, GRAPH[1], GRAPH[1])[2] == (10, 35)
    name = "Default/BiasAddGrad-op0"  # all of its shapes, unless it has the number of one
    placed = place([execution(name, at, 5, None, shapes) for at, shapes in ((10, "[4, 2]"), (30, "[4, 16]"))], TWO)
    assert chosen(placed, TWO, name, name)[2] == (10, 35)
    assert chosen(placed, TWO, f"{name}#2", "BiasAddGrad-op0")[2] == (30, 35)


@pytest.mark.parametrize(
    ("point", "names", "found"),
    [("b", ["a/b", "b"], "b"), ("MatMul-op1", GRAPH, GRAPH[2]), ("anything", [], None)],
    ids=["full name", "the ending of one", "nothing recorded"],
)
def test_a_point_matches_by_its_full_name_or_an_ending(point, names, found):
    assert match_point(point, names, "FP_POINT") == found


@pytest.mark.parametrize(
    ("point", "said", "near"),
    [
        ("-op0", "several operators", (0, 1)),
        ("Default/net/MatMull-op0", "no operator", (1, 0, 2, 3)),
        ("zzz", "no operator", (0, 1, 2, 3)),
    ],
)
def test_a_point_that_is_not_one_operator_is_refused_with_names(point, said, near):
    with pytest.raises(PointNotFoundError, match=f"BP_POINT `{point}` matches {said}") as caught:
        match_point(point, GRAPH, "BP_POINT")
    assert caught.value.hint == "did you mean: " + ", ".join(f"`{GRAPH[number]}`" for number in near)
