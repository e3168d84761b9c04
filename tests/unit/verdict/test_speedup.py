"""When pairs of runs decide, when they show two speeds, and how often they say the wrong thing."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from pipeprof.verdict.speedup import CHANGE, GAIN, WORTH, answer_of, interval_over, two_speeds

SESSIONS = 400
LEAST, MOST = 2, 8


@pytest.mark.parametrize("count", [2, 3, 5, 6, 8, 11, 12, 20])
def test_the_interval_is_scipys_trimmed_one(count):
    chance = random.Random(count)  # noqa: S311 - no secret
    ratios = [math.exp(chance.gauss(0.3, 0.1)) for _ in range(count)]
    share = (count // 6) / count + 1e-9
    expected = stats.mstats.trimmed_mean_ci(np.log(ratios), limits=(share, share), alpha=0.02)
    assert np.log(interval_over(ratios)) == pytest.approx(np.asarray(expected), rel=1e-7)
    assert interval_over(ratios[:1]) is None


@pytest.mark.parametrize(("ratios", "decided"), [
    ([2.0, 2.05], "above"), ([1.2, 1.22, 1.19], "above"), ([1.0, 1.01, 0.99, 1.0], "below"),
    ([1.05, 1.06, 1.04, 1.05], "narrow"), ([0.55, 1.53], None), ([1.53], None), ([1.1, 1.6], None),
    ([1.4, 1.5, 0.9, 1.6], None), ([0.55, 1.53, 1.0, 1.01, 0.99, 1.0, 1.01, 0.99], "below"),
])  # fmt: skip
def test_what_pairs_decide(ratios, decided):
    answer = answer_of(ratios, GAIN)
    assert (answer.decided, answer.speeds) == (decided, ())


def test_a_change_matters_from_two_per_cent_on():
    ratios = [1.031, 1.03, 1.032, 1.029, 1.03]
    assert (answer_of(ratios, CHANGE).decided, answer_of(ratios, GAIN).decided) == ("above", "below")
    assert answer_of([1 / ratio for ratio in ratios], CHANGE).decided == "below"


@pytest.mark.parametrize(
    ("ratios", "medians", "decided"),
    [
        ([1.8, 3.1, 1.85, 3.05, 1.82], [1.82, 3.075], "above"),
        ([1.0, 1.6, 1.02, 1.58, 1.01], [1.01, 1.59], "two_speeds"),
        ([0.7, 1.0, 0.71, 0.99, 0.72], [0.71, 0.995], "below"),
    ],
)
def test_two_speeds_answer_each_for_itself(ratios, medians, decided):
    answer = answer_of(ratios, GAIN)
    assert [speed.places for speed in answer.speeds] == [(0, 2, 4), (1, 3)]
    assert answer.decided == decided
    assert [speed.median for speed in answer.speeds] == pytest.approx(medians)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.01, 1.02, 1.0, 1.9],  # one alone is no speed
        [1.0, 1.2, 1.4, 1.6, 1.8],  # no gap
        [1.0, 1.01, 1.1, 1.11, 1.12],  # hardly apart
        [1.0, 1.01, 2.0, 2.01],  # too few
        [1.0, 1.3, 1.9, 2.0, 2.1],  # the slow ones are apart themselves
    ],
)
def test_what_is_not_two_speeds(values):
    assert two_speeds(values) == ()


def test_a_speed_of_parts_needs_more_of_them_and_a_source_with_two_paces_is_said_to_have_them():
    rates = [10.0, 10.1, 20.0, 20.1, 20.2, 20.1, 20.0, 20.1]
    assert (len(two_speeds(rates)), two_speeds(rates, each=3)) == (2, ())
    chance, seen = random.Random("paces"), 0  # noqa: S311 - no secret
    for _ in range(SESSIONS):
        ratios = [chance.choice((1.5, 2.5)) * math.exp(chance.gauss(0, 0.03)) for _ in range(MOST)]
        seen += len(two_speeds(ratios)) == 2
    assert seen / SESSIONS > 0.85  # 7 % of the sessions have one of the paces fewer than twice


def quiet(chance, noise):
    return chance.gauss(0, noise)


def beside_others(chance, noise):
    """One pair in five is disturbed on one of its sides."""
    disturbed = chance.choice((-1, 1)) * chance.uniform(0.1, 0.8) if chance.random() < 0.2 else 0.0
    return chance.gauss(0, noise) + disturbed


def outcomes(truth, noise, kind=quiet):
    """How often drawn sessions end how, as shares: decided, the number of pairs, and `wrong`."""
    chance = random.Random(f"{truth} {noise} {kind.__name__}")  # noqa: S311 - no secret
    counts = Counter()
    for _ in range(SESSIONS):
        ratios, decided = [], None
        while len(ratios) < LEAST or (decided is None and len(ratios) < MOST):
            ratios.append(truth * math.exp(kind(chance, noise)))
            answer = answer_of(ratios, GAIN)
            decided = answer.decided
        counts[decided] += 1
        counts["pairs"] += len(ratios)
        counts["wrong"] += is_wrong(answer, truth)
    return {name: count / SESSIONS for name, count in counts.items()}


def is_wrong(answer, truth):
    """Says that there is more, or less, to gain than is worth it, and it is not so; or names another interval."""
    if answer.decided == "narrow":
        return not answer.interval[0] <= truth <= answer.interval[1]
    return (answer.decided == "above" and truth <= WORTH) or (answer.decided == "below" and truth >= WORTH)


@pytest.mark.parametrize("kind", [quiet, beside_others])
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1, 0.2])
@pytest.mark.parametrize(("truth", "most"), [(1.0, 0.05), (WORTH, 0.10), (1.1, 0.05), (1.5, 0.02)])
def test_how_often_the_answer_is_wrong(truth, most, noise, kind):
    """Where the truth is the threshold itself, either side is wrong; elsewhere one of them."""
    assert outcomes(truth, noise, kind).get("wrong", 0) <= most


@pytest.mark.parametrize(("truth", "pairs"), [(1.0, 4.5), (1.2, 3.5), (2.0, 3)])
def test_a_quiet_machine_has_its_answer_after_a_few_pairs(truth, pairs):
    found = outcomes(truth, 0.02)
    assert found.get(None, 0) <= 0.02
    assert found["pairs"] <= pairs


@pytest.mark.parametrize("kind", [quiet, beside_others])
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1, 0.2])
def test_one_speed_is_rarely_taken_for_two(noise, kind):
    assert outcomes(1.05, noise, kind).get("two_speeds", 0) <= 0.10
