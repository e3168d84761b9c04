from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PHASES = "SELECT step, phase, total_ns FROM step_phase ORDER BY step, phase"


def test_phases_by_what_is_known_of_a_step(look):
    steps = [
        {"step": 0, "kind": "train", "start_ns": 0, "fp_ns": 1, "bp_ns": 7, "end_ns": 10},
        {"step": 1, "kind": "train", "start_ns": 10, "fp_ns": 12, "end_ns": 20},
        {"step": 2, "kind": "train", "start_ns": 20, "end_ns": 30},
        {"step": 3, "kind": "train", "start_ns": 30, "bp_ns": 35, "end_ns": 40},
    ]
    assert look(PHASES, {"step": steps}) == [
        (0, "data_wait", 1),
        (0, "forward_backward", 6),
        (0, "tail", 3),
        (1, "compute", 8),
        (1, "data_wait", 2),
        (2, "whole", 10),
        (3, "whole", 10),
    ]


def test_a_step_keeps_what_the_step_table_says_of_it(look):
    facts = {"step": 5, "kind_step": 3, "kind": "eval", "epoch": 2, "pipeline_id": 1, "in_window": True}
    times = {"start_ns": 0, "end_ns": 9}
    text = "SELECT kind_step, kind, epoch, pipeline_id, in_window, phase FROM step_phase"
    assert look(text, {"step": [{**facts, **times}]}) == [(3, "eval", 2, 1, True, "whole")]


@st.composite
def _steps(draw):
    clock = 0
    rows = []
    for number in range(draw(st.integers(1, 6))):
        parts = draw(st.lists(st.integers(0, 10**12), min_size=3, max_size=3))
        fp, bp, end = clock + parts[0], clock + sum(parts[:2]), clock + sum(parts)
        row = {"step": number, "kind": "train", "start_ns": clock, "end_ns": end}
        row |= {"fp_ns": draw(st.sampled_from([fp, None])), "bp_ns": draw(st.sampled_from([bp, None]))}
        rows.append(row)
        clock = end
    return rows


# `look` makes a new run folder each time, so one of them serves all examples.
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps())
def test_phases_add_up_to_the_step(steps, look):
    sums = Counter()
    for step, _, total_ns in look(PHASES, {"step": steps}):
        sums[step] += total_ns
    assert sums == {row["step"]: row["end_ns"] - row["start_ns"] for row in steps}


def test_a_backward_end_that_no_operator_tells_divides_no_phase(look):
    steps = [
        {"step": n, "kind": "train", "start_ns": 0, "fp_ns": 1, "bp_ns": 7, "end_ns": 10, "bp_source": source}
        for n, source in enumerate(["op", "update", None])
    ]
    found = look("SELECT step, phase FROM step_phase WHERE phase = 'tail' ORDER BY step", {"step": steps})
    assert found == [(0, "tail"), (2, "tail")]
    found = look("SELECT step, bp_ns FROM train_step ORDER BY step", {"step": steps})
    assert found == [(0, 7), (1, None), (2, 7)]
