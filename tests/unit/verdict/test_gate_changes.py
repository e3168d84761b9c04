"""Change points: planted steps are found where they are, and what is no change is not called one."""

import sys

import numpy as np
import pytest

from pipeprof.errors import UsageError
from pipeprof.verdict.gate.changes import LEAST_SIDE, Point, change_points, drift


def points(values, group="machine", tags=None):
    return [
        Point(float(value), group, f"t{at}", f"r{at}", (tags or {}).get(at)) for at, value in enumerate(values)
    ]  # fmt: skip


def noise(number, sd=0.02, seed=1):
    return np.random.default_rng(seed).normal(0, sd, number)


def test_a_planted_step_is_found_where_it_is():
    logs = noise(60)
    logs[35:] += np.log(1.25)
    (change,) = change_points(points(np.exp(logs) * 1e7))
    assert abs(change.index - 35) <= 1
    assert change.revision == f"r{change.index}"
    assert change.ratio == pytest.approx(1.25, rel=0.03)
    assert (change.points_before, change.points_after) == (change.index, 60 - change.index)
    assert change.before == pytest.approx(1e7, rel=0.02)
    assert change.p_value < 1e-6


def test_two_steps_up_and_down_are_both_found():
    logs = noise(90)
    logs[30:60] += np.log(1.3)
    ratios = [change.ratio for change in change_points(points(np.exp(logs)))]
    assert ratios == [pytest.approx(1.3, rel=0.03), pytest.approx(1 / 1.3, rel=0.03)]


def test_the_unit_does_not_matter():
    logs = noise(60)
    logs[30:] += 0.3
    small, large = (change_points(points(np.exp(logs) * scale)) for scale in (1e-3, 1e9))
    assert [change.index for change in small] == [change.index for change in large] == [30]


def test_spikes_are_no_change_of_level():
    logs = noise(80)
    logs[[10, 40, 41, 70]] += 1.0
    assert change_points(points(np.exp(logs))) == ()


def test_another_machine_is_no_change_even_when_they_take_turns():
    slow = [Point(2e7 * np.exp(value), "slow") for value in noise(30, seed=2)]
    fast = [Point(1e7 * np.exp(value), "fast") for value in noise(30, seed=3)]
    assert change_points(fast + slow) == ()
    assert change_points([point for pair in zip(fast, slow, strict=True) for point in pair]) == ()


def test_a_step_on_one_of_two_machines_is_found_on_that_one():
    logs = noise(40, seed=4)
    logs[20:] += np.log(1.4)
    one, other = points(np.exp(logs), "one"), points(np.exp(noise(40, seed=5)), "other")
    (change,) = change_points([point for pair in zip(one, other, strict=True) for point in pair])
    assert (change.group, change.index) == ("one", 40)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 200, [1.0, 2.0] * 4, [1.0] * 30 + [1.1] + [1.0] * 30])
def test_short_and_constant_series_have_none(values):
    assert change_points(points(values)) == ()


def test_a_step_of_an_exact_metric_is_found():
    (change,) = change_points(points([100.0] * 12 + [120.0] * 8))
    assert (change.index, change.ratio) == (12, 1.2)


@pytest.mark.parametrize("late", [1, 2])
def test_a_few_points_at_the_end_are_no_change_yet(late):
    logs = noise(40)
    logs[-late:] += 0.5
    assert change_points(points(np.exp(logs))) == ()


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


def test_drift_is_the_latest_over_the_last_release():
    past = drift(points([1.0, 2.0, 4.0, 5.0], tags={0: "v1", 1: "v2"}))
    assert (past.tag, past.ratio, past.points_since) == ("v2", 2.5, 2)
    assert drift(points([1.0, 2.0], tags={1: "v1"})) is None
    assert drift([]) is None


def test_drift_of_another_machine_is_not_a_number():
    mixed = points([1.0, 2.0], "old", {0: "v1"}) + points([9.0], "new")
    past = drift(mixed)
    assert past.ratio is None
    assert past.note == {"code": "other_environment", "tag": "v1"}


def test_drift_takes_the_entry_of_the_release_on_the_same_machine():
    mixed = [Point(3.0, "new", tag="v1"), Point(1.0, "old", tag="v1"), Point(6.0, "new")]
    assert drift(mixed).ratio == 2.0


def test_a_small_step_of_a_counted_series_is_found_beside_large_ones():
    levels = [22_000.0] * 9 + [22_440.0] * 8 + [26_900.0] * 10 + [22_440.0] * 7
    changes = change_points(points(levels))
    assert [(change.index, change.earliest, change.latest) for change in changes] == [
        (9, 9, 9),
        (17, 17, 17),
        (27, 27, 27),
    ]
    assert changes[0].ratio == pytest.approx(1.02)


def test_a_counted_series_that_varies_now_and_then_has_no_change():
    values = [22_000.0] * 40
    values[7] = values[20] = 22_001.0
    values[13:15] = [24_000.0, 21_000.0]
    assert change_points(points(values)) == ()
