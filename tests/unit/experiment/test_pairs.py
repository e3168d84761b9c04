"""Order of the runs, rates of a run, ratios of pairs."""

from __future__ import annotations

import pytest

from pipeprof.experiment.pairs import order, ratio_of, steady_rate

MS = 1_000_000


def step(number, kind="train", dur=10, rank=0):
    start = number * 100 * MS
    return {"kind": kind, "rank": rank, "kind_step": number, "start_ns": start, "end_ns": start + dur * MS}


def test_sides_alternate_in_balance():
    assert order(3) == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]


def test_rate_leaves_out_warmup_evaluation_and_the_first_quarter():
    rows = [step(0, "warmup", 900), *(step(n, dur=50) for n in range(1, 4)), *(step(n) for n in range(4, 13))]
    rows += [step(n, "eval", 500) for n in range(20)]
    rate = steady_rate(rows)
    assert (rate.per_second, rate.steps) == (pytest.approx(100.0), 9)


def test_the_slowest_rank_counts():
    rows = [step(n, rank=rank, dur=10 + 10 * rank) for n in range(10) for rank in (0, 1)]
    assert steady_rate(rows).per_second == pytest.approx(50.0)


def test_a_few_steps_make_no_rate():
    assert steady_rate([step(n) for n in range(5)]) is None
    assert steady_rate([]) is None


def test_ratio_is_the_median_of_the_pairs():
    found = ratio_of([10.0, 10.0, 20.0], [20.0, 25.0, 30.0])
    assert (found.ratio, found.low, found.high) == (2.0, 1.5, 2.5)
