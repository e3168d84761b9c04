"""Ways to reduce the variance between repetitions: the score knows a way that works from one that does not."""

from __future__ import annotations

import numpy as np
import pytest
from variance_reduction import Source, of_baseline, of_recorded, own_share, score_covariates, score_pairs, spread, table

NOISE = np.random.default_rng(5).normal(0, 0.05, 200)


def random():
    return np.random.default_rng(6)


def test_a_covariate_that_explains_half_leaves_half_and_noise_leaves_all():
    cause = random().normal(0, 0.05, 200)
    assert score_covariates(NOISE + cause, [cause]) == pytest.approx(0.5, abs=0.1)
    assert score_covariates(NOISE, [cause]) == pytest.approx(1.0, abs=0.05)


def test_a_slope_fitted_to_few_repetitions_costs_what_it_costs():
    columns = list(random().normal(size=(5, 10)))
    assert score_covariates(NOISE[:10], columns) > 1.2


def test_pairs_take_a_drift_away_and_add_nothing_to_noise():
    assert score_pairs(Source("noise", NOISE)) == pytest.approx(1.0, abs=0.2)
    assert score_pairs(Source("drift", NOISE + np.linspace(0, 1, 200))) < 0.1


def test_pairs_and_spread_are_of_one_job():
    levels = np.repeat(random().normal(0, 1.0, 50), 4)
    jobs = [str(at // 4) for at in range(200)]
    inside = NOISE - np.repeat(NOISE.reshape(50, 4).mean(axis=1), 4)
    found = Source("jobs", inside, jobs=jobs)
    assert spread(found) == pytest.approx(0.05**2, rel=0.3)
    assert score_pairs(found) == pytest.approx(1.0, abs=0.2)
    assert spread(Source("one job", NOISE + levels)) > 0.1


def test_what_is_the_processs_own_is_told_from_its_steps():
    steps, own = random().normal(0, 0.1, (100, 100)), np.random.default_rng(7).normal(0, 0.2, (100, 1))
    assert own_share(np.exp(steps)) < 0.5
    assert own_share(np.exp(steps + own)) > 0.95


def test_the_recorded_repetitions_are_scored():
    found = [of_baseline("demo"), of_recorded("waits", "first"), of_recorded("waits", "second")]
    assert [len(one.plain) for one in found] == [24, 17, 17]
    lines = table(found)
    assert any(line.startswith("| pairs, back to back |") and line.count("|") == 5 for line in lines)
