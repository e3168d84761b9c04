"""Verdicts on the variants of a sweep, and what follows from its table."""

import numpy as np
import pytest

from pipeprof.verdict.gate.policy import Rule
from pipeprof.verdict.sweep import apart, beyond_noise, estimate, judge_stage
from pipeprof.verdict.sweep_choice import Difference, break_even, chosen, cost, difference, pareto

RULE = Rule(unit="ns")
LOOKS = (5, 8, 12)


def series(level, number, spread=0.01, seed=0):
    rng = np.random.default_rng(seed)
    return dict(enumerate((level * np.exp(rng.normal(0, spread, number))).tolist()))


def test_a_mean_has_an_interval_from_two_values_on():
    one, two = estimate([4.0]), estimate([1.0, 4.0])
    assert (one.value, one.low, one.high, one.reps) == (pytest.approx(4.0), None, None, 1)
    assert two.value == pytest.approx(2.0)  # geometric
    assert two.low < 2.0 < two.high
    assert estimate([]) is None
    assert estimate([0.0, 2.0]).value == pytest.approx(1.0)


def test_words_for_faster_slower_and_same():
    base = series(100e6, 12, seed=1)
    found = judge_stage(
        base,
        {"fast": series(50e6, 12, seed=2), "slow": series(150e6, 12, seed=3), "same": dict(base)},
        RULE,
        LOOKS,
        0.01,
    )
    assert {name: one.word for name, one in found.items()} == {
        "fast": "better", "slow": "worse", "same": "within noise",
    }  # fmt: skip
    assert found["fast"].ratio == pytest.approx(0.5, rel=0.03)
    assert found["fast"].low < 0.5 < found["fast"].high
    assert found["fast"].look == 5


def test_what_is_better_has_the_limit_that_it_was_held_against():
    base, variants = series(100e6, 8, seed=1), {name: series(50e6, 8, seed=at) for at, name in enumerate("ab", 2)}
    found = judge_stage(base, variants, RULE, (8,), 0.01)
    assert sorted(one.alpha for one in found.values()) == [pytest.approx(0.005), pytest.approx(0.01)]


def test_higher_is_better_turns_the_words_round():
    rule = Rule(unit="1/s", direction="higher")
    found = judge_stage(series(10, 8, seed=1), {"more": series(20, 8, seed=2)}, rule, (8,), 0.01)
    assert (found["more"].word, round(found["more"].ratio)) == ("better", 2)


def test_a_decision_stays_when_more_rounds_come():
    base, fast = series(100e6, 5, seed=1), series(80e6, 5, seed=2)
    early = judge_stage(base, {"fast": fast}, RULE, LOOKS, 0.01)["fast"]
    assert early.word == "better"
    more = dict.fromkeys(range(5, 12), 100000000.0)
    assert judge_stage(base | more, {"fast": fast | more}, RULE, LOOKS, 0.01)["fast"] == early


def test_nothing_is_said_before_the_first_look():
    found = judge_stage(series(100e6, 4), {"fast": series(10e6, 4)}, RULE, LOOKS, 0.01)["fast"]
    assert (found.word, found.look, found.alpha) == ("inconclusive", None, None)
    assert found.ratio == pytest.approx(0.1, rel=0.1)
    assert judge_stage(series(1e6, 5), {"none": {}}, RULE, LOOKS, 0.01)["none"].word == "not measured"
    assert judge_stage({0: 2e6}, {"once": {0: 1e6}}, RULE, LOOKS, 0.01)["once"].ratio == 0.5


def test_rounds_that_one_side_lacks_are_left_out():
    base = series(100e6, 6, seed=1)
    fast = {at: value / 2 for at, value in base.items() if at != 3}
    found = judge_stage(base, {"fast": fast}, RULE, (5,), 0.01)["fast"]
    assert found.ratio == pytest.approx(0.5)
    assert found.look == 5


def test_more_variants_need_a_surer_difference():
    base, new = series(100e6, 5, 0.02, seed=4), series(93e6, 5, 0.02, seed=5)
    alone = judge_stage(base, {"new": new}, RULE, (5,), 0.02, family=1)["new"]
    among = judge_stage(base, {"new": new}, RULE, (5,), 0.02, family=200)["new"]
    assert among.alpha == pytest.approx(alone.alpha / 200)
    assert (alone.word, among.word) == ("better", "inconclusive")


def test_no_effect_is_called_better_at_most_as_often_as_alpha_says():
    """400 sweeps of 5 variants without effect: over all variants and looks fewer than alpha, and a margin for chance."""
    wrong = 0
    for trial in range(400):
        rng = np.random.default_rng(trial)
        drawn = [dict(enumerate((1e8 * np.exp(rng.normal(0, 0.05, 12))).tolist())) for _ in range(6)]
        found = judge_stage(drawn[0], {str(at): one for at, one in enumerate(drawn[1:])}, RULE, LOOKS, 0.05)
        wrong += any(one.word == "better" for one in found.values())
    assert wrong <= 0.05 * 400 + 10


@pytest.mark.parametrize(
    ("setup", "steady", "word", "kind", "steps"),
    [
        (100.0, -2.0, "better", "after", 50),
        (101.0, -2.0, "better", "after", 51),
        (-1.0, -2.0, "better", "at once", 0),
        (0.0, -2.0, "better", "at once", 0),
        (-100.0, 2.0, "worse", "until", 50),
        (1.0, 2.0, "worse", "never", None),
        (100.0, -2.0, "within noise", "not told apart", None),
        (100.0, -2.0, "inconclusive", "not told apart", None),
    ],
)
def test_break_even(setup, steady, word, kind, steps):
    found = break_even(Difference(setup), Difference(steady), word)
    assert (found.kind, found.steps, found.low, found.high) == (kind, steps, None, None)


def test_break_even_has_a_range_and_may_never_come():
    sure = break_even(Difference(100.0, 80.0, 120.0), Difference(-2.0, -4.0, -1.0), "better")
    assert (sure.steps, sure.low, sure.high) == (50, 20, 120)
    unsure = break_even(Difference(100.0, 80.0, 120.0), Difference(-2.0, -4.0, 0.5), "better")
    assert (unsure.low, unsure.high) == (20, None)
    until = break_even(Difference(-100.0, -120.0, -80.0), Difference(2.0, 1.0, 4.0), "worse")
    assert (until.kind, until.steps, until.low, until.high) == ("until", 50, 20, 120)
    assert break_even(None, Difference(1.0), "better").kind == "unknown"


def test_differences_are_of_means():
    assert difference([1.0], [3.0]) == Difference(2.0)
    found = difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert found.value == 1.0
    assert found.low < 1.0 < found.high
    assert difference([], [1.0]) is None


def test_the_pareto_set_leaves_out_what_is_beaten_by_more_than_noise():
    rows = {
        "base": {"setup": 10.0, "steady": 5.0},
        "slow": {"setup": 10.0, "steady": 6.0},
        "near": {"setup": 10.0, "steady": 5.04},
        "fast": {"setup": 90.0, "steady": 3.0},
    }
    assert pareto(rows, {"steady": 0.02}) == ["base", "near", "fast"]
    assert pareto(rows, {}) == ["base", "fast"]
    circle = {"a": {"setup": 1.0, "steady": 1.06, "peak_memory": 1.12}}
    circle |= {"b": {"setup": 1.12, "steady": 1.0, "peak_memory": 1.06}}
    circle |= {"c": {"setup": 1.06, "steady": 1.12, "peak_memory": 1.0}}
    assert pareto(circle, dict.fromkeys(("setup", "steady", "peak_memory"), 0.07))
    assert pareto({"one": {"total": 1.0}}, {}) == []
    assert pareto({}, {}) == []


def test_an_objective_that_a_row_lacks_is_left_out():
    rows = {"a": {"setup": 1.0, "steady": 5.0}, "b": {"steady": 4.0}}
    assert pareto(rows, {}) == ["b"]


def test_only_a_better_row_is_chosen():
    values = {"base": 5.0, "lucky": 4.0, "fast": 4.5}
    assert chosen(values, {"lucky": "inconclusive", "fast": "better"}, "base") == "fast"
    assert chosen(values, {"lucky": "inconclusive", "fast": "within noise"}, "base") == "base"


def test_costs_words_for_single_numbers_and_differences_beyond_chance():
    assert cost(10.0, 2.0, 5) == 20.0
    assert beyond_noise(1.05, 0.05) == beyond_noise(1 / 1.05, 0.05) == "within noise"
    assert (beyond_noise(1.06, 0.05), beyond_noise(0.9, 0.05)) == ("worse", "better")
    assert apart([1.0, 1.1, 1.2], [5.0, 5.1, 5.2])
    assert not apart([1.0], [5.0])
    assert not apart([1.0, 1.1, 1.2], [1.0, 1.1, 1.25])
