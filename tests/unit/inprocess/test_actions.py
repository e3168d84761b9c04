"""The schedule as a function of the step, beside the description of torch.profiler.schedule and a second rendering."""

from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof import ProfilerAction, schedule
from pipeprof.errors import UsageError
from pipeprof.inprocess.actions import NEVER, action_of

NONE, WARMUP, RECORD, SAVE = ProfilerAction

spans = st.integers(0, 4)
settings_drawn = st.fixed_dictionaries(
    {"skip_first": spans, "wait": spans, "warmup": spans, "active": st.integers(1, 4), "repeat": st.integers(0, 3)}
)


def test_the_described_example_step_by_step():
    plan = schedule(skip_first=10, wait=5, warmup=1, active=3, repeat=2)
    cycle = [NONE] * 5 + [WARMUP, RECORD, RECORD, SAVE]
    assert [plan(step) for step in range(60)] == [NONE] * 10 + cycle * 2 + [NONE] * 32
    plan = schedule(wait=1, warmup=1, active=2)
    assert [step for step in range(8) if plan(step) is SAVE] == [3, 7]  # of the tutorial
    assert schedule(active=1)(0) is SAVE


def test_without_repeat_cycles_go_on():
    plan = schedule(wait=1, active=1)
    assert [plan(step) for step in range(1000, 1004)] == [NONE, SAVE, NONE, SAVE]


def _written_out(skip_first, wait, warmup, active, repeat, steps):
    cycle = [NONE] * wait + [WARMUP] * warmup + [RECORD] * (active - 1) + [SAVE]
    cycles = repeat or steps
    return ([NONE] * skip_first + cycle * cycles + [NONE] * steps)[:steps]


@given(drawn=settings_drawn)
def test_any_schedule_is_its_cycle_written_out(drawn):
    plan = schedule(**drawn)
    assert [plan(step) for step in range(50)] == _written_out(**drawn, steps=50)


@given(drawn=settings_drawn, step=st.integers(0, 60))
def test_a_schedule_wakes_in_the_first_step_in_which_something_is_done(drawn, step):
    """And is over where nothing follows."""
    plan = schedule(**drawn)
    busy = [later for later in range(step, step + 40) if plan(later) is not NONE]
    assert plan.wakes(step) == (busy[0] if busy else NEVER)
    assert plan.over(step) == (not busy)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"active": 0}, "active"), ({"active": 1, "wait": -1}, "wait"), ({"active": 2.0}, "active"), ({"active": True}, "active")],
)  # fmt: skip
def test_impossible_schedules_are_refused_by_name(wrong, named):
    with pytest.raises(UsageError, match=f"schedule: {named} is "):
        schedule(**wrong)


def test_actions_of_other_profilers_are_taken_by_name_and_anything_else_is_none():
    other = Enum("ProfilerAction", ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"])
    assert [action_of(lambda _step, one=one: one, 0) for one in other] == list(ProfilerAction)
    for wrong in ("record", None, 3, Enum("Other", ["START"]).START):
        with pytest.raises(UsageError, match=r"schedule\(7\) is .*, expected a pipeprof.ProfilerAction"):
            action_of(lambda _step, wrong=wrong: wrong, 7)
    with pytest.raises(UsageError, match="count from 0"):
        schedule(active=1)(-1)
