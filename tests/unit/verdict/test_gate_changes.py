"""Change points: planted steps are found where they are, and what is no change is not called one."""

import sys

import numpy as np
import pytest

from pipeprof.errors import UsageError
from pipeprof.verdict.gate.changes import LEAST_SIDE, Point, change_points, drift


def points(values, group="machine", tags=()):
    tags = dict(tags)
    return [Point(float(value), group, f"t{at}", f"r{at}", tags.get(at)) for at, value in enumerate(values)]


def noise(number, sd=0.02, seed=1):
    return np.random.default_rng(seed).normal(0, sd, number)


def stepped(number, size, places=slice(None), seed=1):
    logs = noise(number, seed=seed)
    logs[places] += size
    return np.exp(logs)


def in_turn(*series):
    return [point for pair in zip(*series, strict=True) for point in pair]


def test_a_planted_step_is_found_where_it_is():
    (change,) = change_points(points(stepped(60, np.log(1.25), slice(35, None)) * 1e7))
    assert abs(change.index - 35) <= 1
    assert change.revision == f"r{change.index}"
    assert change.ratio == pytest.approx(1.25, rel=0.03)
    assert (change.points_before, change.points_after) == (change.index, 60 - change.index)
    assert change.before == pytest.approx(1e7, rel=0.02)
    assert change.p_value < 1e-6


def test_two_steps_are_both_found_and_the_unit_does_not_matter():
    ratios = [change.ratio for change in change_points(points(stepped(90, np.log(1.3), slice(30, 60))))]
    assert ratios == [pytest.approx(1.3, rel=0.03), pytest.approx(1 / 1.3, rel=0.03)]
    for scale in (1e-3, 1e9):
        (change,) = change_points(points(stepped(60, 0.3, slice(30, None)) * scale))
        assert change.index == 30


def test_another_machine_is_no_change_even_when_they_take_turns_and_a_step_is_found_on_its_own():
    slow = [Point(2e7 * np.exp(value), "slow") for value in noise(30, seed=2)]
    fast = [Point(1e7 * np.exp(value), "fast") for value in noise(30, seed=3)]
    assert change_points(fast + slow) == change_points(in_turn(fast, slow)) == ()
    one = points(stepped(40, np.log(1.4), slice(20, None), seed=4), "one")
    (change,) = change_points(in_turn(one, points(stepped(40, 0, seed=5), "other")))
    assert (change.group, change.index) == ("one", 40)


COUNTED = [22_000.0] * 40
COUNTED[7] = COUNTED[20] = 22_001.0
COUNTED[13:15] = [24_000.0, 21_000.0]


@pytest.mark.parametrize("values", [
    [], [1.0], [1.0] * 200, [1.0, 2.0] * 4, [1.0] * 30 + [1.1] + [1.0] * 30,
    COUNTED,  # it varies now and then
    stepped(80, 1.0, [10, 40, 41, 70]),  # spikes
    stepped(40, 0.5, [-1]),  # a few points at the end are no change yet
    stepped(40, 0.5, [-2, -1]),
])  # fmt: skip
def test_series_without_a_change_of_level(values):
    assert change_points(points(values)) == ()


@pytest.mark.parametrize(
    ("levels", "places", "ratio"),
    [
        ([100.0] * 12 + [120.0] * 8, [12], 1.2),
        ([22_000.0] * 9 + [22_440.0] * 8 + [26_900.0] * 10 + [22_440.0] * 7, [9, 17, 27], 1.02),  # small beside large
    ],
)
def test_steps_of_an_exact_metric_are_found(levels, places, ratio):
    changes = change_points(points(levels))
    assert [(one.index, one.earliest, one.latest) for one in changes] == [(place, place, place) for place in places]
    assert changes[0].ratio == pytest.approx(ratio)


def test_every_change_has_the_least_number_of_points_on_each_side():
    rng = np.random.default_rng(6)
    for _ in range(50):
        logs = noise(60, seed=rng) + np.repeat(rng.normal(0, 0.3, 20), 3)
        for change in change_points(points(np.exp(logs))):
            assert min(change.points_before, change.points_after) >= LEAST_SIDE


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_values_that_are_no_positive_numbers_are_refused(value):
    with pytest.raises(UsageError, match="expected positive numbers"):
        change_points(points([1.0] * 20 + [value]))


def test_without_ruptures_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(UsageError, match="need ruptures") as caught:
        change_points(points([1.0] * 20))
    assert caught.value.hint == "pip install 'pipeprof[history]'"


def test_drift_is_the_latest_over_the_last_release_on_the_same_machine():
    past = drift(points([1.0, 2.0, 4.0, 5.0], tags={0: "v1", 1: "v2"}))
    assert (past.tag, past.ratio, past.points_since) == ("v2", 2.5, 2)
    assert drift(points([1.0, 2.0], tags={1: "v1"})) is drift([]) is None
    past = drift(points([1.0, 2.0], "old", {0: "v1"}) + points([9.0], "new"))
    assert (past.ratio, past.note) == (None, {"code": "other_environment", "tag": "v1"})
    assert drift([Point(3.0, "new", tag="v1"), Point(1.0, "old", tag="v1"), Point(6.0, "new")]).ratio == 2.0
