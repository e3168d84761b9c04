"""What is said to have changed, from hand-made rows."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.report.words.comparison import headline, worded
from pipeprof.verdict.gate.explain import explanation
from pipeprof.verdict.gate.judge import judge
from pipeprof.verdict.gate.result import MetricVerdict, Verdict


def metric(name, verdict, family="primary", ratio=1.5, **more):
    facts = {
        "unit": "ns", "direction": "lower", "base": 10.0, "new": 15.0, "ci_low": 1.4, "ci_high": 1.6, "p_value": 1e-5,
        "alpha": 0.002, "min_effect": 0.02, "reps_base": 5, "reps_new": 5,
    }  # fmt: skip
    return MetricVerdict(name, family=family, verdict=verdict, ratio=ratio, **(facts | more))


def level(name, base, new, verdict="inconclusive"):
    """A secondary metric; `base` or `new` None when it is not there."""
    ratio = new / base if base and new is not None else None
    return metric(name, verdict, "secondary", ratio=ratio, base=base, new=new)


def verdict_of(*secondary, word="regressed", ratio=1.5):
    return Verdict(word, (metric("step_time_median", word, ratio=ratio), *secondary))


def appeared(*names):
    return [{"name": f"op {name}", "base": None, "new": "kernel", "change": "appeared"} for name in names]


def vanished(*names):
    return [{"name": f"op {name}", "base": "kernel", "new": None, "change": "vanished"} for name in names]


def test_a_stage_that_grew_is_the_cause_when_the_loop_waits_for_data():
    verdict = verdict_of(
        level("phase/data_wait", 2e6, 6e6, "regressed"),
        level("phase/compute", 8e6, 8e6, "unchanged"),
        level("pipeline/decode", 10e6, 21e6, "regressed"),
        level("pipeline/batch", 1e6, 1e6, "unchanged"),
    )
    entries = explanation(verdict, {}, [])
    assert [(entry["kind"], entry["name"], entry["share"]) for entry in entries] == [
        ("pipeline_op", "decode", None),
        ("phase", "data_wait", 1.0),
    ]
    assert headline(verdict, entries) == (
        "Regressed: step time +50.0 % (95 % interval +40.0 to +60.0 %), because work of `decode` per batch grew to 2.1x"
    )


@pytest.mark.parametrize(("name", "said"), [("peak_memory", "peak memory"), ("first_step_time", "time to first step")])
def test_parts_of_a_step_are_no_cause_of_what_is_no_step_time(name, said):
    verdict = Verdict("regressed", (metric(name, "regressed"), level("op/Relu", 10e6, 12e6, "regressed")))
    assert headline(verdict, explanation(verdict, {}, [])) == (
        f"Regressed: {said} +50.0 % (95 % interval +40.0 to +60.0 %)"
    )


def test_a_stage_that_no_test_of_its_own_proves_is_named_when_the_wait_for_data_grew():
    verdict = verdict_of(
        level("phase/data_wait", 100e6, 280e6),
        level("phase/compute", 40e6, 45e6),
        level("pipeline/Rows", 1e6, 3e6),
        level("pipeline/decode", 120e6, 300e6),
        level("pipeline/BatchOp", 2e6, 1e6),
    )
    entries = explanation(verdict, {}, [])
    assert [entry["name"] for entry in entries] == ["decode", "data_wait"]
    assert worded(entries)[0]["text"] == "work of `decode` per batch may have grown to 2.5x"
    assert headline(verdict, entries).endswith(", probably because work of `decode` per batch grew to 2.5x")


def test_a_stage_is_not_named_for_a_step_that_does_not_wait_for_it():
    verdict = verdict_of(
        level("phase/data_wait", 1e6, 1e6),
        level("phase/compute", 40e6, 90e6, "regressed"),
        level("pipeline/decode", 20e6, 30e6),
    )
    assert [entry["name"] for entry in explanation(verdict, {}, [])] == ["compute"]


def test_an_operator_that_became_another_one_is_the_headline():
    verdict = verdict_of(
        level("phase/compute", 10e6, 15e6, "regressed"),
        level("phase/data_wait", 1e6, 1e6),
        level("op/net/conv", 3e6, 8e6, "regressed"),
        level("op/net/relu", 1e6, 1.4e6, "regressed"),
    )
    facts = [{"name": "op net/conv", "base": "Conv2D", "new": "slow_conv2d", "change": "changed"}]
    entries = explanation(verdict, {}, facts)
    assert entries[0]["kind"] == "structure"
    assert entries[0]["share"] == 1.0
    assert "because operator `net/conv` changed from Conv2D to slow_conv2d" in headline(verdict, entries)


def test_a_changed_setting_is_the_cause():
    verdict = verdict_of(level("phase/data_wait", 1e6, 9e6), level("phase/compute", 8e6, 8e6))
    facts = [{"name": "stage decode", "base": "MapOp, workers 4", "new": "MapOp, workers 1", "change": "changed"}]
    text = headline(verdict, explanation(verdict, {}, facts))
    assert "because stage `decode` changed from MapOp, workers 4 to MapOp, workers 1" in text


def test_noise_is_not_explained():
    changes = [level("phase/compute", 10e6, 10.4e6), level("op/net/conv", 3e6, 3.9e6)]
    assert explanation(verdict_of(*changes, word="unchanged", ratio=1.0), {}, []) == []


@pytest.mark.parametrize(("new", "share"), [(None, -0.3), ("Mul", 0.2)])
def test_operators_that_come_and_go(new, share):
    facts = appeared("x") if new else vanished("x")
    there = [] if new else [level("op/x", 3e6, None, "missing")]
    verdict = verdict_of(level("phase/whole", 10e6, 20e6), *there)
    (entry,) = worded(explanation(verdict, {"op/x": 2e6} if new else {}, facts))
    assert entry["share"] == pytest.approx(share)
    assert entry["change"] in entry["what"]


def test_nothing_judged_is_said_so():
    assert headline(Verdict("missing", ()), []) == "Missing: no primary metric could be judged"


def test_a_change_from_nothing_is_said_with_both_values():
    verdict = judge({"data_wait": (0.0,) * 5}, {"data_wait": (5e6,) * 5})
    assert headline(verdict, []).startswith("Regressed: waiting for data 0 ns -> 5.00 ms: a value is 0 or less")


def test_what_is_open_says_how_many_repetitions_it_needs_itself():
    one = metric("step_time_median", "inconclusive", ratio=1.02, ci_low=0.9, ci_high=1.2)
    other = metric("peak_memory", "inconclusive", ratio=1.02, reps_needed=77)
    open_ = Verdict("inconclusive", (dataclasses.replace(one, reps_needed=12, reps_find=0.05), other))
    assert headline(open_, []) == (
        "Inconclusive: step time +2.0 % (95 % interval -10.0 to +20.0 %); about 12 repetitions per side "
        "would probably show a change of 5 %"
    )
    assert headline(Verdict("inconclusive", (one, other)), []).endswith("+20.0 %)")


def test_what_is_open_has_no_cause():
    verdict = verdict_of(
        level("phase/data_wait", 2e6, 9e6), level("phase/compute", 8e6, 8e6), level("pipeline/decode", 8e6, 20e6),
        word="inconclusive",
    )  # fmt: skip
    entries = explanation(verdict, {}, [])
    assert "because" not in headline(verdict, entries)
    assert all(" may have " in entry["text"] for entry in worded(entries))


def test_phases_of_windows_and_of_all_steps_are_no_two_steps():
    verdict = verdict_of(
        level("phase/compute", 10e6, 16e6, "regressed"),
        level("phase/data_wait", 2e6, 6e6, "regressed"),
        level("phase/forward_backward", 8e6, 13e6),
        level("phase/tail", 2e6, 3e6),
    )
    shares = {entry["name"]: entry["share"] for entry in explanation(verdict, {}, [])}
    assert (shares["data_wait"], shares["compute"]) == (pytest.approx(0.4), pytest.approx(0.6))


def test_sides_whose_phases_differ_have_no_shares():
    verdict = verdict_of(level("phase/data_wait", 1e6, 9e6, "regressed"), level("phase/compute", 8e6, None, "missing"))
    (entry,) = explanation(verdict, {}, [])
    assert entry["share"] is None


def test_lines_are_sorted_by_their_share_of_the_change_below_the_cause():
    verdict = verdict_of(
        level("phase/compute", 10e6, 30e6, "regressed"),
        level("phase/data_wait", 1e6, 1e6),
        level("op/small", 1e6, 4e6, "regressed"),
        level("op/large", 2e6, 12e6, "regressed"),
        level("op/less", 5e6, 1e6, "improved"),
    )
    entries = explanation(verdict, {}, [])
    assert [entry["name"] for entry in entries] == ["large", "compute", "less", "small"]
    shares = [abs(entry["share"]) for entry in entries[1:]]
    assert shares == sorted(shares, reverse=True)


def test_kernels_of_another_version_are_one_line_and_no_cause():
    names = [f"void f<{number}, float>(int)" for number in range(4)]
    old = [level(f"op/{name}", 5e6, None, "missing") for name in names[:2]]
    copies = [
        level("op/Memcpy DtoD (Device -> Device)", 1e6, 41e6),
        level("count/Memcpy DtoD (Device -> Device)", 3.0, 774.0),
    ]
    verdict = verdict_of(level("phase/whole", 50e6, 91e6), *old, *copies)
    facts = [*vanished(*names[:2]), *appeared(*names[2:])]
    entries = explanation(verdict, {f"op/{name}": 5.2e6 for name in names[2:]}, facts)
    assert entries[0]["name"] == "Memcpy DtoD (Device -> Device)"
    assert worded(entries)[0]["text"] == "operator `Memcpy DtoD` (3 -> 774 executions per step) may have grown to 41x"
    assert entries[0]["share"] == pytest.approx(40 / 41)
    rest = entries[1:]
    assert {(entry["kind"], entry["family"], entry["share"]) for entry in rest} == {("structure", "f", None)}


def test_kernels_of_a_family_add_up():
    old, new = ("void f<1>(int)", "void f<2>(int)"), "void f<3>(int)"
    verdict = verdict_of(level("phase/whole", 50e6, 70e6), *(level(f"op/{name}", 2e6, None, "missing") for name in old))
    first = explanation(verdict, {f"op/{new}": 24e6}, [*vanished(*old), *appeared(new)])[0]
    assert (first["name"], first["members"], first["base"], first["new"]) == ("f", 3, 4e6, 24e6)
    assert (first["ratio"], first["share"]) == (6.0, 1.0)


positive = st.floats(1e3, 1e9)


@given(st.dictionaries(st.sampled_from(["phase/data_wait", "phase/compute", "op/a", "op/b", "pipeline/c"]),
                       st.tuples(positive, positive)))  # fmt: skip
def test_new_over_base_is_the_ratio_of_every_line(sides):
    verdict = verdict_of(*(level(name, base, new, "regressed") for name, (base, new) in sides.items()))
    for entry in explanation(verdict, {}, []):
        assert entry["new"] / entry["base"] == entry["ratio"]
