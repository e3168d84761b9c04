"""What is said to have changed, from hand-made rows."""

import dataclasses

import pytest

from pipeprof.verdict.gate.explain import explanation, headline
from pipeprof.verdict.gate.result import MetricVerdict, Verdict

LABELS = {"step_time_median": "step time"}


def metric(name, verdict, family="primary", ratio=1.5, **more):
    facts = {
        "unit": "ns", "direction": "lower", "base": 10.0, "new": 15.0, "ci_low": 1.4, "ci_high": 1.6, "p_value": 1e-5,
        "alpha": 0.002, "min_effect": 0.02, "reps_base": 5, "reps_new": 5,
    }  # fmt: skip
    return MetricVerdict(name, family=family, verdict=verdict, ratio=ratio, **(facts | more))


def change(name, base, new):
    ratio = new / base if base else None
    return {"metric": name, "base": base, "new": new, "delta": new - base, "ratio": ratio}


def regressed(*names):
    extra = tuple(metric(name, "regressed", "secondary") for name in names)
    return Verdict("regressed", (metric("step_time_median", "regressed"), *extra))


def test_a_stage_that_grew_is_the_cause_when_the_loop_waits_for_data():
    changes = [
        change("phase/data_wait", 2e6, 6e6),
        change("phase/compute", 8e6, 8e6),
        change("pipeline/decode", 10e6, 21e6),
        change("pipeline/batch", 1e6, 1e6),
    ]
    verdict = regressed("phase/data_wait", "pipeline/decode")
    entries = explanation(changes, [], verdict)
    assert [(entry["kind"], entry["name"], entry["share"]) for entry in entries] == [
        ("phase", "data_wait", 1.0),
        ("pipeline_op", "decode", None),
    ]
    assert headline(verdict, entries, LABELS) == (
        "step time +50.0 % [40.0, 60.0], because work of `decode` grew 2.1x; regressed"
    )


def test_an_operator_that_became_another_one_is_the_headline():
    changes = [
        change("phase/compute", 10e6, 15e6),
        change("phase/data_wait", 1e6, 1e6),
        change("op/net/conv", 3e6, 8e6),
        change("op/net/relu", 1e6, 1.4e6),
    ]
    facts = [{"name": "op net/conv", "base": "Conv2D", "new": "slow_conv2d", "change": "changed"}]
    verdict = regressed("op/net/conv", "op/net/relu")
    entries = explanation(changes, facts, verdict)
    assert entries[0]["kind"] == "structure"
    assert entries[0]["share"] == 1.0
    assert "because operator `net/conv` changed from Conv2D to slow_conv2d" in headline(verdict, entries, LABELS)


def test_a_changed_setting_is_the_cause():
    changes = [change("phase/data_wait", 1e6, 9e6), change("phase/compute", 8e6, 8e6)]
    facts = [{"name": "stage decode", "base": "MapOp, workers 4", "new": "MapOp, workers 1", "change": "changed"}]
    verdict = regressed()
    text = headline(verdict, explanation(changes, facts, verdict), LABELS)
    assert "because stage `decode` changed from MapOp, workers 4 to MapOp, workers 1" in text


def test_noise_is_not_explained():
    changes = [change("phase/compute", 10e6, 10.4e6), change("op/net/conv", 3e6, 3.9e6)]
    verdict = Verdict("unchanged", (metric("step_time_median", "unchanged", ratio=1.0),))
    assert explanation(changes, [], verdict) == []


@pytest.mark.parametrize(("new", "share"), [(None, -0.3), ("Mul", 0.2)])
def test_operators_that_come_and_go(new, share):
    base = None if new else "Mul"
    row = {"metric": "op/x", "base": 3e6 if base else None, "new": None if base else 2e6, "delta": None, "ratio": None}
    facts = [{"name": "op x", "base": base, "new": new, "change": "appeared" if new else "vanished"}]
    (entry,) = explanation([change("phase/whole", 10e6, 20e6), row], facts, regressed())
    assert entry["share"] == pytest.approx(share)
    assert entry["change"] in entry["what"]


def test_nothing_judged_is_said_so():
    assert headline(Verdict("missing", ()), [], LABELS) == "no primary metric could be judged; missing"


def test_what_is_open_says_how_many_repetitions_it_needs():
    one = metric("step_time_median", "inconclusive", ratio=1.02, ci_low=0.9, ci_high=1.2)
    open_ = Verdict("inconclusive", (dataclasses.replace(one, reps_needed=12),))
    assert headline(open_, [], LABELS) == (
        "step time +2.0 % [-10.0, 20.0]; inconclusive (about 12 repetitions of each side are needed)"
    )
    assert headline(Verdict("inconclusive", (one,)), [], LABELS).endswith("; inconclusive")


def test_phases_of_windows_and_of_all_steps_are_no_two_steps():
    changes = [
        change("phase/compute", 10e6, 16e6),
        change("phase/data_wait", 2e6, 6e6),
        change("phase/forward_backward", 8e6, 13e6),
        change("phase/tail", 2e6, 3e6),
    ]
    entries = explanation(changes, [], regressed("phase/data_wait", "phase/compute"))
    shares = {entry["name"]: entry["share"] for entry in entries}
    assert (shares["data_wait"], shares["compute"]) == (pytest.approx(0.4), pytest.approx(0.6))


def test_sides_whose_phases_differ_have_no_shares():
    lacking = {"metric": "phase/compute", "base": 8e6, "new": None, "delta": None, "ratio": None}
    (entry,) = explanation([change("phase/data_wait", 1e6, 9e6), lacking], [], regressed("phase/data_wait"))
    assert entry["share"] is None
