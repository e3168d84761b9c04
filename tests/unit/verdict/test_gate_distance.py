"""Sides that lie so far apart that no test is needed."""

import pytest

from pipeprof.report.words import gate
from pipeprof.verdict import Policy, Samples, judge, judge_looks
from pipeprof.verdict.gate.planned import Look
from pipeprof.verdict.gate.policy import Rule
from pipeprof.verdict.gate.result import note

STEP = "step_time_median"
FAST, SLOW = (2.65e6, 2.7e6, 2.75e6), (1.3e8, 2e8, 3.4e8)  # a test of so few, so unlike repetitions says p = 0.002


def metric(base, new, **rule):
    return judge({"x": base}, {"x": new}, Policy(metrics={"x": Rule(**rule)}, alpha=0.002)).metrics[0]


def far_apart(one):
    """Whether it is decided by the distance alone."""
    return one.verdict in ("regressed", "improved") and one.reasons[-1]["code"] == "far_apart"


@pytest.mark.parametrize("name", [STEP, "data_wait", "peak_memory"])
def test_a_difference_that_everybody_sees_is_decided_with_three_repetitions(name):
    slower, faster = judge({name: FAST}, {name: SLOW}), judge({name: SLOW}, {name: FAST})
    assert (slower.verdict, slower.exit_code, faster.verdict) == ("regressed", 1, "improved")
    one, back = slower.metrics[0], faster.metrics[0]
    assert one.p_value > one.alpha  # the test alone cannot tell
    assert one.reasons == (note("far_apart", above=True, ratio=pytest.approx(1.3e8 / 2.75e6)),)
    assert gate.reason(one.reasons) == "clear without a test: each repetition of new is at least 47x any of base"
    assert gate.reason(back.reasons) == "clear without a test: each repetition of base is at least 47x any of new"


def test_higher_is_better_mirrors():
    assert metric(FAST, SLOW, direction="higher").verdict == "improved"
    assert metric(SLOW, FAST, direction="higher").verdict == "regressed"


def test_what_the_test_decides_is_not_said_to_be_without_one():
    assert metric((1e8, 1.001e8, 1.002e8, 0.999e8), (1e9, 1.001e9, 1.002e9, 0.999e9)).reasons == ()


@pytest.mark.parametrize("number", [1, 2])
def test_two_repetitions_are_never_so_far_apart(number):
    policy = {"least_reps": 2, "alpha": 0.002}
    base, new = (2.5e6, 3.5e6, 3e6), (1.3e8, 4e8, 2e8)
    for sides in ((base[:number], new), (base, new[:number]), (base[:number], new[:number])):
        verdict = judge(*({STEP: side} for side in sides), policy)
        assert verdict.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ((90, 100, 110), (150, 300, 600)),  # no gap of 3x
        ((10, 100, 1000), (4000, 30000, 300000)),  # a gap of 4x, and ranges of 100x
        ((10, 11, 12), (11.5, 500, 600)),  # they overlap
    ],
)
def test_what_could_be_chance_is_left_to_the_test(base, new):
    assert metric(base, new).verdict == "inconclusive"
    assert metric(new, base).verdict == "inconclusive"


@pytest.mark.parametrize(("gap", "said"), [(2.9, "inconclusive"), (3.1, "regressed")])
def test_from_a_gap_of_three_times_on_no_test_is_needed(gap, said):
    base = (85e6, 110e6, 95e6, 105e6)
    new = [gap * 110e6 + part * 1e6 for part in (0, 115, 5, 105)]
    look = Look(4, 1e-6)  # of many: a test has next to no alpha
    assert judge_looks({STEP: base}, {STEP: new}, plan=[look]).verdict == said


def test_a_wait_of_next_to_nothing_may_become_many_times_as_long():
    waits = (0.12e6, 0.14e6, 0.17e6), (1.9e6, 2.8e6, 5.9e6)  # of identical code on an overloaded host
    assert judge({"data_wait": waits[0]}, {"data_wait": waits[1]}).verdict == "inconclusive"
    assert far_apart(metric(*waits, unit="ns"))  # without a floor


def test_the_least_change_that_counts_holds():
    assert metric(FAST, SLOW, min_effect=100.0).verdict == "inconclusive"


def test_zeros_lie_apart_where_there_is_a_floor():
    one = metric((0.0, 0.0, 1e3), (1e8, 2e8, 9e8), floor=50e3)
    assert (one.verdict, one.reasons[-1]) == ("regressed", note("far_apart", above=True, ratio=1e5))
    never = metric((0.0, 0.0, 0.0), (1e8, 2e8, 9e8), floor=50e3)
    assert gate.reason(never.reasons).endswith("each repetition of new is far above any of base")
    assert metric((0.0, 0.0, 1.0), (1e8, 2e8, 9e8)).verdict == "inconclusive"


def test_a_policy_that_allows_fewer_false_alarms_than_the_rule_has_does_without_it():
    assert judge({STEP: FAST}, {STEP: SLOW}, {"alpha": 0.0019}).verdict == "inconclusive"
    assert judge({STEP: FAST}, {STEP: SLOW}, {"alpha": 0.002}).verdict == "regressed"


@pytest.mark.parametrize("shared", [True, False])
def test_jobs_are_compared_alike(shared):
    jobs = ("a", "a", "b")
    base = Samples(FAST, range(3), jobs)
    new = Samples(SLOW, range(3, 6), jobs if shared else ("c", "c", "c"))
    assert judge({STEP: base}, {STEP: new}).verdict == "regressed"
    assert judge({STEP: new}, {STEP: base}).verdict == "improved"


def test_the_first_look_decides():
    base, new = (2.7e6, 2.6e6, 2.8e6, 2.7e6, 2.5e6), (1.3e8, 3.9e8, 2.9e8, 2e8, 1.5e8)
    verdict = judge_looks({STEP: base}, {STEP: new})
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("regressed", (5,), None)


def test_shares_of_operators_are_tested_only():
    names = [f"op/{number}" for number in range(4)]
    base, new = dict.fromkeys(names, (100.0, 101.0, 102.0)), dict.fromkeys(names, (100.0, 101.0, 102.0))
    new["op/0"] = (800.0, 2000.0, 2900.0)
    one = judge(base, new).metric("op/0")
    assert (one.verdict, [reason["code"] for reason in one.reasons]) == ("inconclusive", ["share", "too_noisy"])
