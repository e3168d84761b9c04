"""Looks planned within a budget, and sessions that cannot decide any more."""

import math

import numpy as np
import pytest

from pipeprof.verdict import Policy, judge_looks
from pipeprof.verdict.gate.planned import Look, least_planned, planned_looks, spending, whole_plan
from pipeprof.verdict.gate.power import chances, hopeless, least_found, repetitions_to_find
from pipeprof.verdict.gate.statistics import Change, welch

STEP = "step_time_median"
POLICY = Policy()


def used(plan):
    return math.fsum(look.alpha for look in plan)


@pytest.mark.parametrize("most", [4, 5, 6, 8, 11, 19, 20, 300, None])
def test_a_plan_has_all_alpha_and_ends_with_what_can_be_had(most):
    plan = planned_looks(POLICY, (), most)
    assert used(plan) == pytest.approx(POLICY.alpha)
    assert plan[-1].reps == min(most or 20, 20)
    assert all(look.alpha > 0 for look in plan)
    assert [look.reps for look in plan[:-1]] == [look for look in POLICY.looks if look < plan[-1].reps]


def test_a_plan_that_nothing_limits_is_the_policys():
    assert (
        planned_looks(POLICY, (), 20)
        == whole_plan(POLICY)
        == tuple(map(Look, POLICY.looks, spending(0.008, POLICY.looks)))
    )


@pytest.mark.parametrize("most", [8, 9, 10, 14, 20])
def test_looks_that_were_made_keep_their_alpha_unless_they_are_the_last(most):
    made = whole_plan(POLICY)[:2]
    plan = planned_looks(POLICY, made, most)
    assert used(plan) == pytest.approx(POLICY.alpha)
    assert plan[0] == made[0]
    assert (plan[1] == made[1]) == (most > 8)
    assert plan[1].alpha >= made[1].alpha


def test_any_row_of_changing_budgets_uses_alpha_once():
    random = np.random.default_rng(1)
    for _ in range(200):
        made = ()
        for _look in range(5):
            plan = planned_looks(POLICY, made, int(random.integers(4, 25)))
            assert used(plan) == pytest.approx(POLICY.alpha)
            assert all(look.alpha >= 0 for look in plan)
            made = plan[: len(made) + 1]


def test_a_look_needs_some_repetitions():
    assert least_planned(POLICY) == 4
    assert least_planned(Policy(looks=(3, 4))) == 3


def test_a_planned_last_look_finds_what_the_policys_looks_would_not():
    base, new = {STEP: [1e8, 1.01e8, 0.99e8, 1.005e8, 0.995e8]}, {STEP: [1.1e8, 1.11e8, 1.09e8, 1.105e8, 1.095e8]}
    noisy = {STEP: [value * factor for value, factor in zip(new[STEP], (0.97, 1.03, 1, 1, 1), strict=True)]}
    assert judge_looks(base, noisy).verdict == "inconclusive"
    verdict = judge_looks(base, noisy, POLICY, planned_looks(POLICY, (), 5))
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("regressed", (5,), None)


def change(difference, error, df=8.0):
    return Change(np.array([difference]), np.array([error]), np.array([df]))


LEAST, MARGIN = np.array([0.02]), np.array([0.03])


@pytest.mark.parametrize(("difference", "spread", "lost"), [(0.0, 0.01, False), (0.0, 0.2, False), (-0.5, 0.4, False)])
def test_chances_are_chances(difference, spread, lost):
    worse, decided = chances(change(difference, spread * math.sqrt(2 / 5)), LEAST, MARGIN, 5, Look(20, 0.008))
    assert 0 <= worse[0] <= decided[0] <= 1
    assert bool(hopeless(worse, decided, np.array([True]))) == lost


def test_noise_without_a_change_becomes_hopeless_as_looks_go_by_and_a_large_change_does_not():
    last, spread = Look(20, 0.006), 0.25

    def lost(difference, reps):
        ahead = chances(change(difference, spread * math.sqrt(2 / reps), 2.0 * reps - 2), LEAST, MARGIN, reps, last)
        return bool(hopeless(*ahead, np.array([True])))

    assert lost(0.0, 16)
    assert not lost(0.25, 16)
    assert not lost(0.0, 5)


def test_the_chance_of_regressed_is_what_sessions_show():
    random, spread, reps = np.random.default_rng(2), 0.1, 12
    means = random.normal(0.06, 0.05, 4000)  # wide beside the error, nearly flat
    base = random.normal(0, spread, (4000, 20))
    new = random.normal(0, spread, (4000, 20)) + means[:, None]
    now, end = welch(base[:, :reps], new[:, :reps]), welch(base, new)
    worse, _ = chances(now, LEAST, MARGIN, reps, Look(20, 0.008))
    found = (end.p_above() <= 0.008) & (end.difference >= 0.02)
    hopeful = worse > 0.5
    assert found[worse < 0.05].mean() < 0.05
    assert found[hopeful].mean() > 0.5


def test_more_repetitions_find_smaller_changes():
    found = [least_found(0.03, math.log1p(0.02), reps, 0.0016, 0.9) for reps in (4, 8, 20, 200)]
    assert found == sorted(found, reverse=True)
    assert repetitions_to_find(0.03, found[2], math.log1p(0.02), 0.0016, 0.9) <= 20
    assert least_found(3.0, math.log1p(0.02), 20, 0.0016, 0.9) is None
    assert repetitions_to_find(0.001, 0.02, math.log1p(0.02), 0.0016, 0.9) is None


def test_a_session_of_pure_noise_is_called_hopeless_and_one_with_a_clear_change_is_not():
    random = np.random.default_rng(3)
    base = (1e8 * random.lognormal(0, 0.3, 16)).tolist()
    assert judge_looks({STEP: base}, {STEP: base[::-1]}).hopeless
    assert not judge_looks({STEP: base[:5]}, {STEP: [value * 3 for value in base[:5]]}).hopeless
