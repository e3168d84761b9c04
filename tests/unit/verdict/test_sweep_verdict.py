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


def judged(base, variants, looks=LOOKS, rule=RULE, **more):
    return judge_stage(base, variants, rule, looks, 0.01, **more)


def test_words_for_faster_slower_and_same_have_the_limit_that_they_were_held_against():
    base = series(100e6, 12, seed=1)
    found = judged(base, {"fast": series(50e6, 12, seed=2), "slow": series(150e6, 12, seed=3), "same": dict(base)})
    words = {name: one.word for name, one in found.items()}
    assert words == {"fast": "better", "slow": "worse", "same": "within noise"}
    fast = found["fast"]
    assert (fast.ratio, fast.look) == (pytest.approx(0.5, rel=0.03), 5)
    assert fast.low < 0.5 < fast.high
    more = judged(series(10, 8, seed=1), {"more": series(20, 8, seed=2)}, (8,), Rule(unit="1/s", direction="higher"))
    assert (more["more"].word, round(more["more"].ratio)) == ("better", 2)
    variants = {name: series(50e6, 8, seed=at) for at, name in enumerate("ab", 2)}
    found = judged(series(100e6, 8, seed=1), variants, (8,))
    assert sorted(one.alpha for one in found.values()) == [pytest.approx(0.005), pytest.approx(0.01)]
    sides = series(100e6, 5, 0.02, seed=4), {"new": series(93e6, 5, 0.02, seed=5)}
    alone, among = (judged(*sides, (5,), family=family)["new"] for family in (1, 200))
    assert among.alpha == pytest.approx(alone.alpha / 200)
    assert (alone.word, among.word) == ("better", "inconclusive")


def test_nothing_is_said_before_the_first_look_and_a_decision_stays():
    base, fast = series(100e6, 5, seed=1), series(80e6, 5, seed=2)
    early = judged(base, {"fast": fast})["fast"]
    assert early.word == "better"
    more = dict.fromkeys(range(5, 12), 100000000.0)
    assert judged(base | more, {"fast": fast | more})["fast"] == early
    found = judged(series(100e6, 4), {"fast": series(10e6, 4)})["fast"]
    assert (found.word, found.look, found.alpha) == ("inconclusive", None, None)
    assert found.ratio == pytest.approx(0.1, rel=0.1)
    assert judged(series(1e6, 5), {"none": {}})["none"].word == "not measured"
    assert judged({0: 2e6}, {"once": {0: 1e6}})["once"].ratio == 0.5
    base = series(100e6, 6, seed=1)
    found = judged(base, {"fast": {at: value / 2 for at, value in base.items() if at != 3}}, (5,))["fast"]
    assert (found.ratio, found.look) == (pytest.approx(0.5), 5)


def test_no_effect_is_called_better_at_most_as_often_as_alpha_says():
    """400 sweeps of 5 variants without effect: over all variants and looks fewer than alpha, and some for chance."""
    wrong = 0
    for trial in range(400):
        rng = np.random.default_rng(trial)
        drawn = [dict(enumerate((1e8 * np.exp(rng.normal(0, 0.05, 12))).tolist())) for _ in range(6)]
        found = judge_stage(drawn[0], {str(at): one for at, one in enumerate(drawn[1:])}, RULE, LOOKS, 0.05)
        wrong += any(one.word == "better" for one in found.values())
    assert wrong <= 0.05 * 400 + 10


@pytest.mark.parametrize(("setup", "steady", "word", "expected"), [
    ((100.0,), (-2.0,), "better", ("after", 50, None, None)), ((101.0,), (-2.0,), "better", ("after", 51, None, None)),
    ((-1.0,), (-2.0,), "better", ("at once", 0, None, None)), ((0.0,), (-2.0,), "better", ("at once", 0, None, None)),
    ((-100.0,), (2.0,), "worse", ("until", 50, None, None)), ((1.0,), (2.0,), "worse", ("never", None, None, None)),
    ((100.0,), (-2.0,), "within noise", ("not told apart", None, None, None)),
    ((100.0,), (-2.0,), "inconclusive", ("not told apart", None, None, None)),
    ((100.0, 80.0, 120.0), (-2.0, -4.0, -1.0), "better", ("after", 50, 20, 120)),
    ((100.0, 80.0, 120.0), (-2.0, -4.0, 0.5), "better", ("after", 50, 20, None)),  # it may never come
    ((-100.0, -120.0, -80.0), (2.0, 1.0, 4.0), "worse", ("until", 50, 20, 120)),
    (None, (1.0,), "better", ("unknown", None, None, None)),
])  # fmt: skip
def test_break_even(setup, steady, word, expected):
    found = break_even(setup and Difference(*setup), Difference(*steady), word)
    assert (found.kind, found.steps, found.low, found.high) == expected


def test_means_and_their_differences_have_an_interval_from_two_values_on():
    one, two = estimate([4.0]), estimate([1.0, 4.0])
    assert (one.value, one.low, one.high, one.reps) == (pytest.approx(4.0), None, None, 1)
    assert two.value == pytest.approx(2.0)  # geometric
    assert two.low < 2.0 < two.high
    assert estimate([]) is None
    assert estimate([0.0, 2.0]).value == pytest.approx(1.0)
    assert difference([1.0], [3.0]) == Difference(2.0)
    found = difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert found.value == 1.0
    assert found.low < 1.0 < found.high
    assert difference([], [1.0]) is None


def test_the_pareto_set_leaves_out_what_is_beaten_by_more_than_noise():
    rows = {
        "base": {"setup": 10.0, "steady": 5.0}, "slow": {"setup": 10.0, "steady": 6.0},
        "near": {"setup": 10.0, "steady": 5.04}, "fast": {"setup": 90.0, "steady": 3.0},
    }  # fmt: skip
    assert pareto(rows, {"steady": 0.02}) == ["base", "near", "fast"]
    assert pareto(rows, {}) == ["base", "fast"]
    names = ("setup", "steady", "peak_memory")
    circle = {
        row: dict(zip(names, values, strict=True))
        for row, values in {"a": (1.0, 1.06, 1.12), "b": (1.12, 1.0, 1.06), "c": (1.06, 1.12, 1.0)}.items()
    }
    assert pareto(circle, dict.fromkeys(names, 0.07))
    assert pareto({"one": {"total": 1.0}}, {}) == pareto({}, {}) == []
    assert pareto({"a": {"setup": 1.0, "steady": 5.0}, "b": {"steady": 4.0}}, {}) == ["b"]  # one that a row lacks


def test_only_a_better_row_is_chosen_and_single_numbers_have_words():
    values = {"base": 5.0, "lucky": 4.0, "fast": 4.5}
    assert chosen(values, {"lucky": "inconclusive", "fast": "better"}, "base") == "fast"
    assert chosen(values, {"lucky": "inconclusive", "fast": "within noise"}, "base") == "base"
    assert cost(10.0, 2.0, 5) == 20.0
    assert beyond_noise(1.05, 0.05) == beyond_noise(1 / 1.05, 0.05) == "within noise"
    assert (beyond_noise(1.06, 0.05), beyond_noise(0.9, 0.05)) == ("worse", "better")
    assert apart([1.0, 1.1, 1.2], [5.0, 5.1, 5.2])
    assert not apart([1.0], [5.0])
    assert not apart([1.0, 1.1, 1.2], [1.0, 1.1, 1.25])
