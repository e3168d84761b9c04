"""Which word a metric gets, and the worst of the primary ones."""

import math

import msgspec
import numpy as np
import pytest

from pipeprof.errors import UsageError
from pipeprof.verdict import Policy, Samples, judge
from pipeprof.verdict.gate.policy import Rule, read_policy
from pipeprof.verdict.gate.result import note

STEP = "step_time_median"
# Eight repetitions with a standard deviation of about 1.2 %, in ns.
BASE = tuple(1e8 * (1 + part / 1000) for part in (-18, -12, -6, -2, 2, 6, 12, 18))


def times(factor, values=BASE):
    return tuple(value * factor for value in values)


def policy(**rules):
    return Policy(metrics={name: Rule(**rule) for name, rule in rules.items()})


def word(base, new, **rule):
    return judge({"x": base}, {"x": new}, policy(x=rule)).metrics[0]


def codes(one):
    """Of the reasons of a metric's verdict."""
    return [reason["code"] for reason in one.reasons]


def test_slower_beyond_doubt_is_regressed():
    verdict = judge({STEP: BASE}, {STEP: times(1.10)})
    one = verdict.metric(STEP)
    assert (verdict.verdict, verdict.exit_code, one.verdict) == ("regressed", 1, "regressed")
    assert one.ratio == pytest.approx(1.10)
    assert one.ci_low < 1.10 < one.ci_high
    assert one.p_value < one.alpha == pytest.approx(0.0016)
    assert (one.reps_base, one.reps_new, one.reps_needed, one.unit) == (8, 8, None, "ns")


def test_faster_beyond_doubt_is_improved():
    verdict = judge({STEP: BASE}, {STEP: times(1 / 1.10)})
    assert (verdict.verdict, verdict.exit_code) == ("improved", 0)
    assert verdict.metrics[0].p_value > 0.99


def test_higher_is_better_mirrors():
    assert word(BASE, times(1.10), direction="higher").verdict == "improved"
    slower = word(BASE, times(1 / 1.10), direction="higher")
    assert slower.verdict == "regressed"
    assert slower.ratio == pytest.approx(1 / 1.10)
    assert slower.p_value < 0.002


def test_the_same_is_unchanged():
    verdict = judge({STEP: BASE}, {STEP: BASE})
    assert (verdict.verdict, verdict.exit_code) == ("unchanged", 0)


def test_noise_is_inconclusive_and_says_how_many_repetitions_are_needed():
    noisy = (1e8, 1.3e8, 0.8e8, 1.1e8, 0.9e8)
    one = judge({STEP: noisy}, {STEP: times(1.1, noisy)}).metrics[0]
    assert one.verdict == "inconclusive"
    assert one.reps_needed is None
    assert codes(one) == ["too_noisy"]
    quieter = tuple(value**0.25 * 1e6 for value in noisy)
    one = judge({STEP: quieter}, {STEP: times(1.03, quieter)}).metrics[0]
    assert one.verdict == "inconclusive"
    assert 5 < one.reps_needed < 100
    assert one.reps_find == pytest.approx(0.05)


def test_noise_without_bounds_is_still_a_finite_interval():
    one = judge({STEP: (1e-9, 1.0, 1e290)}, {STEP: (1e290, 1e-9, 1.0)}).metrics[0]
    assert one.verdict == "inconclusive"
    assert 0 <= one.ci_low < one.ci_high < math.inf


def test_an_improvement_is_said_with_what_it_was_held_against_itself():
    base, new = {"a": BASE, "b": BASE}, {"a": times(3.0), "b": times(0.975)}
    p_better = 1 - judge(base, new).metric("b").p_value
    policy = {"alpha": 4.5 * p_better}  # between a fourth and a fifth of it: the first step is for the surest
    (why,) = judge(base, new, policy).metric("b").reasons
    assert (why["code"], why["better"]) == ("too_noisy", True)
    assert why["needed"] < why["p_value"] == pytest.approx(p_better)


def test_a_sure_change_below_the_least_effect_is_no_regression():
    tight = tuple(1e8 * (1 + part / 1e5) for part in range(8))
    assert judge({STEP: tight}, {STEP: times(1.015, tight)}).verdict == "unchanged"
    assert judge({STEP: tight}, {STEP: times(1.021, tight)}).verdict == "regressed"
    between = word(tight, times(1.04, tight), min_effect=0.05, margin=0.03)
    assert between.verdict == "inconclusive"
    assert codes(between) == ["too_small"]


def test_the_absolute_floor_keeps_tiny_times_quiet():
    small = tuple(value / 1e8 * 200_000 for value in BASE)
    assert judge({STEP: small}, {STEP: times(1.20, small)}).verdict == "unchanged"
    assert judge({STEP: small}, {STEP: times(1.40, small)}).verdict == "regressed"


def test_values_without_spread():
    assert judge({STEP: [1e8] * 5}, {STEP: [1e8] * 5}).verdict == "unchanged"
    assert judge({STEP: [1e8] * 5}, {STEP: [1.1e8] * 5}).verdict == "regressed"
    assert judge({STEP: [1e8] * 5}, {STEP: [0.9e8] * 5}).verdict == "improved"


@pytest.mark.parametrize("number", [1, 2])
def test_too_few_repetitions_are_never_judged(number):
    verdict = judge({STEP: BASE}, {STEP: times(2)[:number]})
    one = verdict.metrics[0]
    assert (verdict.verdict, verdict.exit_code, one.reps_needed, one.p_value) == ("inconclusive", 4, 3, None)
    assert one.reasons == (note("few_repetitions", needed=3),)


def test_missing_metric_cannot_pass():
    for new in ({}, {STEP: ()}):
        verdict = judge({STEP: BASE}, new)
        assert (verdict.verdict, verdict.exit_code) == ("missing", 3)
        assert verdict.metrics[0].new is None


def test_nothing_judged_cannot_pass():
    for base, new in (({}, {}), ({}, {STEP: BASE}), ({"count/ops": (3, 3)}, {"count/ops": (3, 3)})):
        assert judge(base, new).verdict == "missing"


def test_a_missing_secondary_metric_is_shown_and_decides_nothing():
    verdict = judge({STEP: BASE, "phase/tail": BASE}, {STEP: BASE})
    assert verdict.verdict == "unchanged"
    assert verdict.metric("phase/tail").verdict == "missing"


def test_regressed_wins_over_missing_and_missing_over_inconclusive():
    noisy = (1e8, 2e8, 0.5e8)
    base = {"step_time_median": BASE, "peak_memory": BASE, "data_wait": noisy}
    assert judge(base, {"step_time_median": times(2), "data_wait": noisy}).verdict == "regressed"
    assert judge(base, {"step_time_median": BASE, "data_wait": noisy}).verdict == "missing"
    assert judge(base, {**base, "peak_memory": times(0.8)}).verdict == "inconclusive"
    assert judge(base, {**base, "data_wait": times(1.0), "peak_memory": times(0.8)}).verdict == "inconclusive"
    del base["data_wait"]
    assert judge(base, {**base, "peak_memory": times(0.8)}).verdict == "improved"


NOISY = (1e8, 2e8, 0.5e8)


@pytest.mark.parametrize("new", [NOISY, times(1.5), times(0.5), ()])
def test_what_informs_is_judged_and_stands_in_no_ones_way(new):
    base = {STEP: BASE, "step_time_p90": NOISY if new is NOISY else BASE}
    verdict = judge(base, {STEP: BASE, "step_time_p90": new})
    one = verdict.metric("step_time_p90")
    assert (verdict.verdict, verdict.exit_code, one.family) == ("unchanged", 0, "informing")
    assert one.verdict == {NOISY: "inconclusive", times(1.5): "regressed", times(0.5): "improved", (): "missing"}[new]
    if one.alpha is not None:
        assert one.alpha == pytest.approx(0.008 / 5)  # as strictly as if it decided as well


def test_a_switch_makes_a_metric_decide_or_inform():
    policy = read_policy({"metrics": {"step_time_p90": "decides", "data_wait": "informs"}}, "here")
    side, slower = dict.fromkeys((STEP, "step_time_p90", "data_wait"), BASE), times(2)
    assert judge(side, {**side, "step_time_p90": slower}, policy).verdict == "regressed"
    assert judge(side, {**side, "data_wait": slower}, policy).verdict == "unchanged"
    with pytest.raises(UsageError, match='expected "decides", "informs", false or a table'):
        read_policy({"metrics": {"step_time_p90": "decide"}}, "here")


def test_the_tail_of_communication_decides_in_jobs_that_have_it_and_changes_nothing_in_others():
    tail = tuple(value / 10 for value in BASE)
    longer = judge({STEP: BASE, "communication/tail": tail}, {STEP: BASE, "communication/tail": times(1.5, tail)})
    assert (longer.verdict, longer.metric("communication/tail").verdict) == ("regressed", "regressed")
    assert judge({STEP: BASE, "communication/tail": tail}, {STEP: BASE}).verdict == "missing"
    exposed = judge(
        {STEP: BASE, "communication/exposed": tail}, {STEP: BASE, "communication/exposed": times(1.5, tail)}
    )
    assert exposed.verdict == "unchanged"
    off = {"metrics": {"communication/tail": False}}
    assert judge({STEP: BASE, "communication/tail": tail}, {STEP: BASE}, off).verdict == "unchanged"
    alone, beside = (
        judge({STEP: BASE}, {STEP: BASE}),
        judge({STEP: BASE, "phase/tail": tail}, {STEP: BASE, "phase/tail": tail}),
    )
    assert alone.metric(STEP).alpha == beside.metric(STEP).alpha == pytest.approx(Policy().alpha / 5)


def test_what_is_only_in_new_is_noted():
    verdict = judge({STEP: BASE}, {STEP: BASE, **dict.fromkeys("abcd", (1.0,)), "op/e": (1.0,), "count/e": (1.0,)})
    assert note("only_in_new", metrics=["a", "b", "c", "d"]) in verdict.notes
    assert "data_wait" in next(one for one in verdict.notes if one["code"] == "on_neither_side")["metrics"]


def test_one_metric_alone_is_held_against_its_share_of_five():
    assert judge({STEP: BASE}, {STEP: BASE}).metrics[0].alpha == pytest.approx(0.0016)
    assert word(BASE, BASE).alpha == pytest.approx(0.008)


def test_more_primary_metrics_than_the_policy_names_share_alpha():
    base = {f"benchmark/{number}": BASE for number in range(10)}
    assert judge(base, base).metrics[0].alpha == pytest.approx(0.0008)


def test_primary_metrics_come_first_in_the_order_of_the_policy():
    names = ("op/z", "step_time_p90", "count/a", "benchmark/b", "step_time_median", "op/a", "peak_memory")
    verdict = judge(dict.fromkeys(names, BASE), dict.fromkeys(names, BASE))
    found = [one.name for one in verdict.metrics]
    assert found == ["step_time_median", "peak_memory", "benchmark/b", "step_time_p90", "count/a", "op/a", "op/z"]


def ops(slow=1.0, everything=1.0):
    load = (1.0, 1.5, 0.8, 1.2, 2.0, 0.7)  # what all operators of a repetition share
    own = (1.0, 1.004, 0.997, 1.002, 0.995, 1.001)
    names = ("op/a", "op/b", "op/c", "op/d", "op/e")
    side = {
        name: tuple(1e6 * everything * load[at] * own[(at + row) % 6] for at in range(6))
        for row, name in enumerate(names)
    }
    return {**side, "op/c": tuple(value * slow for value in side["op/c"])}


def test_operators_are_judged_as_shares():
    base, new = {STEP: BASE, **ops()}, {STEP: BASE, **ops(slow=1.2)}
    verdict = judge(base, new)
    assert verdict.verdict == "unchanged"
    assert [one.name for one in verdict.metrics if one.verdict == "regressed"] == ["op/c"]
    (reason,) = verdict.metric("op/c").reasons
    assert (reason["code"], reason["prefix"]) == ("share", "op/")
    assert verdict.metric("op/c").ratio == pytest.approx(1.2, rel=0.02)
    even = judge(base, {STEP: BASE, **ops(everything=1.3)})
    assert {one.verdict for one in even.metrics if one.family == "secondary"} == {"unchanged"}


def test_two_operators_have_no_common_mode():
    base = dict.fromkeys(("op/a", "op/b"), BASE)
    verdict = judge(base, {"op/a": times(1.3), "op/b": BASE})
    assert [one.verdict for one in verdict.metrics] == ["regressed", "unchanged"]
    assert verdict.metrics[0].reasons == ()


def test_shares_line_up_by_repetition_when_one_is_lacking():
    def lacking(side):
        whole = {name: Samples(values, order=tuple(range(6))) for name, values in side.items()}
        return {**whole, "op/a": Samples(side["op/a"][1:], order=(1, 2, 3, 4, 5))}

    verdict = judge(lacking(ops()), lacking(ops(slow=1.2)))
    assert [one.name for one in verdict.metrics if one.verdict == "regressed"] == ["op/c"]
    assert verdict.metric("op/a").verdict == "unchanged"


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [((7, 7), (7, 7), "unchanged"), ((7,), (8,), "regressed"), ((7, 7), (6, 6), "improved"), ((7, 7), (7, 8), "inconclusive")],
)  # fmt: skip
def test_counts_are_compared_exactly_and_decide_nothing(base, new, said):
    verdict = judge({STEP: BASE, "count/ops": base}, {STEP: BASE, "count/ops": new})
    assert (verdict.metric("count/ops").verdict, verdict.verdict) == (said, "unchanged")
    assert codes(verdict.metric("count/ops")) == (["count_varies"] if said == "inconclusive" else [])


def test_zeros_are_judged_with_the_floor_added():
    waits = tuple(1e4 * part for part in (0, 1, 0, 2, 1, 0, 1, 2))
    rule = {"floor": 50e3, "margin": 0.05, "min_effect": 0.05}
    assert word(waits, waits, **rule).verdict == "unchanged"
    worse = word(waits, tuple(value + 2e6 for value in waits), **rule)
    assert worse.verdict == "regressed"
    assert codes(worse) == ["shifted_scale"]


def test_zeros_without_a_floor_are_judged_on_the_linear_scale():
    values = (0.0, 1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0)
    worse = word(values, tuple(value + 20 for value in values))
    assert worse.verdict == "regressed"
    assert worse.ratio == pytest.approx(1 + 20 / 1.25)
    assert codes(worse) == ["linear_scale"]
    assert word((0.0,) * 4, (0.0,) * 4).verdict == "unchanged"
    assert word((0.0,) * 4, (1.0,) * 4).verdict == "regressed"


def jobs(values, *names):
    return Samples(tuple(values), jobs=tuple(name for name in names for _ in range(len(values) // len(names))))


def test_another_job_is_not_judged_without_enough_past_ones():
    one = judge({STEP: jobs(BASE, "a", "b")}, {STEP: jobs(times(1.2), "c")}).metrics[0]
    assert (one.verdict, one.reps_needed) == ("inconclusive", None)
    assert one.reasons == (note("few_jobs", jobs=2, needed=8, limit=0.3),)


@pytest.mark.parametrize("past", ["a", "abc", "abcdefg"])
def test_with_few_past_jobs_only_very_large_changes_count_and_nothing_is_unchanged(past):
    base = jobs([value for _ in past for value in BASE], *past)
    same, some, large, faster = (
        judge({STEP: base}, {STEP: jobs(times(factor), "z")}).metrics[0].verdict for factor in (1.0, 1.2, 1.6, 0.6)
    )
    assert (same, some, large, faster) == ("inconclusive", "inconclusive", "regressed", "improved")


def test_what_has_no_logarithms_has_the_same_limits():
    base, noisy, policy = (0.0, *[1.0] * 9), [0.0, 1.0, 2.0, 1.0] * 2, {"metrics": {STEP: {"floor": 0.0}}}
    large, few = (
        judge({STEP: jobs(base, "a")}, {STEP: jobs([0.9 * factor] * 10, "z")}, policy) for factor in (2.0, 1.28)
    )
    assert (large.verdict, few.verdict) == ("regressed", "inconclusive")
    assert few.metrics[0].counts_above == pytest.approx(0.9 * 1.3)
    assert judge({STEP: noisy}, {STEP: noisy}, policy | {"detect": 0.8}).metrics[0].reps_find == 0.8


def test_in_the_warm_up_what_is_shown_is_what_is_judged_also_of_jobs_of_unequal_size():
    values = {"a": [1e8 * part for part in np.linspace(0.99, 1.01, 12)], "b": [2e8, 2.01e8, 1.99e8]}
    base = Samples((*values["a"], *values["b"]), jobs=("a",) * 12 + ("b",) * 3)
    level = math.exp(np.mean(np.log(base.values)))  # each repetition alike, as the test has them
    one = judge({STEP: base}, {STEP: jobs([level * 1.299] * 8, "z")}).metrics[0]
    assert (one.base, one.ratio, one.verdict) == (pytest.approx(level), pytest.approx(1.299), "inconclusive")


def test_jobs_that_differ_as_hosted_ones_do_are_not_called_regressed_in_the_warm_up():
    random, called = np.random.default_rng(7), 0
    for trial in range(600):
        levels = np.exp(0.054 * random.standard_normal(1 + trial % 7 + 1))
        made = [1e8 * level * np.exp(0.027 * random.standard_normal(5)) for level in levels]
        base = jobs([float(value) for part in made[1:] for value in part], *"abcdefg"[: len(made) - 1])
        called += judge({STEP: base}, {STEP: jobs(made[0].tolist(), "z")}).verdict == "regressed"
    assert called <= 3


def test_another_job_is_held_against_the_spread_of_the_past_ones():
    past = [level * part for level in (1.0, 1.05, 0.95, 1.1, 0.9, 1.02, 0.97, 1.04) for part in (0.999, 1.0, 1.001)]
    base = jobs([1e8 * value for value in past], *"abcdefgh")
    small = judge({STEP: base}, {STEP: jobs(times(1.10), "i")}).metrics[0]
    assert small.verdict == "inconclusive"
    large = judge({STEP: base}, {STEP: jobs(times(1.80), "i")}).metrics[0]
    assert large.verdict == "regressed"
    assert large.reasons == (note("across_jobs", jobs=8),)


def of_speed(values, speeds):
    """Eight repetitions in each of some jobs, on machines with these calibrations."""
    names = [f"{number}" for number in range(len(speeds)) for _ in BASE]
    return Samples(tuple(values), jobs=names, calibration=[speed for speed in speeds for _ in BASE])


def on_machines(base_speeds, new_speed, factor=1.0, metric=STEP):
    """The verdict on times that follow the machine's speed, of code `factor` times as slow."""
    base = [value * (speed or 100) for speed in base_speeds for value in BASE]
    new = Samples([value * (new_speed or 100) * factor for value in BASE], jobs="z" * 8, calibration=[new_speed] * 8)
    return judge({metric: of_speed(base, base_speeds)}, {metric: new}).metrics[0]


def test_the_time_of_a_slower_machine_is_no_regression_and_that_of_a_faster_one_hides_none():
    for speed in (150, 60):
        same, slower = (on_machines([100, 101, 99] * 3, speed, factor) for factor in (1.0, 1.25))
        assert (same.verdict, slower.verdict) == ("inconclusive", "inconclusive")
        assert codes(same) == ["other_speed"]
    limit = same.reasons[0]["limit"]
    assert limit == pytest.approx(1.3 / 0.6 - 1)
    assert on_machines([100] * 8, 150, 2.0).verdict == "regressed"


def test_jobs_on_machines_of_another_speed_are_left_out():
    mixed = [100, 100.5, 99.5, 100, 100.5, 99.5, 100, 100, 160, 158]
    same, slower = (on_machines(mixed, 100, factor) for factor in (1.0, 1.1))
    assert (same.verdict, slower.verdict) == ("unchanged", "regressed")
    assert slower.reasons == (note("across_jobs", jobs=8), note("other_speed_left_out", jobs=2))
    few = on_machines(mixed, 160)
    assert (few.verdict, few.reasons[0]["jobs"], codes(few)) == (
        "inconclusive", 2, ["few_jobs", "other_speed_left_out"],
    )  # fmt: skip


def test_a_speed_that_is_not_known_leaves_nothing_out():
    for base_speeds, new_speed in (([None] * 8, 160), ([100, None] * 4, None), ([100, None] * 4, 100)):
        found = on_machines(base_speeds, new_speed, 100 / (new_speed or 100))
        assert (found.verdict, codes(found)) == ("unchanged", ["across_jobs"])


def test_only_times_depend_on_the_speed_of_the_machine():
    assert "other_speed" not in codes(on_machines([100] * 8, 150, metric="peak_memory"))


def test_a_shared_job_is_compared_alone():
    base = Samples((*BASE, *times(9)), jobs=("now",) * 8 + ("past",) * 8)
    one = judge({STEP: base}, {STEP: jobs(BASE, "now")}).metrics[0]
    assert one.verdict == "unchanged"
    assert one.reasons == (note("other_jobs_left_out", left_out=8),)
    few = Samples((*BASE[:2], *times(9)), jobs=("now",) * 2 + ("past",) * 8)
    one = judge({STEP: few}, {STEP: jobs(BASE, "now")}).metrics[0]
    assert (one.verdict, one.reasons) == ("inconclusive", (note("few_left", left_out=8),))


def test_two_shared_jobs_are_blocks():
    base = Samples((*BASE, *times(2)), jobs=("a",) * 8 + ("b",) * 8)
    new = Samples((*times(1.06), *times(2.12)), jobs=("a",) * 8 + ("b",) * 8)
    assert judge({STEP: base}, {STEP: new}).verdict == "regressed"
    assert judge({STEP: base}, {STEP: base}).verdict == "unchanged"


def test_a_job_known_on_one_side_only_is_not_judged():
    for base, new, side in ((jobs(BASE, "a"), BASE, "new"), (BASE, jobs(BASE, "a"), "base")):
        assert judge({STEP: base}, {STEP: new}).metrics[0].reasons == (note("job_not_known", side=side),)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, True, None, "1"])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(UsageError, match="`x` of new"):
        judge({"x": [1.0]}, {"x": [1.0, wrong]})


def test_a_verdict_can_be_written_as_json():
    verdict = judge({STEP: BASE, **ops()}, {STEP: times(1.1), **ops()})
    assert msgspec.json.decode(msgspec.json.encode(verdict))["verdict"] == "regressed"


def test_a_metric_that_the_policy_switches_off_cannot_fail():
    policy = read_policy({"metrics": {"data_wait": False}}, "here")
    base = {STEP: BASE, "data_wait": [value * 100 for value in BASE]}
    new = {STEP: BASE, "data_wait": [value * 200 for value in BASE]}
    verdict = judge(base, new, policy)
    assert verdict.exit_code == 0
    assert verdict.metric("data_wait").family == "secondary"
    assert judge(base, new).verdict == "regressed"


@pytest.mark.parametrize("wrong", [None, 3.0, {0: 1.0, 1: 2.0, 2: 3.0}, [10**400] * 3, "123"])
def test_what_is_no_sequence_of_numbers_is_refused_by_name(wrong):
    with pytest.raises(UsageError, match="metric `x` of base"):
        judge({"x": wrong}, {"x": [1.0, 2.0, 3.0]})
    with pytest.raises(UsageError, match="new is list, expected a mapping"):
        judge({"x": [1.0, 2.0]}, [1.0, 2.0])


def test_samples_of_any_sequence():
    import numpy as np

    many = Samples(np.array(BASE), order=list(range(8)), jobs=["a"] * 8)
    assert (many.values, many.order, many.jobs) == (BASE, tuple(range(8)), ("a",) * 8)
    assert judge({STEP: many}, {STEP: many}).verdict == "unchanged"


def test_repetitions_that_cannot_be_told_apart_are_refused():
    with pytest.raises(UsageError, match="same place"):
        Samples(BASE, order=(0,) * 8)
    with pytest.raises(UsageError, match="same place"):
        Samples(BASE, order=(0, 1, 2, 3, 0, 1, 2, 2), jobs=("a",) * 4 + ("b",) * 4)
    with pytest.raises(UsageError, match="name of each job"):
        Samples(BASE, jobs=(None,) * 8)
    assert len(Samples(BASE, order=(0, 1, 2, 3) * 2, jobs=("a",) * 4 + ("b",) * 4).values) == 8


def test_a_policy_may_be_a_table_and_is_checked_whatever_it_is():
    found = judge({STEP: BASE}, {STEP: times(1.10)}, {"metrics": {STEP: {"min_effect": 0.2}}})
    assert found.verdict == "inconclusive"
    for wrong in ({"alhpa": 1}, Policy(detect=-1.0), Policy(least_jobs=1), {"metrics": {STEP: {"margin": math.inf}}}):
        with pytest.raises(UsageError, match="the policy"):
            judge({STEP: BASE}, {STEP: BASE}, wrong)


def test_more_repetitions_are_asked_for_only_where_they_can_help():
    def open_at(ratio):
        one = judge({STEP: BASE}, {STEP: times(ratio)}).metrics[0]
        assert (one.verdict, one.reps_find) == ("inconclusive", None)
        return one.reps_needed

    # Eight would find 5 %, so that more are asked for what was seen: a change that counts, or none.
    assert open_at(1.021) == pytest.approx(16, abs=2)
    assert open_at(1.019) == pytest.approx(28, abs=4)
    tight = tuple(1e8 * (1 + part / 1e5) for part in range(8))
    between = word(tight, times(1.04, tight), min_effect=0.05)
    assert (between.verdict, between.reps_needed) == ("inconclusive", None)


def test_a_large_difference_below_a_larger_floor_is_said_without_logs():
    new = [-49_500.0 + part for part in (-3000, -2000, -1000, 0, 1000, 2000, 3000)]
    one = word([-1.0] * 7, new, direction="higher", floor=50e3)
    assert (one.verdict, codes(one)) == ("inconclusive", ["linear_scale", "too_small"])


@pytest.mark.parametrize("values", [(1e5, 1.01e5, 0.99e5), (0.0, 1e5, 2e5)])
def test_the_bounds_beyond_which_a_change_counts_are_those_that_decide(values):
    """A floor of 50 us is more than 2 % of 100 us: what is within it is no change, however sure it is."""
    rule = {"metrics": {STEP: {"floor": 50e3, "min_effect": 0.02, "unit": "ns"}}}
    (one,) = judge({STEP: values}, {STEP: values}, rule).metrics
    assert one.counts_below < one.base < one.counts_above
    assert one.counts_above - one.base >= 50e3 * 0.99
    shift = 50e3 if min(values) <= 0 else 0.0
    assert (one.counts_above + shift) / (one.base + shift) == pytest.approx(
        (one.base + shift) / (one.counts_below + shift)
    )


def test_without_a_floor_the_bounds_are_the_least_effect_both_ways():
    (one,) = judge({STEP: BASE}, {STEP: times(1.10)}, {"metrics": {STEP: {"floor": 0.0, "min_effect": 0.02}}}).metrics
    assert (one.counts_below, one.counts_above) == pytest.approx((one.base / 1.02, one.base * 1.02))
