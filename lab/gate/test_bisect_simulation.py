"""Noisy bisection over 64 commits with one of +5 %: how often it names the right one, a wrong one, and after how many runs."""

import gate_measured
import pytest
from bisect_simulation import bisect, plain, rates, streams

pytestmark = pytest.mark.slow  # simulates many bisections


@pytest.fixture(scope="module")
def jobs():
    return streams(150, 11)


SOURCES = [
    "quiet",
    "samejob",
    "drift",
    "slow stretches",
    "tails",
    "two levels",
    *(["scaled"] if gate_measured.available() else []),
]


@pytest.mark.parametrize("source", SOURCES)
def test_the_right_commit_is_named_where_plain_bisection_names_a_wrong_one(jobs, source):
    found = rates(jobs[source], bisect, 11)
    assert found.right >= 0.95
    assert found.wrong <= 0.01
    assert found.runs <= 60
    assert rates(jobs[source], plain, 11).wrong >= 0.5


def test_identical_code_has_no_slow_commit(jobs):
    named = [bisect(one, slow=1000)[0] for one in jobs["samejob"][:50]]
    assert sum(one is not None for one in named) <= 1
