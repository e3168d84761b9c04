"""Pairs of runs of drawn speeds: how many are made, and what the JSON and the words say of them."""

from pathlib import Path

import pytest

from pipeprof.cli.whatif import HEADSPACE_PAIRS, plan_of
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment import runs
from pipeprof.experiment.pairs import Plan, Rate, measured_facts
from pipeprof.experiment.runs import Measured, measure_pairs
from pipeprof.experiment.whatif import verdict
from pipeprof.read.spool.marks import Mark
from pipeprof.read.spool.process import Process
from pipeprof.report import document, speedup_text
from pipeprof.report.words.speedup import speed_lines
from pipeprof.verdict.speedup import CHANGE, GAIN

PLAN = Plan(2, 8)
PARTS = {"even": (10.0,) * 8, "changed": (10.0,) * 4 + (20.0,) * 4}


@pytest.fixture
def series(monkeypatch, tmp_path):
    """`series(a, b, plan)`: sides of these rates in turn; the last one of a side goes on."""

    def measure(a, b, plan=PLAN, band=GAIN, parts="even", check=None):
        rates, made = {"a": a, "b": b}, []

        def run_once(folder, _command, side, pair, probe):
            made.append(f"{side}{pair}")
            assert probe.stop_after == plan.steps
            rate = rates[side][min(pair, len(rates[side]) - 1)]
            process = Process(Path(), {}, [Mark(1, 0, 0, 0, 0, 1)], [{"e": "cached"}])
            return Measured(side, pair, folder / made[-1], Rate(rate, 50), 60, [process], PARTS[parts])

        monkeypatch.setattr(runs, "run_once", run_once)
        said = []
        sides = (lambda _side, _done: runs.LIGHT, check or (lambda _runs: None))
        found = measure_pairs(tmp_path, ["train"], (plan, band), *sides, said.append)
        return found, made, said

    return measure


def test_two_pairs_that_agree_are_enough(series):
    found, made, said = series([10.0, 10.1], [20.0])
    assert made == ["a0", "b0", "b1", "a1"]
    assert (found.stopped, found.answer.decided) == ("decided", "above")
    assert said[0] == "pairs of runs: 2 to 8, until they decide"


def test_runs_that_are_ended_after_some_steps(series):
    _, _, said = series([10.0], [20.0], plan_of(None, 2, None, 1_200, HEADSPACE_PAIRS))
    assert said[0] == "pairs of runs: 2; each run ends after 1,200 training steps"


def test_a_secret_of_the_command_is_not_in_the_result(series):
    content = measured_facts(series([10.0], [20.0])[0], command=["train", "--password", "hunter2"])
    assert content["command"] == ["train", "--password", "***"]


def test_pairs_that_contradict_each_other_are_followed_by_more(series):
    found, made, said = series([10.0], [5.5, 15.3, 10.0, 10.1, 9.9, 10.0])
    assert len(made) == 12
    assert (found.stopped, found.answer.decided) == ("decided", "below")
    assert sum("so far" in line for line in said) == 5


def test_pairs_that_never_decide_end_undecided(series):
    found, made, _ = series([10.0], [5.5, 15.3] * 2, Plan(2, 4))
    assert (len(made), found.stopped, found.answer.decided) == (8, "pairs", None)


@pytest.mark.parametrize("pair", [0, 1])
def test_a_pair_that_is_not_what_it_should_be_is_the_last_one(series, pair):
    seen = []

    def check(runs):
        seen.append([run.name for run in runs])
        if runs[0].pair == pair:
            raise MeasureError("not applied")

    with pytest.raises(MeasureError, match="not applied"):
        series([10.0], [5.5, 15.3], check=check)
    assert seen == [["a0", "b0"], ["b1", "a1"]][: pair + 1]


def test_only_the_first_pair_keeps_what_takes_memory_for_each_step(series):
    found, _, _ = series([10.0], [20.0, 30.0], Plan(4, 4))
    assert [len(run.processes[0].marks) for run in found.runs] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert all(run.events("cached") for run in found.runs)


def test_the_runs_of_a_side_say_whose_two_speeds_they_are(series):
    found, _, _ = series([10.0, 6.0, 10.1, 6.1, 10.0], [20.0, 20.1, 19.9, 20.0, 20.0], Plan(5, 8))
    measured = measured_facts(found, command=["train"])["measured"]
    assert (measured["decided"], measured["stopped"], measured["pairs"]) == ("above", "decided", 5)
    assert [speed["pairs"] for speed in measured["speeds"]] == [[0, 2, 4], [1, 3]]
    assert measured["speeds_of"] == "a"


def test_the_facts_hold_no_secret_of_the_command(series):
    found, _, _ = series([10.0], [20.0])
    assert measured_facts(found, command=["train", "--token", "c0ffee"])["command"] == ["train", "--token", "***"]


def test_a_run_that_changes_its_speed_is_named(series):
    found, _, _ = series([10.0], [20.0], parts="changed")
    content = measured_facts(found, command=["train"])
    assert content["runs"][0]["speeds"] == [
        {"steps_per_second": 10.0, "parts": 4},
        {"steps_per_second": 20.0, "parts": 4},
    ]
    assert speed_lines(content)[0] == ("run a0 changed its speed: 10.0 steps/s in 4, 20.0 steps/s in 4 of its 8 parts")


@pytest.mark.parametrize(
    ("b", "answer", "words"),
    [
        (
            [15.0, 15.1, 15.05],
            "faster",
            "1.51 times as fast (98 % interval x1.49 to x1.53; single pairs x1.50 to x1.51): faster",
        ),
        ([9.0, 9.01, 9.02], "slower", ": slower"),
        ([10.0, 10.2, 10.1], "undecided", ": a small difference"),
        ([9.0, 14.0], "undecided", "measure more of them (--max-pairs 8)"),
    ],
)
def test_a_change_is_judged_by_the_same_rule(series, b, answer, words):
    found, _, _ = series([10.0], b, Plan(3, 4), CHANGE)
    content = measured_facts(found, command=["train"]) | {"change": {}, "error": None}
    content["op"] = {"op_type": "MapOp", "op_id": 1, "name": "rotate"}
    content["prediction"] = dict.fromkeys(("ratio", "low", "high", "limited_by")) | {"reason": "none", "basis": []}
    content["measured"]["verdict"] = verdict(content["measured"])
    assert content["measured"]["verdict"] == answer
    assert words in document.text(speedup_text.whatif(content))


@pytest.mark.parametrize(
    ("least", "most", "expected"), [(None, None, (2, 8)), (5, None, (5, 8)), (10, None, (10, 10)), (None, 1, (1, 1))]
)
def test_what_is_not_said_follows_from_what_is(least, most, expected):
    plan = plan_of(least, most, None, None, HEADSPACE_PAIRS)
    assert (plan.least, plan.most) == expected


def test_more_at_least_than_at_most_is_refused():
    with pytest.raises(UsageError, match="--pairs 5 is more than --max-pairs 3"):
        plan_of(5, 3, None, None, HEADSPACE_PAIRS)


def test_the_time_that_more_pairs_may_take_is_said(series):
    found, made, said = series([10.0], [5.5, 15.3], Plan(2, 3, budget_s=3600.0))
    assert said[0] == "pairs of runs: 2 to 3, until they decide, within 60 min 00 s"
    assert len(made) == 6
    assert found.stopped == "pairs"
    assert [line.partition("more")[0] for line in said if "so far" in line] == [
        "1 pair so far (x0.55): at most 2 ",
        "2 pairs so far (x0.55 to x1.53): at most 1 ",
    ]
