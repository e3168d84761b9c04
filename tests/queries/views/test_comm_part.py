"""Communication in the phases of a step: hand-made events in a step from 0 to 100 with FP at 20 and BP at 70."""

import pytest
from table_rows import phased_step

GIVE = "SELECT comm_ns, data_wait_comm_ns, forward_backward_comm_ns, tail_comm_ns FROM comm_part"


def event(start, dur, **more):
    return {"step": 0, "start_ns": start, "dur_ns": dur, **more}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([event(0, 10)], (10, 10, 0, 0), id="before FP"),
        pytest.param([event(30, 10)], (10, 0, 10, 0), id="between"),
        pytest.param([event(80, 10)], (10, 0, 0, 10), id="in the tail"),
        pytest.param([event(10, 80)], (80, 10, 50, 20), id="across all"),
        pytest.param([event(30, 10), event(30, 10)], (10, 0, 10, 0), id="twice the same"),
        pytest.param([event(30, 40), event(35, 5), event(60, 20)], (50, 0, 40, 10), id="overlapping"),
        pytest.param([event(-50, 60), event(95, 50)], (15, 10, 0, 5), id="cut at the step"),
        pytest.param([event(-50, 10)], (0, 0, 0, 0), id="outside"),
    ],
)
def test_overlapping_events_count_once_in_each_phase(look, events, expected):
    assert look(GIVE, {"step": [phased_step()], "collective": events}) == [expected]


def test_phases_that_are_not_known_are_null_and_the_sum_stays(look):
    tables = {"step": [phased_step(bp_ns=None)], "collective": [event(10, 80)]}
    assert look(GIVE, tables) == [(80, 10, None, None)]
    tables = {"step": [phased_step(fp_ns=None)], "collective": [event(10, 80)]}
    assert look(GIVE, tables) == [(80, None, None, None)]


def test_a_step_without_events_has_none_and_a_rank_without_events_no_row(look):
    tables = {"step": [phased_step(), phased_step(1), phased_step(rank=1)], "collective": [event(30, 10)]}
    text = "SELECT rank, step, events, comm_ns FROM comm_part ORDER BY rank, step"
    assert look(text, tables) == [(0, 0, 1, 10), (0, 1, 0, 0)]


def test_beside_op_windows_nothing_is_known(look):
    tables = {"step": [phased_step(), phased_step(1, in_window=True)], "collective": [event(30, 10, step=1)]}
    assert look("SELECT step, comm_ns FROM comm_part", tables) == [(1, 10)]


def test_a_window_s_step_without_anything_recorded_is_not_known(look):
    windowed = [phased_step(number, in_window=True) for number in range(3)]
    tables = {
        "step": windowed,
        "collective": [event(30, 10, step=1)],
        "op": [{"op_id": 0, "step": 2, "start_ns": 1, "dur_ns": 1, "track": "0"}],
    }
    assert look("SELECT step, comm_ns FROM comm_part ORDER BY step", tables) == [(1, 10), (2, 0)]


def test_the_source_s_step_number_is_the_position(look):
    tables = {"step": [phased_step(source_step=40)], "collective": [event(30, 10)]}
    assert look("SELECT position FROM comm_part", tables) == [(40,)]
