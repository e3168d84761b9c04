"""Labels from rates that can be divided in the head, and answers held against labels."""

from __future__ import annotations

import json

import catalogue
import pytest
from decide import decide, if_free, ratios
from label import is_done, wanted
from real_score import Said, contradicts, judged, kinds_of, report

from pipeprof.experiment.pairs import Ratio


def ratio(low, high=None):
    high = low if high is None else high
    return Ratio((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("whole", "ops", "limits", "accepted"),
    [
        (ratio(1.0, 1.04), {1: ratio(1.0)}, "loop", ("consumer",)),
        (ratio(1.0, 1.04), {1: ratio(1.4)}, "loop", ("consumer",)),  # more than the whole can bring: noise
        (ratio(2.0, 2.2), {1: ratio(1.0), 2: ratio(1.8, 2.0)}, "op", (2,)),
        (ratio(2.0, 2.2), {1: ratio(1.5, 1.6), 2: ratio(1.5, 1.7)}, "op", (1, 2)),
        (ratio(2.0, 2.2), {1: ratio(1.2, 1.3), 2: ratio(1.5, 1.7)}, "op", (2,)),
        (ratio(2.0, 2.2), {1: ratio(0.9), 2: ratio(1.01)}, "rest", (1, 2, 7)),
        (ratio(2.0, 2.2), {1: ratio(1.03)}, "rest", (1, 7)),
        (ratio(2.0, 2.2), {}, "rest", (7,)),
        (ratio(1.02, 1.08), {1: ratio(1.03)}, "either", ("consumer", 1)),
        (ratio(0.8, 1.9), {1: ratio(1.3)}, "undecided", ("consumer", 1)),
    ],
)
def test_what_limits(whole, ops, limits, accepted):
    found = decide(whole, ops, [7])
    assert (found.limits, found.accepted) == (limits, accepted)


def test_ratios_are_of_the_same_rounds():
    assert ratios([10.0, 20.0, 30.0], [20.0, 30.0]) == Ratio(1.75, 1.5, 2.0)


@pytest.mark.parametrize(
    ("share", "most", "high"), [(0.0, 3.0, 1.2), (0.25, 3.0, 1.6), (0.9, 3.0, 2.4), (0.25, 1.3, 1.3)]
)
def test_what_handing_out_cost_widens_the_gain_upwards(share, most, high):
    found = if_free(ratio(1.0, 1.2), share, most)
    assert (found.ratio, found.low, found.high) == (1.1, 1.0, pytest.approx(high))


OP = {"op_id": 2, "op_type": "MapOp", "name": "shrink", "is_python": True, "uses_processes": False, "workers": 1}


def label(limits="op", accepted=(2,), **figures):
    op = OP | {"low": 1.8, "ratio": 1.9, "high": 2.0} | figures
    change = {"op_id": 2, "parameter": "num_parallel_workers", "new": 2, "ratio": 1.5}
    facts = {"name": "one", "held_out": False, "quiet": True, "limits": limits, "accepted": list(accepted)}
    facts["whole"] = {"ratio": 2.0, "low": 1.9, "high": 2.1}
    return facts | {"ops": [op], "changes": [change]}


def test_the_first_name_decides():
    assert judged(label(), Said("input_bound", [2, 1], "cpu")).right is True
    assert judged(label(), Said("input_bound", [1, 2], "cpu")).right is False
    assert judged(label(), Said("not_measured", [])).right is False
    assert judged(label("loop", ["consumer"]), Said("consumer_bound", ["consumer"])).right is True


def test_an_undecided_training_is_not_asked():
    assert judged(label("undecided", ["consumer", 2]), Said("input_bound", [1])).right is None


@pytest.mark.parametrize(
    ("facts", "saturated", "right"),
    [
        ({}, False, {"cpu", "gil"}),
        ({}, True, {"cpu", "gil", "host_saturated"}),
        ({"uses_processes": True}, False, {"cpu"}),
        ({"is_python": False}, False, {"cpu"}),
        ({"is_python": False, "op_type": "CifarOp"}, False, {"cpu", "wait"}),
        ({"op_type": "GeneratorOp", "workers": 2}, False, {"cpu", "gil", "poll"}),
        ({"op_type": "GeneratorOp", "name": "Distant"}, False, {"wait"}),
    ],
)
def test_kinds_follow_from_the_code(facts, saturated, right):
    assert kinds_of(OP | facts, saturated=saturated) == right


def test_a_kind_counts_only_where_the_operator_is_right():
    assert judged(label(), Said("input_bound", [2], "wait")).kind_right is False
    assert judged(label(), Said("input_bound", [1], "cpu")).kind_right is None


def test_promises_are_held_against_measurements():
    said = Said(
        "input_bound", [2], bounds={2: 1.3, 5: 9.0},
        gains=[(2, "num_parallel_workers", 2, 1.4, 1.6), (2, "num_parallel_workers", 3, 1.0, 1.1)],
    )  # fmt: skip
    found = judged(label(), said)
    assert (found.bounds_right, found.gains_right) == ([False], [True])
    assert judged(label(low=1.2), said).bounds_right == [True]


def test_the_report_keeps_the_last_third_apart():
    known = judged(label(), Said("input_bound", [2], "cpu", "high"))
    last = judged(label() | {"held_out": True}, Said("consumer_bound", ["consumer"], None, "high"))
    found = report([known, last])["summary"]
    assert {name: one["top1"]["share"] for name, one in found.items()} == {"all": 0.5, "known": 1.0, "held out": 0.0}
    assert found["held out"]["high_right"]["right"] == 0


def test_the_catalogue_is_wide_and_a_third_is_held_out():
    cases, last = catalogue.CASES, catalogue.held_out()
    assert len({case.name for case in cases}) == len(cases) >= 30
    assert 0.25 <= len(last) / len(cases) <= 0.4
    for part in ({case.loop for case in cases if (case.name in last) is held} for held in (True, False)):
        assert part == {"model", "jit", "pynative"}
    assert any(case.heavy and case.name in last for case in cases)


def test_what_is_labelled_next(tmp_path):
    """Complete labels of a quiet machine are left alone, and the last third waits."""

    class Options:
        names, held_out, group, out = [], False, None, tmp_path

    first, second, *_ = names = wanted(Options)
    assert not set(names) & catalogue.held_out()
    for name, quiet in ((first, True), (second, False)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"quiet": quiet}))
    assert (is_done(first, tmp_path), is_done(second, tmp_path)) == (True, False)
    assert wanted(Options)[0] == second


@pytest.mark.parametrize(
    ("verdict", "confidence", "low", "high", "expected"),
    [
        ("consumer_bound", "high", 1.1, 1.3, True),
        ("consumer_bound", "low", 1.1, 1.3, False),
        ("consumer_bound", "medium", 1.09, 1.3, False),
        ("input_bound", "medium", 0.9, 1.04, True),
        ("input_bound", "high", 0.9, 1.05, False),
        ("balanced", "medium", 1.1, 1.3, False),
    ],
)
def test_a_report_that_is_sure_of_the_opposite_of_what_headspace_measured(verdict, confidence, low, high, expected):
    said = Said(verdict, ["consumer"], confidence=confidence)
    assert contradicts({"low": low, "high": high}, said) is expected


@pytest.mark.parametrize(("ratio", "right"), [(0.99, False), (1.0, True), (1.28, True), (1.29, False)])
def test_an_interval_from_nothing_on_holds_what_the_whole_pipeline_brings(ratio, right):
    found = label() | {"whole": {"ratio": ratio, "low": ratio, "high": ratio}}
    assert judged(found, Said("balanced", [2], whole_most=1.28)).whole_right is right
    assert judged(found, Said("balanced", [2])).whole_right is None
