"""Which operator the pool's changes belong to."""

from __future__ import annotations

import pytest

from pipeprof.read.mindspore_ops import Execution, PoolSample
from pipeprof.read.spool.pool import changes


def pool(*samples):
    return [PoolSample(at, size, 1 << 30, size) for at, size in samples]


def executions(*times):
    return [Execution(f"op{number}", start, end - start, "MatMul") for number, (start, end) in enumerate(times)]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([(5, 100), (8, 612)], [512, 0]),  # what a kernel writes is allocated before it starts
        ([(5, 100), (15, 612)], [512, 0]),  # or while it runs: its workspace
        ([(5, 612), (22, 100)], [-512, 0]),  # what nothing reads any more is freed behind the last reader
        ([(5, 100), (8, 612), (22, 100), (25, 1124)], [0, 1024]),
        ([(5, 100), (8, 100)], [0, 0]),
        ([(1, 612), (5, 100)], [0, 0]),  # freed before the first operator: not its
        ([(41, 100), (45, 612)], [0, 0]),  # allocated behind the last: for what was not recorded
    ],
)
def test_allocations_are_of_the_next_operator_and_releases_of_the_one_before(samples, expected):
    assert changes(pool(*samples), executions((10, 20), (30, 40)), [(0, 50)]) == expected


def test_a_change_between_two_windows_is_of_no_operator_and_a_window_without_samples_says_nothing():
    ran = executions((10, 20), (110, 120), (210, 220))
    samples = pool((5, 0), (8, 512), (108, 4096), (115, 5120))
    assert changes(samples, ran, [(0, 50), (100, 150), (200, 250)]) == [512, 1024, None]
