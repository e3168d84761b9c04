"""Which commit a noisy bisection measures next, and when it names one."""

import numpy as np
import pytest

from pipeprof.verdict.gate.bisection import next_commit, posterior, settled, sides


def test_probabilities_add_up_and_what_was_measured_decides():
    logs = np.random.default_rng(3).normal(0, 0.01, 12)
    measured = [(at, float(np.exp(noise + 0.1 * (at >= 3)))) for at, noise in zip([0, 4, 2, 3] * 3, logs, strict=True)]
    now = posterior(measured, 4)
    assert now.none + now.first.sum() == pytest.approx(1)
    assert now.first.argmax() == 3
    assert now.first[0] == 0
    assert now.likeliest([0, 2, 4])[0] == range(3, 5)  # 3 cannot be measured: it and 4 cannot be told apart


def test_a_commit_is_named_when_both_of_its_sides_were_measured_five_times_and_one_process_far_off_moves_little():
    measured = [(0, 1.0), (8, 1.2), (3, 1.0), (4, 1.2)] * 4
    now = posterior(measured, 8)
    assert now.first[4] > 0.995
    assert not settled(now, [4, 0, 0, 4, 5, 0, 0, 0, 4], range(9))
    assert next_commit(now, [4, 0, 0, 4, 5, 0, 0, 0, 4], range(9)) == 3
    assert settled(now, [4, 0, 0, 5, 5, 0, 0, 0, 4], range(9))
    measured = [(0, 1.0), (8, 1.05), (3, 1.001), (4, 1.049)] * 4
    sure, disturbed = posterior(measured, 8), posterior([*measured, (3, 1.6)], 8)
    assert disturbed.first.argmax() == sure.first.argmax() == 4
    assert disturbed.first[4] > 0.99


def test_the_next_run_is_where_a_change_is_as_likely_as_not_and_never_the_same_twice_in_a_row():
    ends = [(0, 1.0), (8, 1.2)] * 4
    now = posterior(ends, 8)
    assert next_commit(now, [4, *[0] * 7, 4], range(9)) == 4
    assert next_commit(now, [4, *[0] * 7, 1], range(9)) == 8  # the ends first
    assert next_commit(now, [4, *[0] * 7, 4], [0, 1, 7, 8]) in (1, 7)
    measured = [(0, 1.0), (8, 1.05), (3, 1.001), (5, 1.049), (4, 1.03)] * 3
    now, counts = posterior(measured, 8), [3, 0, 0, 3, 3, 3, 0, 0, 3]
    beside = sides(now, range(9))
    assert {next_commit(now, counts, range(9), at) for at in beside} == set(beside)
    assert all(next_commit(now, counts, range(9), at) != at for at in beside)
    now = posterior([(0, 1.0), (8, 1.2)] * 4, 8)
    assert next_commit(now, [4, *[0] * 7, 4], range(9), seconds=dict.fromkeys(range(9), 10.0)) == 4
    assert next_commit(now, [4, *[0] * 7, 4], range(9), seconds={0: 10.0, 4: 60.0, 8: 10.0}) in (3, 5)
