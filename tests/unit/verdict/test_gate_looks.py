"""Planned looks: each on the first repetitions, each decision once, until nothing can be decided."""

import math

import numpy as np
import pytest

from pipeprof.verdict import Policy, Samples, judge_looks
from pipeprof.verdict.gate.planned import Look, least_planned, planned_looks, spending, whole_plan
from pipeprof.verdict.gate.policy import Rule
from pipeprof.verdict.gate.power import chances, hopeless, least_found, repetitions_to_find
from pipeprof.verdict.gate.statistics import Change, welch

STEP, TAIL = "step_time_median", "data_wait"
LOOKS = (5, 8, 12, 16, 20)
POLICY = Policy()


def drawn(seed, number, spread, factor=1.0):
    return tuple((1e8 * factor * np.random.default_rng(seed).lognormal(0, spread, number)).tolist())


def ended(verdict):
    return verdict.verdict, verdict.looks, verdict.next_look


def test_before_the_first_look_nothing_is_decided_but_what_is_missing_and_counts():
    verdict = judge_looks({STEP: [1e8] * 4}, {STEP: [3e8] * 4})
    assert ended(verdict) == ("inconclusive", (), 5)
    assert verdict.metrics[0].reasons == ({"code": "first_check", "repetitions": 5},)
    assert verdict.metrics[0].reps_needed == 5
    verdict = judge_looks({STEP: [1e8], "count/a": [1.0]}, {"count/a": [2.0]})
    assert (verdict.verdict, [one.verdict for one in verdict.metrics]) == ("missing", ["missing", "regressed"])


ROWS = "count/rows_per_batch"
EXACT = {"metrics": {ROWS: "decides", "bytes/batch": "decides"}}


def test_a_count_that_decides_does_so_from_one_repetition_on_and_makes_no_test_of_times_harder():
    base = {STEP: [1e8], ROWS: [200.0], "bytes/batch": [4000.0]}
    verdict = judge_looks(base, base | {ROWS: [201.0]}, EXACT)
    assert (verdict.verdict, verdict.metric(ROWS).verdict) == ("regressed", "regressed")
    assert verdict.metric(STEP).verdict == "inconclusive"
    assert judge_looks(base, base, EXACT).verdict == "inconclusive", "the time is not known yet"
    base = {STEP: drawn(1, 5, 0.003), ROWS: [200.0] * 5, "bytes/batch": [4000.0] * 5}
    many = EXACT | {"metrics": EXACT["metrics"] | {f"count/{at}": "decides" for at in range(20)}}
    first, second = (judge_looks(base, base, policy).metric(STEP) for policy in (None, many))
    assert first.alpha == second.alpha


def test_counts_that_vary_do_not_keep_a_session_going_and_those_that_begin_to_differ_are_seen_later():
    base = {STEP: drawn(1, 20, 0.003), ROWS: tuple(range(1, 21))}
    assert ended(judge_looks(base, base, EXACT)) == ("inconclusive", (5,), None)
    base = {STEP: drawn(1, 20, 0.3), "count/a": (1.0,) * 20}
    new = {STEP: drawn(2, 20, 0.3), "count/a": (1.0,) * 10 + (2.0,) * 10}
    assert judge_looks(base, new, Policy(metrics={STEP: Rule()})).metric("count/a").verdict == "inconclusive"


def test_looks_end_when_all_primary_metrics_are_decided_and_the_last_has_no_next():
    base, new = drawn(1, 20, 0.003), drawn(2, 20, 0.2)
    verdict = judge_looks({STEP: base}, {STEP: base})
    assert (ended(verdict), verdict.metrics[0].reps_base) == (("unchanged", (5,), None), 5)
    base = drawn(1, 20, 0.2)
    assert ended(judge_looks({STEP: base[:9]}, {STEP: new[:8]})) == ("inconclusive", (5, 8), 12)
    assert ended(judge_looks({STEP: base}, {STEP: new})) == ("inconclusive", LOOKS, None)


def test_a_look_has_its_part_of_alpha_and_a_decision_is_kept_while_the_others_go_on():
    verdict = judge_looks({STEP: drawn(1, 12, 0.2)}, {STEP: drawn(2, 12, 0.2)})
    assert verdict.metrics[0].alpha == pytest.approx(spending(0.008, LOOKS)[2] / 5)
    base = {STEP: drawn(1, 20, 0.003), TAIL: drawn(2, 20, 0.3)}
    new = {STEP: (*drawn(3, 8, 0.003, 1.2), *drawn(3, 12, 0.003, 0.5)), TAIL: drawn(4, 20, 0.3)}
    verdict = judge_looks(base, new)
    step, tail = verdict.metric(STEP), verdict.metric(TAIL)
    assert (verdict.looks, step.verdict, tail.verdict, tail.reps_new) == (LOOKS, "regressed", "inconclusive", 20)
    assert step.reps_new in {5, 8}


def test_more_repetitions_never_reopen_a_decision_and_looks_go_by_order_and_not_by_place():
    base, new, decided = drawn(1, 60, 0.02), drawn(2, 60, 0.02, 1.08), None
    for number in range(5, 61):
        verdict = judge_looks({STEP: base[:number]}, {STEP: new[:number]})
        assert decided in (None, verdict)
        decided = verdict if verdict.next_look is None else None
    assert decided.verdict == "regressed"
    sides = drawn(1, 12, 0.02), drawn(2, 12, 0.02, 1.05)
    straight, shuffled = (
        judge_looks(*({STEP: Samples([side[at] for at in places], order=[3 * at for at in places])} for side in sides))
        for places in (range(12), np.random.default_rng(5).permutation(12).tolist())
    )
    assert straight == shuffled


def test_a_metric_that_lacks_a_repetition_keeps_its_prefix_and_places_of_several_jobs_begin_anew():
    values = drawn(1, 9, 0.02)
    side = {STEP: Samples(values, range(9)), TAIL: Samples((*values[:1], *values[2:]), order=(0, *range(2, 9)))}
    verdict = judge_looks(side, side, Policy(looks=(5, 20)))
    assert (verdict.metric(STEP).reps_base, verdict.metric(TAIL).reps_base) == (5, 4)
    place = tuple(range(6)) * 2, ("a",) * 6 + ("b",) * 6
    verdict = judge_looks({STEP: Samples(drawn(3, 12, 0.2), *place)}, {STEP: Samples(drawn(4, 12, 0.2), *place)})
    assert (verdict.looks, verdict.metrics[0].reps_base) == ((5, 8, 12), 12)


def used(plan):
    return math.fsum(look.alpha for look in plan)


@pytest.mark.parametrize("most", [4, 5, 6, 8, 11, 19, 20, 300, None])
def test_a_plan_has_all_alpha_and_ends_with_what_can_be_had(most):
    plan = planned_looks(POLICY, (), most)
    assert used(plan) == pytest.approx(POLICY.alpha)
    assert plan[-1].reps == min(most or 20, 20)
    assert all(look.alpha > 0 for look in plan)
    assert [look.reps for look in plan[:-1]] == [look for look in POLICY.looks if look < plan[-1].reps]


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


def test_a_plan_that_nothing_limits_is_the_policys_and_a_planned_last_look_finds_what_that_would_not():
    policys = tuple(map(Look, POLICY.looks, spending(0.008, POLICY.looks)))
    assert planned_looks(POLICY, (), 20) == whole_plan(POLICY) == policys
    assert (least_planned(POLICY), least_planned(Policy(looks=(3, 4)))) == (4, 3)
    base, noisy = {STEP: [1e8, 1.01e8, 0.99e8, 1.005e8, 0.995e8]}, {STEP: [1.067e8, 1.1433e8, 1.09e8, 1.105e8, 1.095e8]}
    assert judge_looks(base, noisy).verdict == "inconclusive"
    assert ended(judge_looks(base, noisy, POLICY, planned_looks(POLICY, (), 5))) == ("regressed", (5,), None)


LEAST, MARGIN = np.array([0.02]), np.array([0.03])


@pytest.mark.parametrize(("difference", "spread", "reps", "df", "alpha", "lost"), [
    (0.0, 0.01, 5, 8.0, 0.008, False), (0.0, 0.2, 5, 8.0, 0.008, False), (-0.5, 0.4, 5, 8.0, 0.008, False),
    (0.0, 0.25, 16, 30.0, 0.006, True),  # noise becomes hopeless as looks go by, and a large change does not
    (0.25, 0.25, 16, 30.0, 0.006, False), (0.0, 0.25, 5, 8.0, 0.006, False),
])  # fmt: skip
def test_chances_are_chances(difference, spread, reps, df, alpha, lost):
    now = Change(np.array([difference]), np.array([spread * math.sqrt(2 / reps)]), np.array([df]))
    worse, decided = chances(now, LEAST, MARGIN, reps, Look(20, alpha))
    assert 0 <= worse[0] <= decided[0] <= 1
    assert bool(hopeless(worse, decided, np.array([True]))) == lost


def test_the_chance_of_regressed_is_what_sessions_show():
    random, spread, reps = np.random.default_rng(2), 0.1, 12
    means = random.normal(0.06, 0.05, 4000)  # wide beside the error, nearly flat
    base = random.normal(0, spread, (4000, 20))
    new = random.normal(0, spread, (4000, 20)) + means[:, None]
    now, end = welch(base[:, :reps], new[:, :reps]), welch(base, new)
    worse, _ = chances(now, LEAST, MARGIN, reps, Look(20, 0.008))
    found = (end.p_above() <= 0.008) & (end.difference >= 0.02)
    assert found[worse < 0.05].mean() < 0.05
    assert found[worse > 0.5].mean() > 0.5


def test_more_repetitions_find_smaller_changes_and_a_session_of_pure_noise_is_hopeless():
    found = [least_found(0.03, math.log1p(0.02), reps, 0.0016, 0.9) for reps in (4, 8, 20, 200)]
    assert found == sorted(found, reverse=True)
    assert repetitions_to_find(0.03, found[2], math.log1p(0.02), 0.0016, 0.9) <= 20
    assert least_found(3.0, math.log1p(0.02), 20, 0.0016, 0.9) is None
    assert repetitions_to_find(0.001, 0.02, math.log1p(0.02), 0.0016, 0.9) is None
    base = (1e8 * np.random.default_rng(3).lognormal(0, 0.3, 16)).tolist()
    assert judge_looks({STEP: base}, {STEP: base[::-1]}).hopeless
    assert not judge_looks({STEP: base[:5]}, {STEP: [value * 3 for value in base[:5]]}).hopeless
