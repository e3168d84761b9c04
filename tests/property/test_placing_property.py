"""Operator executions and steps: nothing is lost, nothing is in two places."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.operators import choose_points, place, step_points
from pipeprof.read.spool.step_rows import Step

PHASES = {"forward", "backward", "gradients", "optimizer", "after", "communication", "other"}
NAMES = ["MatMul", "Ones", "ReluGrad", "ApplyMomentum", "AllReduce", "Default/A-op0", "Gradients/Default/B-op1"]
times = st.integers(0, 500)
executions = st.lists(st.builds(Execution, st.sampled_from(NAMES), times, st.integers(0, 20)), max_size=60).map(
    lambda found: sorted(found, key=lambda one: one.start_ns)
)
steps = st.lists(st.tuples(st.integers(0, 10), st.integers(1, 60)), max_size=8).map(
    lambda parts: [
        Step("train", sum(sum(p) for p in parts[:n]) + gap, sum(sum(p) for p in parts[: n + 1]))
        for n, (gap, _) in enumerate(parts)
    ]
)


@given(executions, steps)
def test_every_execution_is_placed_once_and_in_the_step_that_holds_its_start(found, made):
    placed = place(found, made)
    assert Counter(item.execution for item in placed) == Counter(found)
    for item in placed:
        holding = [index for index, step in enumerate(made) if step.start <= item.execution.start_ns < step.end]
        assert [item.step] == (holding or [None])
        assert item.phase in PHASES


@given(executions, steps)
def test_bare_names_are_unique_within_a_step(found, made):
    names = Counter((item.step, item.name) for item in place(found, made) if "/" not in item.name)
    assert all(count == 1 for count in names.values())


@given(executions, steps)
def test_points_lie_in_their_steps_and_fp_is_a_start_of_an_execution(found, made):
    placed = place(found, made)
    for index, (fp, _) in step_points(placed, choose_points(placed, made, None, None)).items():
        if fp is not None:
            assert made[index].start <= fp < made[index].end
            assert fp in {one.start_ns for one in found}
