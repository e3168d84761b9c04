"""Two sides made by hand, judged and explained."""

import json

import pytest

from pipeprof.errors import RunError, UsageError
from pipeprof.experiment.compare import compare_sides
from pipeprof.record.measures import Measures, Repetition
from pipeprof.report.compare import content as compare_content
from pipeprof.report.compare import github as compare_github
from pipeprof.verdict.gate.planned import whole_plan
from pipeprof.verdict.gate.policy import Acknowledgement, Policy

FINGERPRINT = {"cpu_model": "A", "cpu_cores": 2}
SPREAD = (1.0, 1.003, 0.998, 1.001, 0.997, 1.002, 0.999, 1.0)


def side(step_ms=10.0, label="x", job="boot:1", **more):
    values = {
        "step_time_median": {rep: step_ms * 1e6 * factor for rep, factor in enumerate(SPREAD)},
        "phase/data_wait": {rep: max(step_ms - 9, 0.1) * 1e6 * factor for rep, factor in enumerate(SPREAD)},
        "phase/compute": {rep: 9e6 * factor for rep, factor in enumerate(SPREAD)},
        "pipeline/decode": {rep: step_ms * 1e6 * factor for rep, factor in enumerate(SPREAD)},
    }
    facts = {
        "label": label, "workload": "train", "fingerprint": FINGERPRINT, "values": values,
        "reps": {rep: Repetition(order=rep, job=job) for rep in range(len(SPREAD))},
    }  # fmt: skip
    return Measures(**(facts | more))


def by_name(content):
    return {metric["name"]: metric for metric in content["metrics"]}


def test_the_same_is_unchanged_and_passes():
    content = compare_sides(side(), side(label="y"))
    assert (content["verdict"], content["exit_code"]) == ("unchanged", 0)
    assert content["explanation"] == []
    assert {"code": "not_interleaved"} in content["note_facts"]
    json.dumps(content, allow_nan=False)


def test_a_slower_side_fails_and_says_why():
    content = compare_sides(side(), side(12.0))
    assert (content["verdict"], content["exit_code"]) == ("regressed", 1)
    assert content["headline"].startswith("Regressed: step time +20.0 %")
    assert "decode" in content["headline"]
    assert by_name(content)["step_time_median"]["ratio"] == pytest.approx(1.2)


def test_the_comment_on_a_saved_comparison_names_the_line_whose_instructions_grew():
    def of(count):
        made = side(places={"stage tokenize": "data.py:9"})
        for name in ("instructions", "instructions/tokenize"):
            made.values[name] = dict.fromkeys(range(len(SPREAD)), float(count))
        return made

    content = compare_sides(of(10_000), of(10_300), {"metrics": {"instructions": "decides"}})
    saved = compare_content.read(json.dumps(content).encode(), "compare.json")
    assert [
        set(entry) - set(kept) for entry, kept in zip(content["explanation"], saved["explanation"], strict=True)
    ] == [set()]
    assert compare_github.comment(saved).splitlines()[1] == (
        "### Performance of `train`: worse than before: Python instructions per row +3.0 %, "
        "because Python instructions of `tokenize` per row grew by 3.0 % (`data.py:9`)"
    )


def test_a_faster_side_passes():
    assert compare_sides(side(), side(8.0))["verdict"] == "improved"


def test_another_machine_is_refused_and_nothing_is_judged():
    content = compare_sides(side(), side(12.0, fingerprint={"cpu_model": "B", "cpu_cores": 2}))
    assert (content["verdict"], content["exit_code"]) == ("incomparable", 3)
    assert {metric["verdict"] for metric in content["metrics"]} == {"incomparable"}
    assert all(metric["p_value"] is None for metric in content["metrics"])
    assert "cpu_model (A, now B)" in content["headline"]
    assert content["fingerprint"]["differences"][0]["hard"]


def test_another_machine_can_be_compared_for_information():
    content = compare_sides(side(), side(12.0, fingerprint={"cpu_model": "B"}), allow_cross_machine=True)
    assert (content["verdict"], content["exit_code"], content["informational"]) == ("regressed", 0, True)


def test_another_job_is_inconclusive_without_a_measured_job_effect():
    content = compare_sides(side(), side(12.0, job="boot:2"))
    assert (content["verdict"], content["exit_code"]) == ("inconclusive", 4)
    assert "job" in by_name(content)["step_time_median"]["reason"]
    assert {"code": "other_job"} in content["note_facts"]


def test_the_speed_of_a_job_is_that_of_its_fastest_repetition():
    """A repetition that shared its core while the loop ran says nothing of the machine."""

    def of(speeds, job):
        return {rep: Repetition(order=rep, job=job, calibration_ns=ns) for rep, ns in enumerate(speeds)}

    base = side(reps=of([300] * 7 + [200], "ci:1"))
    near, far = (side(12.0, reps=of([400] * 7 + [fastest], "ci:2")) for fastest in (210, 300))
    said = [by_name(compare_sides(base, new))["step_time_median"]["reason_facts"][0] for new in (near, far)]
    assert [one["code"] for one in said] == ["few_jobs", "other_speed"]
    assert said[1]["ratio"] == 1.5


def test_unknown_jobs_are_not_taken_for_the_same():
    assert compare_sides(side(job=None), side(12.0, job=None))["verdict"] == "inconclusive"


def test_a_metric_that_vanished_cannot_pass():
    new = side()
    del new.values["step_time_median"]
    content = compare_sides(side(), new)
    assert (content["verdict"], content["exit_code"]) == ("missing", 3)


def test_an_accepted_regression_passes_until_it_expires():
    entry = Acknowledgement(metric="step_time_median", max_ratio=1.3, reason="larger model", expires="2026-06-30")
    policy = Policy(acknowledge=(entry,))
    before = compare_sides(side(), side(12.0), policy, today="2026-06-01")
    assert (before["verdict"], before["exit_code"]) == ("acknowledged", 0)
    after = compare_sides(side(), side(12.0), policy, today="2026-07-01")
    assert (after["verdict"], after["exit_code"]) == ("regressed", 1)


@pytest.mark.parametrize(("workload", "code"), [("train", 0), ("resnet", 0), ("*", 0), ("mlp", 1)])
def test_a_regression_is_accepted_for_the_workload_by_the_baselines_name_too(workload, code):
    entry = {
        "metric": "step_time_median",
        "max_ratio": 1.3,
        "reason": "r",
        "expires": "2026-06-30",
        "workload": workload,
    }
    base = side(kind="baseline", workload="resnet")
    assert compare_sides(base, side(12.0), {"acknowledge": [entry]}, today="2026-06-01")["exit_code"] == code


def test_a_changed_operator_is_listed():
    base, new = side(facts={"op conv": "Conv2D"}), side(12.0, facts={"op conv": "slow_conv2d"})
    (found,) = [entry for entry in compare_sides(base, new)["explanation"] if entry["kind"] == "structure"]
    assert (found["change"], found["base"], found["new"]) == ("changed", "Conv2D", "slow_conv2d")


def test_the_order_of_repetitions_changes_nothing():
    new = side(12.0)
    turned = Measures(**{
        **{name: getattr(new, name) for name in new.__struct_fields__},
        "values": {metric: dict(reversed(values.items())) for metric, values in reversed(new.values.items())},
    })  # fmt: skip
    assert json.dumps(compare_sides(side(), new)) == json.dumps(compare_sides(side(), turned))


def test_planned_looks_are_reported():
    plan = whole_plan(Policy(looks=(5, 8)))
    content = compare_sides(side(interleaved=True), side(13.0, interleaved=True), plan=plan)
    assert content["looks"] in ([5], [5, 8])
    assert content["next_look"] is None
    assert {"code": "not_interleaved"} not in content["note_facts"]


def test_repetitions_without_a_known_time_are_compared_all_the_same():
    sides = [
        side(step, reps={rep: Repetition(order=0, job="boot:1") for rep in range(len(SPREAD))}) for step in (10, 12)
    ]
    assert compare_sides(*sides)["verdict"] == "regressed"


def test_a_policy_may_be_a_table():
    assert compare_sides(side(), side(12.0), {"metrics": {"step_time_median": {"min_effect": 0.3}}})["exit_code"] == 4


@pytest.mark.parametrize("name", ["test_a[small]", "test_a[bold]", "test_a[/x]", "\x1b[31mred\x1b[0m"])
def test_names_are_shown_in_the_terminal_as_they_are(name):
    from pipeprof.report.compare import sections as compare_sections

    base, new = (
        side(values={f"benchmark/{name}": {rep: step * factor for rep, factor in enumerate(SPREAD)}}, label=name)
        for step in (1.0, 1.5)
    )
    other = side(fingerprint={"cpu_model": name})
    for content in (compare_sides(base, new), compare_sides(base, other)):
        text = compare_sections.text(content)
        assert name.replace("\x1b", "\\x1b") in text
        assert "\x1b" not in text


def test_operators_at_the_edge_of_those_that_are_named_have_not_vanished():
    facts = {f"op net/{name}": "Add" for name in "abcde"}
    stage = {"pipeline/net/c": {rep: 1e6 * factor for rep, factor in enumerate(SPREAD)}}  # may have an operator's name

    def ops(*names, **more):
        values = {f"op/net/{name}": {rep: 1e6 * factor for rep, factor in enumerate(SPREAD)} for name in names}
        counts = {f"count/net/{name}": dict.fromkeys(range(len(SPREAD)), 1.0) for name in names}
        others = {"op/(others)": {rep: 5e6 * factor for rep, factor in enumerate(SPREAD)}}
        return side(values=side().values | values | counts | others | stage, facts=facts | more)

    found = by_name(compare_sides(ops("a", "b", "c"), ops("a", "b", "d")))
    assert {"op/net/a", "op/net/b", "op/(others)"} == {name for name in found if name.startswith("op/")}
    assert found["pipeline/net/c"]["verdict"] == "unchanged"
    assert {"count/net/a", "count/net/b"} == {name for name in found if name.startswith("count/")}
    assert found["op/(others)"]["base"] == pytest.approx(6e6, rel=0.01)
    gone = ops("a", "b")
    del gone.facts["op net/c"]
    assert by_name(compare_sides(ops("a", "b", "c"), gone))["op/net/c"]["verdict"] == "missing"


def test_workloads_of_different_names_are_noted_unless_one_is_a_baseline_s():
    notes = [
        [note for note in compare_sides(side(workload="resnet", kind=kind), side())["notes"] if "names" in note]
        for kind in ("run", "baseline")
    ]
    assert notes == [["the workloads have different names: `resnet` and `train`"], []]


TRAIN = ["/venv/bin/python", "train.py", "--lr", "1"]


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [
        (TRAIN, ["python3", *TRAIN[1:]], None),
        (TRAIN, ["python", "train.py"], "only base has `--lr 1`"),
        (TRAIN, [*TRAIN[:3], "2", "--fast"], "only base has `--lr 1`, only new has `--lr 2`, `--fast`"),
        (["python", "train.py"], ["python", "train.py", "a b", "-1", "x=2", "y", "z"],
         "only new has `'a b'`, `-1 x=2`, `y` and 1 more"),
        ([], TRAIN, None),
    ],
)  # fmt: skip
def test_arguments_that_one_side_alone_has_are_noted(base, new, said):
    notes = compare_sides(side(command=base), side(12.0, command=new))["notes"]
    found = [note for note in notes if "arguments" in note]
    assert found == ([] if said is None else [f"the arguments of the commands differ: {said}"])


@pytest.mark.parametrize(("begin", "step", "said"), [(1, 2, False), (16, 2, True), (-20, 2, True)])
def test_sides_whose_repetitions_lie_between_each_other_were_measured_in_turn(begin, step, said):
    """Files of benchmarks and runs that were made in turn by hand; `begin`: of new, in places of base."""
    reps = [
        {rep: Repetition(order=1_795_255_395_172_729_866 + at * 10**9, job="boot:1") for rep, at in enumerate(places)}
        for places in (range(0, 16, 2), range(begin, begin + 8 * step, step))
    ]
    notes = compare_sides(side(reps=reps[0]), side(12.0, reps=reps[1]))["note_facts"]
    assert ({"code": "not_interleaved"} in notes) == said


@pytest.mark.parametrize(("base", "said"), [({0: 300, 1: 300}, True), ({0: 100, 1: 99}, False), ({}, False)])
def test_another_number_of_steps_is_noted_where_it_is_known(base, said):
    notes = compare_sides(side(steps=base), side(12.0, steps={0: 100, 1: 100}))["notes"]
    assert ("the runs had different numbers of training steps: 300, 100" in notes) == said


def test_a_repetition_on_both_sides_is_refused():
    with pytest.raises(UsageError, match="both sides hold the run b"):
        compare_sides(side(run_ids=["a", "b"]), side(12.0, run_ids=["b", "c"]))
    with pytest.raises(UsageError, match="is a copy of one of"):
        compare_sides(side(digests=["1", "2"]), side(12.0, digests=["3", "2"]))
    assert compare_sides(side(run_ids=["a"], digests=["1"]), side(12.0, run_ids=["b"], digests=["2"]))["exit_code"] == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["base", "new"])
def test_a_value_that_is_no_number_is_damage_of_its_side(name, value):
    sides = {"base": side(label="base"), "new": side(label="new")}
    sides[name].values["step_time_median"][3] = value
    with pytest.raises(RunError, match=f"`{name}` is damaged: `step_time_median` of repetition 3 is") as caught:
        compare_sides(**sides)
    assert caught.value.exit_code == 3


def test_a_policy_of_the_program_is_said_with_its_departures():
    trust = compare_sides(side(), side(12.0), {"alpha": 0.01})["trust"]
    assert (trust["policy"]["origin"], trust["base_revision"], trust["edits"]) == ("given", None, [])
    assert trust["departures"] == [{"key": "alpha", "reference": 0.008, "value": 0.01, "effect": "stricter"}]
    assert compare_sides(side(), side(12.0))["trust"]["policy"]["origin"] == "defaults"


def test_another_command_counts_only_against_a_baseline_of_the_base_revision():
    base, new = side(command=["python", "a.py"], kind="baseline"), side(command=["python", "b.py"])
    trust = compare_sides(base, new)["trust"] | {"base_revision": "b" * 40}
    assert compare_sides(base, new)["exit_code"] == 0
    assert compare_sides(base, new, trust=trust)["exit_code"] == 3
    assert compare_sides(base, new, {"ignore_fingerprint": ["command"]}, trust=trust)["exit_code"] == 0
    assert compare_sides(side(kind="baseline"), new, trust=trust)["exit_code"] == 0  # it does not say
    assert compare_sides(side(command=["python", "a.py"]), new, trust=trust)["exit_code"] == 0
