"""The gate's formulas against hand-made numbers and SciPy's own tests."""

import math

import numpy as np
import pytest
from scipy import special, stats

from pipeprof.verdict.gate.planned import spending
from pipeprof.verdict.gate.statistics import (
    blocked,
    common_mode,
    holm,
    job_effect,
    job_means,
    repetitions_needed,
    welch,
)


@pytest.mark.parametrize("seed", range(5))
def test_welch_is_scipys(seed):
    random = np.random.default_rng(seed)
    base, new = random.normal(0, 1, 7), random.normal(0.5, 3, 11)
    theirs = stats.ttest_ind(new, base, equal_var=False, alternative="greater")
    both = stats.ttest_ind(new, base, equal_var=False).confidence_interval(0.95)
    change = welch(base, new)
    assert float(change.p_above()) == pytest.approx(theirs.pvalue, rel=1e-9)
    assert [float(end) for end in change.interval()] == pytest.approx([both.low, both.high])


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e133])
def test_welchs_degrees_of_freedom_are_the_same_in_every_unit(scale):
    base, new = np.array([0.0, 0.0, 3.0]), np.array([2.9, 2.9, 4.8])
    found, plain = welch(base * scale, new * scale), welch(base, new)
    assert (found.df, found.t()) == (pytest.approx(plain.df), pytest.approx(plain.t()))
    assert 2 < found.df < 4


def test_leading_axes_are_trials_values_may_have_no_spread_and_a_far_tail_is_still_a_number():
    random = np.random.default_rng(1)
    base, new = random.normal(size=(4, 3, 6)), random.normal(size=(4, 3, 9))
    whole = welch(base, new).p_above()
    assert whole.shape == (4, 3)
    assert whole[2, 1] == pytest.approx(float(welch(base[2, 1], new[2, 1]).p_above()))
    change = welch(np.full((3, 4), 0.1), np.array([[0.1] * 4, [0.2] * 4, [0.05] * 4]))
    assert change.p_above().tolist() == [0.5, 0.0, 1.0]
    low, high = change.interval()
    assert low.tolist() == high.tolist() == change.difference.tolist()
    assert change.difference[0] == 0.0
    change = welch(np.linspace(0, 1, 20), np.linspace(10, 11, 20))
    assert float(change.p_above()) == pytest.approx(stats.t.sf(float(change.t()), float(change.df)), rel=1e-6)


def test_spending_ends_at_alpha_and_starts_slowly():
    parts = spending(0.01, (5, 8, 12, 16, 20))
    assert sum(parts) == pytest.approx(0.01)
    assert parts[0] == pytest.approx(2 * stats.norm.sf(stats.norm.isf(0.005) * 2))
    assert (np.diff(parts) > 0).all()
    assert spending(0.01, (7,)) == pytest.approx([0.01])


@pytest.mark.parametrize(("p_values", "family", "held"), [
    ([0.001, 0.5, 0.002, 0.0024], 5, [0.002, 0.005, 0.0025, 0.01 / 3]), ([0.0021, 0.0022], 5, [0.002, 0.002]),
    ([0.0019], 5, [0.002]), ([0.009], 1, [0.01]), ([0.0, 0.0, 0.0], 3, [0.01 / 3, 0.005, 0.01]),
])  # fmt: skip
def test_holm_steps_down_until_the_first_failure(p_values, family, held):
    assert holm(np.array(p_values), 0.01, family).tolist() == pytest.approx(held)


@pytest.mark.parametrize(("spread", "change", "needed"), [
    (0.01, 0.02, 12), (0.02, 0.05, 9), (0.02, 0.02, 38), (0.05, 0.05, 39), (0.1, 0.1, 41), (0.1, 0.02, None),
    (0.0, 0.05, 2), (1e-300, 0.05, 2), (1e-12, 0.05, 2), (1e-6, 0.05, 2),
])  # fmt: skip
def test_repetitions_needed_as_published_for_a_level_of_two_in_a_thousand(spread, change, needed):
    assert repetitions_needed(spread, math.log1p(change), 0.002, 0.9) == needed


@pytest.mark.parametrize("alpha", [0.0016, 0.008 / 205])
def test_repetitions_needed_are_the_fewest(alpha):
    numbers = np.arange(2, 201)
    for spread in np.geomspace(0.003, 0.3, 25):
        centre = 0.05 / (spread * np.sqrt(2 / numbers))
        power = 1 - special.nctdtr(2.0 * (numbers - 1), centre, -special.stdtrit(2.0 * (numbers - 1), alpha))
        first = next((int(number) for number, found in zip(numbers, power, strict=True) if found >= 0.9), None)
        assert repetitions_needed(float(spread), 0.05, alpha, 0.9) == first


def test_the_common_mode_is_the_median_over_metrics_and_job_means_come_in_the_order_of_the_names():
    table = np.array([[1.0, 10.0], [2.0, 20.0], [9.0, np.nan]])
    assert common_mode(table).tolist() == [2.0, 15.0]
    assert common_mode(table[:, :1]).tolist() == [2.0]
    assert job_means(np.array([1.0, 5.0, 3.0]), ["b", "a", "b"]).tolist() == [5.0, 2.0]


def test_jobs_are_taken_out_by_hand_and_as_the_least_squares_fit():
    base = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    change = job_effect(base, np.array([10.0, 12.0]))
    error = base.std(ddof=1) * math.sqrt(1 / 2 + 1 / 8)
    assert (change.difference, change.error, change.df) == (pytest.approx(11 - 4.5), pytest.approx(error), 7)
    jobs = ["a", "a", "b", "b"]
    change = blocked(np.array([1.0, 2.0, 101.0, 102.0]), np.array([2.0, 3.0, 102.0, 103.0]), jobs, jobs)
    assert change.difference == pytest.approx(1.0)
    assert change.df == 8 - 2 - 1
    assert change.error == pytest.approx(math.sqrt(4 * 0.5 / 5 / 2))
    chance = np.random.default_rng(3)
    sides = ["a", "a", "a", "b", "b"], ["a", "b", "b", "b"]
    base, new = (chance.normal(size=len(jobs)) for jobs in sides)
    design = np.array([[job == "a", job == "b", side] for side, jobs in enumerate(sides) for job in jobs]).astype(float)
    fit, squares, *_ = np.linalg.lstsq(design, np.concatenate([base, new]), rcond=None)
    error = math.sqrt(squares[0] / (9 - 3) * np.linalg.inv(design.T @ design)[2, 2])
    change = blocked(base, new, *sides)
    assert [float(change.difference), float(change.error)] == pytest.approx([fit[2], error])
