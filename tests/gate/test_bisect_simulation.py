"""Noisy bisection over 64 commits with one of +5 %: how often it names the right one, a wrong one, and after how many runs."""

from __future__ import annotations

import numpy as np
import pytest
from bisect_simulation import bisect, plain, rates, streams

from pipeprof.verdict.gate.bisection import next_commit, posterior


@pytest.fixture(scope="module")
def jobs():
    return streams(150, 11)


@pytest.mark.parametrize("source", ["quiet", "samejob", "scaled"])
def test_the_right_commit_is_named_where_plain_bisection_names_a_wrong_one(jobs, source):
    if source not in jobs:
        pytest.skip("the measured processes are not there")
    found = rates(jobs[source], bisect, 11)
    assert found.right >= 0.95
    assert found.wrong <= 0.01
    assert found.runs <= 60
    assert rates(jobs[source], plain, 11).wrong >= 0.5


def test_identical_code_has_no_slow_commit(jobs):
    named = [bisect(one, slow=1000)[0] for one in jobs["samejob"][:50]]
    assert sum(one is not None for one in named) <= 1


def test_probabilities_add_up_and_what_was_measured_decides():
    logs = np.random.default_rng(3).normal(0, 0.01, 12)
    measured = [(at, float(np.exp(noise + 0.1 * (at >= 3)))) for at, noise in zip([0, 4, 2, 3] * 3, logs, strict=True)]
    now = posterior(measured, 4)
    assert now.none + now.first.sum() == pytest.approx(1)
    assert now.first.argmax() == 3
    assert now.first[0] == 0
    assert now.likeliest([0, 2, 4])[0] == range(3, 5)  # 3 cannot be measured: it and 4 cannot be told apart


def test_the_next_run_is_where_a_change_is_as_likely_as_not():
    ends = [(0, 1.0), (8, 1.2)] * 4
    now = posterior(ends, 8)
    assert next_commit(now, [4, *[0] * 7, 4], range(9)) == 4
    assert next_commit(now, [4, *[0] * 7, 1], range(9)) == 8  # the ends first
    assert next_commit(now, [4, *[0] * 7, 4], [0, 1, 7, 8]) in (1, 7)
