"""Order and number of the runs, rates of a run and of its parts, ratios of pairs."""

import pytest

from pipeprof.experiment.pairs import Plan, rates_of_parts, ratio_of, sides, starts_of, steady_rate

MS = 1_000_000


def step(number, kind="train", dur=10, rank=0, epoch=None):
    start = number * 100 * MS
    times = {"start_ns": start, "end_ns": start + dur * MS}
    return {"kind": kind, "rank": rank, "kind_step": number, "epoch": epoch} | times


def test_sides_alternate_in_balance():
    assert [sides(pair) for pair in range(3)] == [("a", "b"), ("b", "a"), ("a", "b")]


@pytest.mark.parametrize(
    ("pairs", "decided", "expected"),
    [
        (1, True, None),
        (2, True, "decided"),
        (2, False, None),
        (7, False, None),
        (8, False, "pairs"),
        (8, True, "decided"),
    ],
)
def test_pairs_are_added_until_they_decide(pairs, decided, expected):
    assert Plan(2, 8).stop(pairs, 1e6, decided=decided) == expected


@pytest.mark.parametrize(("pairs", "spent_s", "expected"), [(1, 29.0, None), (1, 31.0, "budget"), (2, 41.0, "budget")])
def test_a_pair_that_would_not_end_in_time_is_not_begun(pairs, spent_s, expected):
    assert Plan(2, 8, budget_s=60.0).stop(pairs, spent_s, decided=False) == expected


def test_rate_leaves_out_warmup_evaluation_and_the_first_quarter():
    rows = [step(0, "warmup", 900), *(step(n, dur=50) for n in range(1, 4)), *(step(n) for n in range(4, 13))]
    rows += [step(n, "eval", 500) for n in range(20)]
    rate = steady_rate(rows)
    assert (rate.per_second, rate.steps) == (pytest.approx(100.0), 9)


def test_the_slowest_rank_counts():
    rows = [step(n, rank=rank, dur=10 + 10 * rank) for n in range(10) for rank in (0, 1)]
    assert steady_rate(rows).per_second == pytest.approx(50.0)


def test_starting_workers_between_two_steps_takes_time_and_within_one_it_is_in_the_step_already():
    """Steps of 10 ms begin every 100 ms: of the last nine one has a start of 80 ms behind it, of which 70 are between."""
    rows = [step(n) for n in range(12)]
    loader = {"role": "train", "rank": 0, "iteration": 1, "closed_ns": None, "closing_ns": None}
    made = loader | {"created_ns": 500 * MS, "ready_ns": 580 * MS}
    assert steady_rate(rows, starts_of([made])).per_second == pytest.approx(9e3 / (90 + 70))
    ended = made | {"closed_ns": 850 * MS, "closing_ns": 30 * MS}
    assert steady_rate(rows, starts_of([ended])).per_second == pytest.approx(9e3 / (90 + 70 + 30))
    for other in ({"rank": 1}, {"role": "eval"}, {"iteration": None}, {"created_ns": 0, "ready_ns": 90 * MS}):
        assert steady_rate(rows, starts_of([made | other])).per_second == pytest.approx(100.0)


def test_a_few_steps_make_no_rate():
    assert steady_rate([step(n) for n in range(5)]) is None
    assert steady_rate([]) is None


def test_ratio_is_the_median_of_the_pairs():
    found = ratio_of([10.0, 10.0, 20.0], [20.0, 25.0, 30.0])
    assert (found.ratio, found.low, found.high) == (2.0, 1.5, 2.5)


def test_the_parts_of_a_run_have_rates():
    """After the first quarter 10 ms, later 20 ms; the first step of an epoch is long and in no part."""
    slow = dict.fromkeys(range(61, 101), 20)
    rows = [step(n, dur=900 if n % 25 == 0 else slow.get(n, 10), epoch=n // 25) for n in range(101)]
    rates = rates_of_parts(rows)
    assert len(rates) == 8
    assert rates[:3] == pytest.approx([100.0] * 3)
    assert rates[-3:] == pytest.approx([50.0] * 3)


def test_a_short_run_has_no_parts():
    assert rates_of_parts([step(n) for n in range(50)]) == []
    assert rates_of_parts([]) == []
