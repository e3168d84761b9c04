"""Ranks that are all alike: how often one of them is named. At most one run in a hundred may be."""

import numpy as np
import pytest
from rank_rows import rows_of, stragglers

from pipeprof.verdict.straggler import ALPHA

DRAWS = 300  # of each kind, number of ranks and number of steps; 7,200 in all
NOISE = {
    "normal": lambda chance, shape: chance.normal(0, 3, shape),
    "wide": lambda chance, shape: chance.normal(0, 15, shape),
    "student": lambda chance, shape: 3 * chance.standard_t(2, shape),
    "cauchy": lambda chance, shape: 2 * chance.standard_cauchy(shape),
    "lognormal": lambda chance, shape: 10 * chance.lognormal(0, 1.2, shape),
    "pauses": lambda chance, shape: chance.normal(0, 2, shape) + 60 * (chance.random(shape) < 0.05),
}


def named(kind, steps, ranks, chance):
    """Whether any rank is named; the ranks of a step have a large part in common."""
    times = 100 + NOISE[kind](chance, (steps, ranks)) + chance.normal(0, 10, (steps, 1))
    return bool(stragglers(rows_of(times))["found"])


@pytest.mark.parametrize("kind", NOISE)
def test_at_most_one_run_in_a_hundred_names_a_rank(kind):
    chance = np.random.default_rng(20260101)
    wrong = {
        (steps, ranks): sum(named(kind, steps, ranks, chance) for _ in range(DRAWS))
        for ranks in (8, 64)
        for steps in (5, 40)
    }
    assert sum(wrong.values()) <= ALPHA * DRAWS * len(wrong)
    assert max(wrong.values()) <= 0.02 * DRAWS, wrong


def test_ranks_that_vary_differently_are_not_called_steadily_slow():
    """They do hold the others up now and then: whoever is late in a step makes all wait, and nobody gains when early."""
    chance = np.random.default_rng(7)
    wrong = 0
    for _ in range(DRAWS):
        spread = chance.lognormal(0, 0.7, 32) * 3
        found = stragglers(rows_of(100 + chance.normal(0, 1, (20, 32)) * spread))["found"]
        wrong += any(item["kind"] == "steady" for item in found)
    assert wrong <= 0.02 * DRAWS


def correlated(chance, steps, ranks, with_last):
    """Noise whose every step has that share of the step before."""
    fresh = chance.normal(0, 5, (steps, ranks))
    times = np.zeros((steps, ranks))
    times[0] = fresh[0] / np.sqrt(1 - with_last**2)
    for step in range(1, steps):
        times[step] = with_last * times[step - 1] + fresh[step]
    return times


@pytest.mark.parametrize(("steps", "ranks"), [(40, 8), (40, 64), (200, 8)])
def test_steps_that_resemble_the_one_before_name_no_rank(steps, ranks):
    chance = np.random.default_rng(11)
    wrong = sum(bool(stragglers(rows_of(100 + correlated(chance, steps, ranks, 0.7)))["found"]) for _ in range(DRAWS))
    assert wrong <= 0.02 * DRAWS


def test_one_step_names_no_rank_of_normal_noise():
    chance = np.random.default_rng(3)
    wrong = sum(bool(stragglers(rows_of(100 + chance.normal(0, 6, (1, 16))))["found"]) for _ in range(1000))
    assert wrong <= 10
