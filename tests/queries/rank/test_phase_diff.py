"""Differences within a step against the median of the other ranks."""

import pytest
from table_rows import own_times


def of(rows, phase, *columns):
    return {row["rank"]: tuple(row[name] for name in columns) for row in rows if row["phase"] == phase}


@pytest.mark.parametrize(
    ("owns", "expected"),
    [
        ([10, 50], {0: -40.0, 1: 40.0}),
        ([10, 20, 60], {0: -30.0, 1: -15.0, 2: 45.0}),
        ([10, 20, 40, 80], {0: -30.0, 1: -20.0, 2: 20.0, 3: 60.0}),
        ([5, 5, 5, 5, 90], {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0, 4: 85.0}),
    ],
)
def test_a_rank_is_compared_with_the_median_of_the_others(ask, owns, expected):
    rows = ask("rank/phase_diff", own_times({rank: [own] for rank, own in enumerate(owns)}))
    assert of(rows, "own", "diff_ns") == {rank: (diff,) for rank, diff in expected.items()}


def test_what_all_ranks_have_in_common_cancels(ask):
    rows = ask("rank/phase_diff", own_times({0: [10, 300, 600], 1: [12, 302, 602]}))
    assert of(rows, "own", "diff_ns", "diff_low_ns", "diff_high_ns", "diff_sd_ns")[1] == (2.0, 2.0, 2.0, 0.0)


def test_the_phases_of_a_step_trace_and_their_share(ask):
    rows = ask(
        "rank/phase_diff",
        own_times({0: [400], 1: [500]}),
        give="rank phase source ranks steps step_ns median_ns diff_ns",
    )
    found = {row[1]: row[2:] for row in rows if row[0] == 1}
    assert found["until_bp"] == ("trace", 2, 1, 1000.0, 500.0, 100.0)
    assert found["communication"] == ("trace", 2, 1, 1000.0, 500.0, -100.0)
    assert found["step"][-1] == 0.0


def test_halves_of_the_steps_and_steps_that_are_held_up(ask):
    rows = ask("rank/phase_diff", own_times({0: [100] * 5, 1: [100, 100, 100, 250, 350]}))
    assert of(rows, "own", "early_ns", "late_ns", "held_up", "held_up_ns") == {
        0: (0.0, -200.0, 0, None),
        1: (0.0, 200.0, 2, 400.0),
    }


@pytest.mark.parametrize(
    ("owns", "pairs", "same"),
    [([100, 300, 100, 300], 3, 0), ([100, 100, 300, 300], 3, 2), ([100, 200, 300], 0, 0), ([5, 5, 5], 0, 0)],
)
def test_whether_steps_resemble_the_step_before(ask, owns, pairs, same):
    rows = ask("rank/phase_diff", own_times({0: [100] * len(owns), 1: owns}))
    assert of(rows, "own", "pairs", "same_side")[1] == (pairs, same)


def test_runs_of_steps_that_are_held_up(ask):
    rows = ask("rank/phase_diff", own_times({0: [100] * 6, 1: [500, 500, 100, 500, 150, 500]}))
    assert of(rows, "own", "held_up", "episodes")[1] == (4, 3)


def test_steps_that_fewer_than_half_of_the_ranks_have_do_not_count(ask):
    times = {0: [10, 10], 1: [20, 20], 2: [30, None], 3: [40, None], 4: [50, None]}
    rows = ask("rank/phase_diff", own_times(times))
    assert set(of(rows, "own", "steps").values()) == {(1,)}


def test_other_stages_are_not_compared(ask):
    made = own_times({0: [10], 1: [20], 2: [500], 3: [540]})
    made["step_split"] = [{"rank": 0, "stage_index": 0}, {"rank": 2, "stage_index": 1}]
    rows = ask("rank/phase_diff", made)
    assert of(rows, "own", "peers", "diff_ns") == {0: (0, -10.0), 1: (0, 10.0), 2: (1, -40.0), 3: (1, 40.0)}


def test_one_rank_alone_has_no_rows(ask):
    assert ask("rank/phase_diff", own_times({0: [10, 20]})) == []
