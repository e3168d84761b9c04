"""What must hold for any repetitions, and a second, plain implementation of the numbers that decide."""

import math
import warnings

import msgspec
import numpy as np
import pytest
from every import every
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeprof.verdict import Policy, Samples, judge
from pipeprof.verdict.gate.policy import Rule

NAMES = ("a", "b", "c", "op/x", "op/y", "op/z")
RULES = {name: Rule() for name in ("a", "b", "c")}
MIRROR = {"regressed": "improved", "improved": "regressed"}

value = st.floats(0.5, 2.0).map(lambda number: round(number, 3))
side = st.integers(3, 9).flatmap(
    lambda number: st.fixed_dictionaries({name: st.lists(value, min_size=number, max_size=number) for name in NAMES})
)
chances = st.randoms(use_true_random=False)


def decided(base, new, policy=None):
    return judge(base, new, policy or Policy(metrics=RULES))


@given(side, side, chances)
@settings(max_examples=60, deadline=None)
def test_the_order_of_repetitions_changes_no_byte_nor_that_of_metrics_apart_when_it_is_known(base, new, chance):
    def mixed(number):
        return chance.sample(range(number), number)

    def alike(values):
        places = mixed(len(values["a"]))
        return {name: [values[name][at] for at in places] for name in chance.sample(NAMES, len(NAMES))}

    def apart(values):
        places = {name: mixed(len(column)) for name, column in values.items()}
        return {name: Samples([values[name][at] for at in order], order=order) for name, order in places.items()}

    straight = msgspec.json.encode(decided(base, new))
    for shuffled in (alike, apart):
        assert msgspec.json.encode(decided(shuffled(base), shuffled(new))) == straight


def clear(verdict):
    """No p value or change so near its limit that rounding decides."""
    return all(
        abs(math.log(max(one.p_value, 1e-300) / one.alpha)) > 1e-6
        and abs(math.log(max(1 - one.p_value, 1e-300) / one.alpha)) > 1e-6
        and min(abs(abs(math.log(part)) - math.log1p(limit)) for part in (one.ratio, one.ci_low, one.ci_high)
                for limit in (0.02, 0.03, 0.05)) > 1e-6
        for one in verdict.metrics
    )  # fmt: skip


@given(side, side, st.sampled_from([1e-6, 0.3, 7.0, 1e9]))
@settings(max_examples=60, deadline=None)
def test_the_unit_plays_no_role_and_swapping_the_sides_mirrors_the_words(base, new, factor):
    def scaled(values):
        return {name: [one * factor for one in column] for name, column in values.items()}

    straight, other, back = decided(base, new), decided(scaled(base), scaled(new)), decided(new, base)
    assume(clear(straight))
    words = [one.verdict for one in straight.metrics]
    assert [one.verdict for one in other.metrics] == words
    assert [one.verdict for one in back.metrics] == [MIRROR.get(word, word) for word in words]
    for one, same, mirrored in zip(straight.metrics, other.metrics, back.metrics, strict=True):
        assert same.p_value == pytest.approx(one.p_value, rel=1e-6, abs=1e-12)
        assert same.ratio == pytest.approx(one.ratio, rel=1e-9)
        assert mirrored.p_value == pytest.approx(1 - one.p_value, abs=1e-9)
        assert mirrored.ratio == pytest.approx(1 / one.ratio)


anything = st.one_of(st.floats(0.01, 1e12), st.just(0.0), st.floats(-1e6, 1e6), st.integers(0, 100).map(float))
place = st.tuples(anything, st.sampled_from(["a", "b", "c", ""]))
MIXED = ("a", "b", "data_wait", "op/x", "op/y", "op/z", "count/x", "phase/compute")
mixed = st.dictionaries(st.sampled_from(MIXED), st.lists(place, min_size=1, max_size=9), min_size=3)


@given(mixed, mixed, st.booleans())
@example(
    {"data_wait": [(0.0, "a"), (0.0, "a"), (9e-270, "a")]}, {"data_wait": [(0.0, "a"), (0.0, "a"), (-5e4, "a")]}, False
)
@settings(max_examples=200, deadline=None)
def test_new_over_base_is_the_ratio_of_every_metric_and_lies_in_its_interval(base, new, jobs):
    def samples(column):
        values = [one for one, _ in column]
        return Samples(values, jobs=[job or "alone" for _, job in column]) if jobs else values

    sides = ({name: samples(column) for name, column in values.items()} for values in (base, new))
    verdict = judge(*sides, {"least_jobs": 2, "metrics": {"data_wait": {"floor": 50e3}}})
    for one in verdict.metrics:
        if one.ratio is None:
            assert one.base is None or one.new is None or one.base <= 0
            assert (one.ci_low, one.ci_high) == (None, None)
            continue
        assert one.ratio == min(one.new / one.base, math.exp(700))
        if one.ci_low is not None:
            assert one.ci_low <= one.ratio <= one.ci_high


def test_levels_are_geometric_means_of_what_is_compared_and_an_operator_shows_its_times_and_its_share():
    base = Samples((1.0, 4.0, 2.0, 50.0, 60.0), jobs=("here",) * 3 + ("there",) * 2)
    one = judge({"a": base}, {"a": Samples((3.0, 12.0, 6.0), jobs=("here",) * 3)}).metrics[0]
    assert (one.base, one.new, one.ratio) == (pytest.approx(2.0), pytest.approx(6.0), pytest.approx(3.0))
    # All operators are slower by half, one by less: its time grew, its share shrank.
    spread = (1.0, 1.001, 0.999, 1.0005, 0.9995)
    base = {f"op/{name}": [1e6 * part for part in spread] for name in "abcde"}
    new = {name: [value * (1.2 if name == "op/a" else 1.5) for value in values] for name, values in base.items()}
    one = judge(base, new).metric("op/a")
    assert (one.verdict, one.ratio, one.share_ratio) == ("improved", pytest.approx(1.2), pytest.approx(0.8))
    (reason,) = one.reasons
    assert (reason["prefix"], reason["ratio"]) == ("op/", pytest.approx(0.8))


def plain(base, new, alpha=0.008, least=0.02, margin=0.03):
    """Verdicts by SciPy's t test and Holm by hand, metric by metric."""
    p_values, words = {}, {}
    for way in ("greater", "less"):
        for name, column in base.items():
            test = stats.ttest_ind(np.log(new[name]), np.log(column), equal_var=False, alternative=way)
            p_values[way, name] = float(test.pvalue)
    for way, word in (("greater", "regressed"), ("less", "improved")):
        ranked = sorted((p_values[way, name], name) for name in base)
        for done, (p_value, name) in enumerate(ranked):
            if p_value > alpha / (len(base) - done):
                break
            if abs(np.log(new[name]).mean() - np.log(base[name]).mean()) >= math.log1p(least):
                words[name] = word
        for name, column in base.items():
            lower, upper = (column, new[name]) if way == "greater" else (new[name], column)
            gap = math.log(min(upper) / max(lower))
            widest = max(math.log(max(side) / min(side)) for side in (lower, upper))
            if gap >= math.log(2) and gap >= widest:
                words[name] = word
    for name, column in base.items():
        ends = stats.ttest_ind(np.log(new[name]), np.log(column), equal_var=False).confidence_interval(0.95)
        inside = math.exp(ends.low) >= 1 / (1 + margin) and math.exp(ends.high) <= 1 + margin
        words.setdefault(name, "unchanged" if inside else "inconclusive")
    return words, {name: p_values["greater", name] for name in base}


@every(range(40))
def test_a_plain_second_implementation_agrees(seed):
    chance = np.random.default_rng(seed)
    names = [f"m{number}" for number in range(5)]
    spread = chance.choice([0.003, 0.01, 0.03, 0.3], 5)
    change = chance.choice([-2.0, -0.1, -0.03, 0.0, 0.0, 0.01, 0.05, 0.1, 2.0], 5)
    base = {name: chance.lognormal(3, spread[at], 8) for at, name in enumerate(names)}
    new = {name: chance.lognormal(3 + change[at], spread[at], 10) for at, name in enumerate(names)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words, p_values = plain(base, new)
    found = decided(base, new, Policy(metrics={name: Rule() for name in names}))
    assert {one.name: one.verdict for one in found.metrics} == words
    for one in found.metrics:
        assert one.p_value == pytest.approx(p_values[one.name], rel=1e-8, abs=1e-14)
