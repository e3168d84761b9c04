"""Two sides made by hand, judged and explained."""

import json

import msgspec
import pytest

from pipeprof.errors import RunError, UsageError
from pipeprof.experiment.compare import compare_sides
from pipeprof.record.measures import Measures, Repetition
from pipeprof.report.compare import content as compare_content
from pipeprof.report.compare import github as compare_github
from pipeprof.report.compare import sections as compare_sections
from pipeprof.verdict.gate.planned import whole_plan
from pipeprof.verdict.gate.policy import Policy

FINGERPRINT = {"cpu_model": "A", "cpu_cores": 2}
SPREAD = (1.0, 1.003, 0.998, 1.001, 0.997, 1.002, 0.999, 1.0)


def by_rep(value):
    return {rep: value * factor for rep, factor in enumerate(SPREAD)}


def repetitions(orders=range(8), job="boot:1"):
    return {rep: Repetition(order=order, job=job) for rep, order in enumerate(orders)}


def side(step_ms=10.0, label="x", job="boot:1", **more):
    values = {
        "step_time_median": by_rep(step_ms * 1e6), "phase/data_wait": by_rep(max(step_ms - 9, 0.1) * 1e6),
        "phase/compute": by_rep(9e6), "pipeline/decode": by_rep(step_ms * 1e6),
    }  # fmt: skip
    facts = {"label": label, "workload": "train", "fingerprint": FINGERPRINT, "values": values}
    return Measures(**(facts | {"reps": repetitions(job=job)} | more))


def by_name(content):
    return {metric["name"]: metric for metric in content["metrics"]}


def ended(*args, **more):
    content = compare_sides(*args, **more)
    return content["verdict"], content["exit_code"]


def noted(base, new, code):
    return code in [one["code"] for one in compare_sides(base, new)["note_facts"]]


def test_the_same_is_unchanged_and_passes():
    content = compare_sides(side(), side(label="y"))
    assert (content["verdict"], content["exit_code"], content["explanation"]) == ("unchanged", 0, [])
    assert {"code": "not_interleaved"} in content["note_facts"]
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize(
    ("base", "new", "policy", "end"),
    [
        (side(job=None), side(12.0, job=None), None, ("inconclusive", 4)),  # unknown jobs are not taken for the same
        (side(reps=repetitions([0] * 8)), side(12.0, reps=repetitions([0] * 8)), None, ("regressed", 1)),  # times, too
        (side(), side(12.0), {"metrics": {"step_time_median": {"min_effect": 0.3}}}, ("inconclusive", 4)),
    ],
)
def test_what_is_not_known_of_repetitions_and_a_policy_that_is_a_table_count(base, new, policy, end):
    assert ended(base, new, policy) == end


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
    ((entry, kept),) = zip(content["explanation"], saved["explanation"], strict=True)
    assert set(entry) <= set(kept)
    assert compare_github.comment(saved).splitlines()[1] == (
        "### Performance of `train`: worse than before: Python instructions per row +3.0 %, "
        "because Python instructions of `tokenize` per row grew by 3.0 % (`data.py:9`)"
    )


def test_another_machine_is_refused_and_nothing_is_judged():
    content = compare_sides(side(), side(12.0, fingerprint={"cpu_model": "B", "cpu_cores": 2}))
    assert (content["verdict"], content["exit_code"]) == ("incomparable", 3)
    assert {(metric["verdict"], metric["p_value"]) for metric in content["metrics"]} == {("incomparable", None)}
    assert "cpu_model (A, now B)" in content["headline"]
    assert content["fingerprint"]["differences"][0]["hard"]
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


ACCEPTED, REFUSED = ("acknowledged", 0), ("regressed", 1)


@pytest.mark.parametrize(
    ("workload", "today", "end"),
    [("train", "06-01", ACCEPTED), ("resnet", "06-01", ACCEPTED), ("*", "06-01", ACCEPTED), ("mlp", "06-01", REFUSED),
     ("*", "07-01", REFUSED)],
)  # fmt: skip
def test_a_regression_is_accepted_until_a_day_for_the_workload_by_the_baselines_name_too(workload, today, end):
    entry = {"metric": "step_time_median", "max_ratio": 1.3, "reason": "r", "expires": "2026-06-30"}
    base, policy = side(kind="baseline", workload="resnet"), {"acknowledge": [entry | {"workload": workload}]}
    assert ended(base, side(12.0), policy, today=f"2026-{today}") == end


def test_a_changed_operator_is_listed():
    base, new = side(facts={"op conv": "Conv2D"}), side(12.0, facts={"op conv": "slow_conv2d"})
    (found,) = [entry for entry in compare_sides(base, new)["explanation"] if entry["kind"] == "structure"]
    assert (found["change"], found["base"], found["new"]) == ("changed", "Conv2D", "slow_conv2d")


def test_the_order_of_repetitions_changes_nothing():
    new = side(12.0)
    values = {metric: dict(reversed(values.items())) for metric, values in reversed(new.values.items())}
    turned = msgspec.structs.replace(new, values=values)
    assert json.dumps(compare_sides(side(), new)) == json.dumps(compare_sides(side(), turned))


def test_planned_looks_are_reported():
    plan = whole_plan(Policy(looks=(5, 8)))
    content = compare_sides(side(interleaved=True), side(13.0, interleaved=True), plan=plan)
    assert content["looks"] in ([5], [5, 8])
    assert content["next_look"] is None
    assert {"code": "not_interleaved"} not in content["note_facts"]


@pytest.mark.parametrize("name", ["test_a[small]", "test_a[bold]", "test_a[/x]", "\x1b[31mred\x1b[0m"])
def test_names_are_shown_in_the_terminal_as_they_are(name):
    base, new = (side(values={f"benchmark/{name}": by_rep(step)}, label=name) for step in (1.0, 1.5))
    for other in (new, side(fingerprint={"cpu_model": name})):
        text = compare_sections.text(compare_sides(base, other))
        assert name.replace("\x1b", "\\x1b") in text
        assert "\x1b" not in text


def test_operators_at_the_edge_of_those_that_are_named_have_not_vanished():
    facts = {f"op net/{name}": "Add" for name in "abcde"}
    stage = {"pipeline/net/c": by_rep(1e6)}  # may have an operator's name

    def ops(*names):
        values = {f"op/net/{name}": by_rep(1e6) for name in names}
        counts = {f"count/net/{name}": dict.fromkeys(range(len(SPREAD)), 1.0) for name in names}
        others = {"op/(others)": by_rep(5e6)}
        return side(values=side().values | values | counts | others | stage, facts=dict(facts))

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
    base, new = (
        repetitions(1_795_255_395_172_729_866 + at * 10**9 for at in places)
        for places in (range(0, 16, 2), range(begin, begin + 8 * step, step))
    )
    assert noted(side(reps=base), side(12.0, reps=new), "not_interleaved") == said


@pytest.mark.parametrize(("base", "said"), [({0: 300, 1: 300}, True), ({0: 100, 1: 99}, False), ({}, False)])
def test_another_number_of_steps_is_noted_where_it_is_known(base, said):
    notes = compare_sides(side(steps=base), side(12.0, steps={0: 100, 1: 100}))["notes"]
    assert any("steps: 300, 100" in note for note in notes) == said


def test_a_repetition_on_both_sides_is_refused():
    with pytest.raises(UsageError, match="both sides hold the run b"):
        compare_sides(side(run_ids=["a", "b"]), side(12.0, run_ids=["b", "c"]))
    with pytest.raises(UsageError, match="is a copy of one of"):
        compare_sides(side(digests=["1", "2"]), side(12.0, digests=["3", "2"]))
    assert ended(side(run_ids=["a"], digests=["1"]), side(12.0, run_ids=["b"], digests=["2"]))[1] == 1


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
    assert ended(base, new)[1] == 0
    assert ended(base, new, trust=trust)[1] == 3
    assert ended(base, new, {"ignore_fingerprint": ["command"]}, trust=trust)[1] == 0
    assert ended(side(kind="baseline"), new, trust=trust)[1] == 0  # it does not say
    assert ended(side(command=["python", "a.py"]), new, trust=trust)[1] == 0
