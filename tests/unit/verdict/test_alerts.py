"""Which changes of level are alerts, which of them are one, and that none has two names."""

from dataclasses import replace

import pytest

from pipeprof.verdict.gate.alerts import Shift, alerts, counts, is_over
from pipeprof.verdict.gate.policy import Policy, Rule


def shift(series=0, at=0, places="c", metric="step_time_median", before=40e6, after=44e6, now=None, workload="net"):
    names = tuple(letter * 10 for letter in places)
    return Shift(
        key=(series, at), workload=workload, metric=metric, before=before, after=after, now=now or after, at="2026",
        place=places[0] * 40, places=names,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "before", "after", "told"),
    [
        ("step_time_median", 40e6, 41e6, True), ("step_time_median", 40e6, 40.5e6, False),  # 2 % at least
        ("step_time_median", 40e6, 36e6, False),  # faster
        ("step_time_median", 1e6, 1.04e6, False),  # below the floor of 50 us
        ("step_time_p90", 40e6, 80e6, False), ("first_step_time", 1e9, 2e9, False),  # they only inform
        ("peak_memory", 1e9, 1.1e9, True), ("op/MatMul", 1e6, 2e6, False),
    ],
)  # fmt: skip
def test_what_the_gate_would_fail_is_an_alert(metric, before, after, told):
    one = shift(metric=metric, before=before, after=after)
    assert counts(one, Policy().rule(metric)) == told


def test_where_higher_is_better_less_is_worse():
    rule = Rule(direction="higher")
    assert counts(shift(metric="samples", before=100.0, after=90.0), rule)
    assert not counts(shift(metric="samples", before=90.0, after=100.0), rule)
    assert is_over(shift(metric="samples", before=100.0, after=90.0, now=99.0), rule)
    assert not is_over(shift(metric="samples", before=100.0, after=90.0), rule)


def test_it_is_over_when_the_level_is_what_it_was():
    rule = Policy().rule("step_time_median")
    assert is_over(shift(now=41e6), rule)
    assert not is_over(shift(now=42e6), rule)


def test_metrics_and_machines_that_changed_at_one_commit_are_one_alert():
    one, other, third = shift(0, places="c"), shift(1, places="bc", metric="data_wait"), shift(2, places="cd")
    (alert,) = alerts([one, other, third], {})
    assert (alert.name, alert.places, alert.shifts) == ("net-cccccccccc", ("c" * 10,), (one, other, third))


def test_other_commits_workloads_and_changes_of_one_series_stay_apart():
    shifts = [shift(0, places="c"), shift(1, places="d"), shift(2, places="c", workload="other"), shift(0, 1, "ec")]
    names = [one.name for one in alerts(shifts, {})]
    assert names == ["net-cccccccccc", "net-dddddddddd", "other-cccccccccc", "net-eeeeeeeeee"]


def test_an_alert_keeps_its_name_when_its_place_becomes_clearer():
    wide = {"net-bbbbbbbbbb": ["a" * 10, "b" * 10, "c" * 10]}
    (alert,) = alerts([shift(places="c")], wide)
    assert (alert.name, alert.places) == ("net-bbbbbbbbbb", ("c" * 10,))
    (elsewhere,) = alerts([shift(places="d")], wide)
    assert elsewhere.name == "net-dddddddddd"
    (of_another,) = alerts([shift(places="c", workload="other")], wide)
    assert of_another.name == "other-cccccccccc"


def test_of_two_alerts_that_could_have_a_name_the_more_alike_has_it():
    known = {"net-bbbbbbbbbb": ["b" * 10, "c" * 10, "d" * 10]}
    names = [one.name for one in alerts([shift(0, places="de"), shift(0, 1, places="bc")], known)]
    assert names == ["net-dddddddddd", "net-bbbbbbbbbb"]


def test_without_a_commit_the_time_stands_for_it():
    one = Shift((0, 0), "my net", "peak_memory", 1.0, 2.0, 2.0, "2026-01-01", "2026-01-01", ("2026-01-01",))
    (alert,) = alerts([one], {})
    (again,) = alerts([one], {})
    assert alert.name == again.name
    assert alert.name.startswith("my-net-")


def test_a_change_of_the_size_of_the_margin_is_not_over_at_once():
    rule = Policy().rule("instructions")
    small = shift(metric="instructions", before=22_018.0, after=22_678.0)
    assert not is_over(replace(small, now=22_678.0), rule)
    assert not is_over(replace(small, now=22_400.0), rule)
    assert is_over(replace(small, now=22_100.0), rule)
