"""Which word a metric gets, and the worst of the primary ones."""

import math

import msgspec
import numpy as np
import pytest

from pipeprof.errors import UsageError
from pipeprof.report.words import gate
from pipeprof.verdict import Policy, Samples, judge, judge_looks
from pipeprof.verdict.gate.causes import stated_cause
from pipeprof.verdict.gate.explain import explanation
from pipeprof.verdict.gate.planned import Look
from pipeprof.verdict.gate.policy import Rule, read_policy
from pipeprof.verdict.gate.result import note

STEP = "step_time_median"
# Eight repetitions with a standard deviation of about 1.2 %, in ns.
BASE = tuple(1e8 * (1 + part / 1000) for part in (-18, -12, -6, -2, 2, 6, 12, 18))
TIGHT = tuple(1e8 * (1 + part / 1e5) for part in range(8))
SMALL = tuple(value / 1e8 * 200_000 for value in BASE)
NOISY = (1e8, 2e8, 0.5e8)
FAST, SLOW = (2.65e6, 2.7e6, 2.75e6), (1.3e8, 2e8, 3.4e8)  # a test of so few, so unlike repetitions says p = 0.002


def times(factor, values=BASE):
    return tuple(value * factor for value in values)


def step(base, new, policy=None):
    """The one metric of a verdict on step times."""
    return judge({STEP: base}, {STEP: new}, policy).metrics[0]


def word(base, new, **rule):
    return judge({"x": base}, {"x": new}, Policy(metrics={"x": Rule(**rule)})).metrics[0]


def codes(one):
    """Of the reasons of a metric's verdict."""
    return [reason["code"] for reason in one.reasons]


@pytest.mark.parametrize(("base", "new", "expected"), [
    (BASE, BASE, ("unchanged", 0)), (BASE, times(1.10), ("regressed", 1)), (BASE, times(1 / 1.10), ("improved", 0)),
    (TIGHT, times(1.015, TIGHT), ("unchanged", 0)),  # a sure change, below the least effect
    (TIGHT, times(1.021, TIGHT), ("regressed", 1)),
    (SMALL, times(1.20, SMALL), ("unchanged", 0)),  # below the floor
    (SMALL, times(1.40, SMALL), ("regressed", 1)), ([1e8] * 5, [1e8] * 5, ("unchanged", 0)),
    ([1e8] * 5, [1.1e8] * 5, ("regressed", 1)), ([1e8] * 5, [0.9e8] * 5, ("improved", 0)), (BASE, (), ("missing", 3)),
])  # fmt: skip
def test_step_times(base, new, expected):
    verdict = judge({STEP: base}, {STEP: new})
    assert (verdict.verdict, verdict.exit_code) == expected


def test_a_verdict_has_its_numbers_and_mirrors_where_higher_is_better():
    one, faster = step(BASE, times(1.10)), step(BASE, times(1 / 1.10))
    assert one.ratio == pytest.approx(1.10)
    assert one.ci_low < 1.10 < one.ci_high
    assert one.p_value < one.alpha == pytest.approx(0.0016)  # one alone is held against its share of five
    assert (one.reps_base, one.reps_new, one.reps_needed, one.unit) == (8, 8, None, "ns")
    assert faster.p_value > 0.99
    assert word(BASE, BASE).alpha == pytest.approx(0.008)
    many = {f"benchmark/{number}": BASE for number in range(10)}
    assert judge(many, many).metrics[0].alpha == pytest.approx(0.0008)
    assert word(BASE, times(1.10), direction="higher").verdict == "improved"
    slower = word(BASE, times(1 / 1.10), direction="higher")
    assert (slower.verdict, slower.ratio) == ("regressed", pytest.approx(1 / 1.10))
    assert slower.p_value < 0.002
    assert word(FAST, SLOW, direction="higher").verdict == "improved"
    assert word(SLOW, FAST, direction="higher").verdict == "regressed"


def test_noise_is_inconclusive_and_more_repetitions_are_asked_for_only_where_they_can_help():
    noisy = (1e8, 1.3e8, 0.8e8, 1.1e8, 0.9e8)
    one = step(noisy, times(1.1, noisy))
    assert (one.verdict, one.reps_needed, codes(one)) == ("inconclusive", None, ["too_noisy"])
    quieter = tuple(value**0.25 * 1e6 for value in noisy)
    one = step(quieter, times(1.03, quieter))
    assert (one.verdict, one.reps_find) == ("inconclusive", pytest.approx(0.05))
    assert 5 < one.reps_needed < 100
    one = step((1e-9, 1.0, 1e290), (1e290, 1e-9, 1.0))
    assert one.verdict == "inconclusive"
    assert 0 <= one.ci_low < one.ci_high < math.inf
    # Eight would find 5 %, so that more are asked for what was seen: a change that counts, or none.
    for ratio, needed in ((1.021, pytest.approx(16, abs=2)), (1.019, pytest.approx(28, abs=4))):
        one = step(BASE, times(ratio))
        assert (one.verdict, one.reps_find, one.reps_needed) == ("inconclusive", None, needed)
    between = word(TIGHT, times(1.04, TIGHT), min_effect=0.05, margin=0.03)
    assert (between.verdict, between.reps_needed, codes(between)) == ("inconclusive", None, ["too_small"])


def test_an_improvement_is_said_with_what_it_was_held_against_itself():
    base, new = {"a": BASE, "b": BASE}, {"a": times(3.0), "b": times(0.975)}
    p_better = 1 - judge(base, new).metric("b").p_value
    policy = {"alpha": 4.5 * p_better}  # between a fourth and a fifth of it: the first step is for the surest
    (why,) = judge(base, new, policy).metric("b").reasons
    assert (why["code"], why["better"]) == ("too_noisy", True)
    assert why["needed"] < why["p_value"] == pytest.approx(p_better)


@pytest.mark.parametrize("number", [1, 2])
def test_too_few_repetitions_are_never_judged(number):
    verdict = judge({STEP: BASE}, {STEP: times(2)[:number]})
    one = verdict.metrics[0]
    assert (verdict.verdict, verdict.exit_code, one.reps_needed, one.p_value) == ("inconclusive", 4, 3, None)
    assert one.reasons == (note("few_repetitions", needed=3),)


def test_what_is_missing_cannot_pass_unless_it_is_secondary_and_wins_over_inconclusive():
    assert judge({STEP: BASE}, {}).metrics[0].new is None
    for base, new in (({STEP: BASE}, {}), ({}, {}), ({}, {STEP: BASE}), ({"count/ops": (3, 3)}, {"count/ops": (3, 3)})):
        assert judge(base, new).verdict == "missing"
    verdict = judge({STEP: BASE, "phase/tail": BASE}, {STEP: BASE})
    assert (verdict.verdict, verdict.metric("phase/tail").verdict) == ("unchanged", "missing")
    base = {STEP: BASE, "peak_memory": BASE, "data_wait": NOISY}
    assert judge(base, {STEP: times(2), "data_wait": NOISY}).verdict == "regressed"
    assert judge(base, {STEP: BASE, "data_wait": NOISY}).verdict == "missing"
    assert judge(base, {**base, "peak_memory": times(0.8)}).verdict == "inconclusive"
    del base["data_wait"]
    assert judge(base, {**base, "peak_memory": times(0.8)}).verdict == "improved"


@pytest.mark.parametrize(
    ("new", "said"), [(NOISY, "inconclusive"), (times(1.5), "regressed"), (times(0.5), "improved"), ((), "missing")]
)
def test_what_informs_is_judged_and_stands_in_no_ones_way(new, said):
    verdict = judge({STEP: BASE, "step_time_p90": NOISY if new is NOISY else BASE}, {STEP: BASE, "step_time_p90": new})
    one = verdict.metric("step_time_p90")
    assert (verdict.verdict, verdict.exit_code, one.family, one.verdict) == ("unchanged", 0, "informing", said)
    assert one.alpha == (None if said == "missing" else pytest.approx(0.008 / 5))  # as if it decided as well


def test_a_switch_makes_a_metric_decide_or_inform_and_the_tail_of_communication_decides_where_it_is():
    policy = read_policy({"metrics": {"step_time_p90": "decides", "data_wait": "informs"}}, "here")
    side, slower = dict.fromkeys((STEP, "step_time_p90", "data_wait"), BASE), times(2)
    assert judge(side, {**side, "step_time_p90": slower}, policy).verdict == "regressed"
    assert judge(side, {**side, "data_wait": slower}, policy).verdict == "unchanged"
    assert judge(side, {**side, "data_wait": slower}).verdict == "regressed"
    off = judge(side, {**side, "data_wait": slower}, read_policy({"metrics": {"data_wait": False}}, "here"))
    assert (off.exit_code, off.metric("data_wait").family) == (0, "secondary")
    with pytest.raises(UsageError, match='expected "decides", "informs", false or a table'):
        read_policy({"metrics": {"step_time_p90": "decide"}}, "here")

    def beside(name, new=None, policy=None):
        tail = times(0.1)
        return judge({STEP: BASE, name: tail}, {STEP: BASE} | ({} if new is None else {name: times(new, tail)}), policy)

    longer = beside("communication/tail", 1.5)
    assert (longer.verdict, longer.metric("communication/tail").verdict) == ("regressed", "regressed")
    assert beside("communication/tail").verdict == "missing"
    assert beside("communication/exposed", 1.5).verdict == "unchanged"
    assert beside("communication/tail", policy={"metrics": {"communication/tail": False}}).verdict == "unchanged"
    assert beside("phase/tail", 1.0).metric(STEP).alpha == step(BASE, BASE).alpha == pytest.approx(Policy().alpha / 5)


def test_what_is_only_in_new_is_noted_and_primary_metrics_come_first_in_the_order_of_the_policy():
    verdict = judge({STEP: BASE}, {STEP: BASE, **dict.fromkeys("abcd", (1.0,)), "op/e": (1.0,), "count/e": (1.0,)})
    assert note("only_in_new", metrics=["a", "b", "c", "d"]) in verdict.notes
    assert "data_wait" in next(one for one in verdict.notes if one["code"] == "on_neither_side")["metrics"]
    names = ("op/z", "step_time_p90", "count/a", "benchmark/b", STEP, "op/a", "peak_memory")
    found = [one.name for one in judge(dict.fromkeys(names, BASE), dict.fromkeys(names, BASE)).metrics]
    assert found == [STEP, "peak_memory", "benchmark/b", "step_time_p90", "count/a", "op/a", "op/z"]


def ops(slow=1.0, everything=1.0):
    load = (1.0, 1.5, 0.8, 1.2, 2.0, 0.7)  # what all operators of a repetition share
    own = (1.0, 1.004, 0.997, 1.002, 0.995, 1.001)
    side = {
        f"op/{name}": tuple(1e6 * everything * load[at] * own[(at + row) % 6] for at in range(6))
        for row, name in enumerate("abcde")
    }
    return {**side, "op/c": times(slow, side["op/c"])}


def regressed(verdict):
    return [one.name for one in verdict.metrics if one.verdict == "regressed"]


def test_operators_are_judged_as_shares_which_line_up_by_repetition():
    base = {STEP: BASE, **ops()}
    verdict = judge(base, {STEP: BASE, **ops(slow=1.2)})
    assert (verdict.verdict, regressed(verdict)) == ("unchanged", ["op/c"])
    (reason,) = verdict.metric("op/c").reasons
    assert (reason["code"], reason["prefix"]) == ("share", "op/")
    assert verdict.metric("op/c").ratio == pytest.approx(1.2, rel=0.02)
    even = judge(base, {STEP: BASE, **ops(everything=1.3)})
    assert {one.verdict for one in even.metrics if one.family == "secondary"} == {"unchanged"}
    two = judge(dict.fromkeys(("op/a", "op/b"), BASE), {"op/a": times(1.3), "op/b": BASE})  # no common mode
    assert [(one.verdict, one.reasons) for one in two.metrics] == [("regressed", ()), ("unchanged", ())]

    def lacking(side):
        whole = {name: Samples(values, order=tuple(range(6))) for name, values in side.items()}
        return {**whole, "op/a": Samples(side["op/a"][1:], order=(1, 2, 3, 4, 5))}

    verdict = judge(lacking(ops()), lacking(ops(slow=1.2)))
    assert (regressed(verdict), verdict.metric("op/a").verdict) == (["op/c"], "unchanged")


@pytest.mark.parametrize(("base", "new", "said"), [
    ((7, 7), (7, 7), "unchanged"), ((7,), (8,), "regressed"), ((7, 7), (6, 6), "improved"),
    ((7, 7), (7, 8), "inconclusive"),
])  # fmt: skip
def test_counts_are_compared_exactly_and_decide_nothing(base, new, said):
    verdict = judge({STEP: BASE, "count/ops": base}, {STEP: BASE, "count/ops": new})
    assert (verdict.metric("count/ops").verdict, verdict.verdict) == (said, "unchanged")
    assert codes(verdict.metric("count/ops")) == ["count_varies"] * (said == "inconclusive")


def test_zeros_are_judged_with_the_floor_added_and_without_one_on_the_linear_scale():
    waits = tuple(1e4 * part for part in (0, 1, 0, 2, 1, 0, 1, 2))
    rule = {"floor": 50e3, "margin": 0.05, "min_effect": 0.05}
    assert word(waits, waits, **rule).verdict == "unchanged"
    worse = word(waits, tuple(value + 2e6 for value in waits), **rule)
    assert (worse.verdict, codes(worse)) == ("regressed", ["shifted_scale"])
    values = (0.0, 1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0)
    worse = word(values, tuple(value + 20 for value in values))
    assert (worse.verdict, worse.ratio, codes(worse)) == ("regressed", pytest.approx(1 + 20 / 1.25), ["linear_scale"])
    assert word((0.0,) * 4, (0.0,) * 4).verdict == "unchanged"
    assert word((0.0,) * 4, (1.0,) * 4).verdict == "regressed"
    new = [-49_500.0 + part for part in (-3000, -2000, -1000, 0, 1000, 2000, 3000)]
    one = word([-1.0] * 7, new, direction="higher", floor=50e3)
    assert (one.verdict, codes(one)) == ("inconclusive", ["linear_scale", "too_small"])


@pytest.mark.parametrize("name", [STEP, "data_wait", "peak_memory"])
def test_a_difference_that_everybody_sees_is_decided_with_three_repetitions(name):
    slower, faster = judge({name: FAST}, {name: SLOW}), judge({name: SLOW}, {name: FAST})
    assert (slower.verdict, slower.exit_code, faster.verdict) == ("regressed", 1, "improved")
    one, back = slower.metrics[0], faster.metrics[0]
    assert one.p_value > one.alpha  # the test alone cannot tell
    assert one.reasons == (note("far_apart", above=True, ratio=pytest.approx(1.3e8 / 2.75e6)),)
    assert gate.reason(one.reasons).endswith("new is at least 47x any of base")
    assert gate.reason(back.reasons).endswith("base is at least 47x any of new")


@pytest.mark.parametrize("number", [1, 2])
def test_two_repetitions_are_never_so_far_apart(number):
    policy = {"least_reps": 2, "alpha": 0.002}
    base, new = (2.5e6, 3.5e6, 3e6), (1.3e8, 4e8, 2e8)
    for sides in ((base[:number], new), (base, new[:number]), (base[:number], new[:number])):
        assert step(*sides, policy).verdict == "inconclusive"


WAITS = (0.12e6, 0.14e6, 0.17e6), (1.9e6, 2.8e6, 5.9e6)  # of identical code on an overloaded host


@pytest.mark.parametrize(
    ("base", "new", "rule", "said", "reason"),
    [
        ((90, 100, 110), (150, 300, 600), {}, "inconclusive", "too_noisy"),  # no gap of 3x
        ((10, 100, 1000), (4000, 30000, 300000), {}, "inconclusive", "too_noisy"),  # a gap of 4x, and ranges of 100x
        ((10, 11, 12), (11.5, 500, 600), {}, "inconclusive", "too_noisy"),  # they overlap
        (FAST, SLOW, {"min_effect": 100.0}, "inconclusive", None),
        (*WAITS, {"unit": "ns"}, "regressed", "far_apart"),  # without a floor
        ((0.0, 0.0, 1e3), (1e8, 2e8, 9e8), {"floor": 50e3}, "regressed", "far_apart"),
        ((0.0, 0.0, 0.0), (1e8, 2e8, 9e8), {"floor": 50e3}, "regressed", "far_apart"),
        ((0.0, 0.0, 1.0), (1e8, 2e8, 9e8), {}, "inconclusive", None),
        ((1e8, 1.001e8, 1.002e8, 0.999e8), (1e9, 1.001e9, 1.002e9, 0.999e9), {}, "regressed", ""),  # the test says it
    ],
)
def test_what_could_be_chance_is_left_to_the_test(base, new, rule, said, reason):
    for sides, verdict in (((base, new), said), ((new, base), {"regressed": "improved"}.get(said, said))):
        one = judge({"x": sides[0]}, {"x": sides[1]}, Policy(metrics={"x": Rule(**rule)}, alpha=0.002)).metrics[0]
        assert one.verdict == verdict
        assert reason is None or codes(one)[-1:] == [reason] * bool(reason)


@pytest.mark.parametrize(("gap", "said"), [(2.9, "inconclusive"), (3.1, "regressed")])
def test_from_a_gap_of_three_times_on_no_test_is_needed(gap, said):
    new = [gap * 110e6 + part * 1e6 for part in (0, 115, 5, 105)]
    look = Look(4, 1e-6)  # of many: a test has next to no alpha
    assert judge_looks({STEP: (85e6, 110e6, 95e6, 105e6)}, {STEP: new}, plan=[look]).verdict == said


def test_zeros_lie_apart_by_the_floor_and_a_stricter_policy_does_without_the_distance():
    one = judge({"x": (0.0, 0.0, 1e3)}, {"x": (1e8, 2e8, 9e8)}, Policy(metrics={"x": Rule(floor=50e3)}, alpha=0.002))
    assert one.metrics[0].reasons[-1] == note("far_apart", above=True, ratio=1e5)
    never = judge({"x": (0.0,) * 3}, {"x": (1e8, 2e8, 9e8)}, Policy(metrics={"x": Rule(floor=50e3)}, alpha=0.002))
    assert gate.reason(never.metrics[0].reasons).endswith("new is far above any of base")
    assert judge({"data_wait": WAITS[0]}, {"data_wait": WAITS[1]}).verdict == "inconclusive"
    assert step(FAST, SLOW, {"alpha": 0.0019}).verdict == "inconclusive"
    assert step(FAST, SLOW, {"alpha": 0.002}).verdict == "regressed"


@pytest.mark.parametrize("shared", [True, False])
def test_jobs_that_lie_far_apart_are_compared_alike(shared):
    base = Samples(FAST, range(3), ("a", "a", "b"))
    new = Samples(SLOW, range(3, 6), ("a", "a", "b") if shared else ("c", "c", "c"))
    assert (step(base, new).verdict, step(new, base).verdict) == ("regressed", "improved")


def test_the_first_look_decides_what_lies_far_apart_but_no_share_of_an_operator():
    base, new = (2.7e6, 2.6e6, 2.8e6, 2.7e6, 2.5e6), (1.3e8, 3.9e8, 2.9e8, 2e8, 1.5e8)
    verdict = judge_looks({STEP: base}, {STEP: new})
    assert (verdict.verdict, verdict.looks, verdict.next_look) == ("regressed", (5,), None)
    base = dict.fromkeys((f"op/{number}" for number in range(4)), (100.0, 101.0, 102.0))
    one = judge(base, base | {"op/0": (800.0, 2000.0, 2900.0)}).metric("op/0")
    assert (one.verdict, codes(one)) == ("inconclusive", ["share", "too_noisy"])


def jobs(values, *names):
    return Samples(tuple(values), jobs=tuple(name for name in names for _ in range(len(values) // len(names))))


@pytest.mark.parametrize("past", ["a", "abc", "abcdefg"])
def test_with_few_past_jobs_only_very_large_changes_count_and_nothing_is_unchanged(past):
    base = jobs([value for _ in past for value in BASE], *past)
    found = {factor: step(base, jobs(times(factor), "z")).verdict for factor in (1.0, 1.2, 1.6, 0.6)}
    assert found == {1.0: "inconclusive", 1.2: "inconclusive", 1.6: "regressed", 0.6: "improved"}


def test_in_the_warm_up_what_is_shown_is_what_is_judged_also_without_logarithms_or_of_jobs_of_unequal_size():
    base, noisy, policy = (0.0, *[1.0] * 9), [0.0, 1.0, 2.0, 1.0] * 2, {"metrics": {STEP: {"floor": 0.0}}}
    large, few = (step(jobs(base, "a"), jobs([0.9 * factor] * 10, "z"), policy) for factor in (2.0, 1.28))
    assert (large.verdict, few.verdict, few.counts_above) == ("regressed", "inconclusive", pytest.approx(0.9 * 1.3))
    assert step(noisy, noisy, policy | {"detect": 0.8}).reps_find == 0.8
    values = (*(1e8 * part for part in np.linspace(0.99, 1.01, 12)), 2e8, 2.01e8, 1.99e8)
    level = math.exp(np.mean(np.log(values)))  # each repetition alike, as the test has them
    one = step(Samples(values, jobs=("a",) * 12 + ("b",) * 3), jobs([level * 1.299] * 8, "z"))
    assert (one.base, one.ratio, one.verdict) == (pytest.approx(level), pytest.approx(1.299), "inconclusive")


def test_jobs_that_differ_as_hosted_ones_do_are_not_called_regressed_in_the_warm_up():
    random, called = np.random.default_rng(7), 0
    for trial in range(600):
        levels = np.exp(0.054 * random.standard_normal(1 + trial % 7 + 1))
        made = [1e8 * level * np.exp(0.027 * random.standard_normal(5)) for level in levels]
        base = jobs([float(value) for part in made[1:] for value in part], *"abcdefg"[: len(made) - 1])
        called += step(base, jobs(made[0].tolist(), "z")).verdict == "regressed"
    assert called <= 3


def test_another_job_is_held_against_the_spread_of_enough_past_ones():
    one = step(jobs(BASE, "a", "b"), jobs(times(1.2), "c"))
    assert (one.verdict, one.reps_needed) == ("inconclusive", None)
    assert one.reasons == (note("few_jobs", jobs=2, needed=8, limit=0.3),)
    past = [level * part for level in (1.0, 1.05, 0.95, 1.1, 0.9, 1.02, 0.97, 1.04) for part in (0.999, 1.0, 1.001)]
    base = jobs([1e8 * value for value in past], *"abcdefgh")
    assert step(base, jobs(times(1.10), "i")).verdict == "inconclusive"
    large = step(base, jobs(times(1.80), "i"))
    assert (large.verdict, large.reasons) == ("regressed", (note("across_jobs", jobs=8),))


def on_machines(base_speeds, new_speed, factor=1.0, metric=STEP):
    """The verdict on times that follow the machine's speed, of code `factor` times as slow; each job has one."""
    base = [value * (speed or 100) for speed in base_speeds for value in BASE]
    names = [f"{number}" for number in range(len(base_speeds)) for _ in BASE]
    old = Samples(base, jobs=names, calibration=[speed for speed in base_speeds for _ in BASE])
    new = Samples([value * (new_speed or 100) * factor for value in BASE], jobs="z" * 8, calibration=[new_speed] * 8)
    return judge({metric: old}, {metric: new}).metrics[0]


def test_times_of_machines_of_another_speed_are_no_regression_and_hide_none():
    for speed in (150, 60):
        same, slower = (on_machines([100, 101, 99] * 3, speed, factor) for factor in (1.0, 1.25))
        assert (same.verdict, slower.verdict, codes(same)) == ("inconclusive", "inconclusive", ["other_speed"])
    assert same.reasons[0]["limit"] == pytest.approx(1.3 / 0.6 - 1)
    assert on_machines([100] * 8, 150, 2.0).verdict == "regressed"
    assert "other_speed" not in codes(on_machines([100] * 8, 150, metric="peak_memory"))
    mixed = [100, 100.5, 99.5, 100, 100.5, 99.5, 100, 100, 160, 158]
    same, slower, few = on_machines(mixed, 100), on_machines(mixed, 100, 1.1), on_machines(mixed, 160)
    assert (same.verdict, slower.verdict, few.verdict) == ("unchanged", "regressed", "inconclusive")
    assert slower.reasons == (note("across_jobs", jobs=8), note("other_speed_left_out", jobs=2))
    assert (few.reasons[0]["jobs"], codes(few)) == (2, ["few_jobs", "other_speed_left_out"])


@pytest.mark.parametrize(("base", "new"), [([None] * 8, 160), ([100, None] * 4, None), ([100, None] * 4, 100)])
def test_a_speed_that_is_not_known_leaves_nothing_out(base, new):
    found = on_machines(base, new, 100 / (new or 100))
    assert (found.verdict, codes(found)) == ("unchanged", ["across_jobs"])


def test_a_shared_job_is_compared_alone_and_two_are_blocks():
    for number, expected in ((8, ("unchanged", "other_jobs_left_out")), (2, ("inconclusive", "few_left"))):
        base = Samples((*BASE[:number], *times(9)), jobs=("now",) * number + ("past",) * 8)
        one = step(base, jobs(BASE, "now"))
        assert (one.verdict, one.reasons) == (expected[0], (note(expected[1], left_out=8),))
    base, new = jobs((*BASE, *times(2)), "a", "b"), jobs((*times(1.06), *times(2.12)), "a", "b")
    assert (step(base, new).verdict, step(base, base).verdict) == ("regressed", "unchanged")
    for base, new, side in ((jobs(BASE, "a"), BASE, "new"), (BASE, jobs(BASE, "a"), "base")):
        assert step(base, new).reasons == (note("job_not_known", side=side),)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, True, None, "1"])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(UsageError, match="`x` of new"):
        judge({"x": [1.0]}, {"x": [1.0, wrong]})


@pytest.mark.parametrize("wrong", [None, 3.0, {0: 1.0, 1: 2.0, 2: 3.0}, [10**400] * 3, "123"])
def test_what_is_no_sequence_of_numbers_is_refused_by_name(wrong):
    with pytest.raises(UsageError, match="metric `x` of base"):
        judge({"x": wrong}, {"x": [1.0, 2.0, 3.0]})
    with pytest.raises(UsageError, match="new is list, expected a mapping"):
        judge({"x": [1.0, 2.0]}, [1.0, 2.0])


def test_samples_of_any_sequence_whose_repetitions_can_be_told_apart_and_a_verdict_in_json():
    many = Samples(np.array(BASE), order=list(range(8)), jobs=["a"] * 8)
    assert (many.values, many.order, many.jobs) == (BASE, tuple(range(8)), ("a",) * 8)
    assert step(many, many).verdict == "unchanged"
    two = ("a",) * 4 + ("b",) * 4
    for order, of_jobs, said in (
        ((0,) * 8, None, "same place"),
        ((0, 1, 2, 3, 0, 1, 2, 2), two, "same place"),
        (None, (None,) * 8, "name of each job"),
    ):
        given = {"order": order, "jobs": of_jobs}
        with pytest.raises(UsageError, match=said):
            Samples(BASE, **{name: value for name, value in given.items() if value is not None})
    assert len(Samples(BASE, order=(0, 1, 2, 3) * 2, jobs=two).values) == 8
    verdict = judge({STEP: BASE, **ops()}, {STEP: times(1.1), **ops()})
    assert msgspec.json.decode(msgspec.json.encode(verdict))["verdict"] == "regressed"


def test_a_policy_may_be_a_table_and_is_checked_whatever_it_is():
    assert step(BASE, times(1.10), {"metrics": {STEP: {"min_effect": 0.2}}}).verdict == "inconclusive"
    for wrong in ({"alhpa": 1}, Policy(detect=-1.0), Policy(least_jobs=1), {"metrics": {STEP: {"margin": math.inf}}}):
        with pytest.raises(UsageError, match="the policy"):
            step(BASE, BASE, wrong)


@pytest.mark.parametrize("values", [(1e5, 1.01e5, 0.99e5), (0.0, 1e5, 2e5)])
def test_the_bounds_beyond_which_a_change_counts_are_those_that_decide(values):
    """A floor of 50 us is more than 2 % of 100 us: what is within it is no change, however sure it is."""
    one = step(values, values, {"metrics": {STEP: {"floor": 50e3, "min_effect": 0.02, "unit": "ns"}}})
    assert one.counts_below < one.base < one.counts_above
    assert one.counts_above - one.base >= 50e3 * 0.99
    below, base, above = (
        bound + (50e3 if min(values) <= 0 else 0.0) for bound in (one.counts_below, one.base, one.counts_above)
    )
    assert above / base == pytest.approx(base / below)


def test_without_a_floor_the_bounds_are_the_least_effect_both_ways():
    one = step(BASE, times(1.10), {"metrics": {STEP: {"floor": 0.0, "min_effect": 0.02}}})
    assert (one.counts_below, one.counts_above) == pytest.approx((one.base / 1.02, one.base * 1.02))


DECIDES = {"metrics": {"instructions": "decides", STEP: "informs", "data_wait": "informs"}}


@pytest.mark.parametrize(("base", "new", "expected"), [
    ([10_000], [10_000], "unchanged"),
    ([10_000], [10_049], "unchanged"),  # less than half a percent
    ([10_000], [10_051], "regressed"), ([10_000], [9_940], "improved"), ([10_000], [9_960], "unchanged"),
    ([100], [119], "unchanged"),  # of little work a few
    ([100], [121], "regressed"),
    ([10_000 + at % 3 for at in range(6)], [10_001 + at % 3 for at in range(6)], "unchanged"),
    ([10_000 + at % 3 for at in range(6)], [10_300 + at % 3 for at in range(6)], "regressed"),
    ([9_000, 11_000, 10_000], [9_500, 11_500, 10_400], "inconclusive"),
])  # fmt: skip
def test_counted_instructions_are_exact_where_they_do_not_vary_else_with_their_own_noise(base, new, expected):
    assert judge({"instructions": base}, {"instructions": new}, DECIDES).metric("instructions").verdict == expected


def test_instructions_only_inform_by_default_and_their_cause_is_the_stage_that_executes_more():
    values = {STEP: [1e8, 1.001e8, 0.999e8, 1e8, 1e8]}
    verdict = judge(values | {"instructions": [10_000] * 5}, values | {"instructions": [20_000] * 5})
    one = verdict.metric("instructions")
    assert (verdict.verdict, one.verdict, one.family) == ("unchanged", "regressed", "informing")
    base = {"instructions": [3_000], "instructions/decode": [1_000], "instructions/crop": [2_000]}
    new = {"instructions": [3_500], "instructions/decode": [1_600], "instructions/crop": [1_900]}
    verdict = judge(base, new, DECIDES)
    found = explanation(verdict, {}, [])
    assert [(one["name"], one["measure"]) for one in found] == [("decode", "instructions"), ("crop", "instructions")]
    assert stated_cause(verdict.verdict, "instructions", 3_500 / 3_000, found)["name"] == "decode"
    assert stated_cause("regressed", STEP, 1.1, found) is None
