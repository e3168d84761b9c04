"""Pairs of runs: their order and number, rates of a run and of its parts, and what is said of them."""

from pathlib import Path

import pytest

from pipeprof.cli.whatif import HEADSPACE_PAIRS, plan_of
from pipeprof.errors import MeasureError, UsageError
from pipeprof.experiment import runs
from pipeprof.experiment.pairs import (
    Plan,
    Rate,
    measured_facts,
    rates_of_parts,
    ratio_of,
    sides,
    starts_of,
    steady_rate,
)
from pipeprof.experiment.runs import Measured, measure_pairs
from pipeprof.experiment.whatif import verdict
from pipeprof.read.spool.marks import Mark
from pipeprof.read.spool.process import Process
from pipeprof.report import document, speedup_text
from pipeprof.report.words.speedup import speed_lines
from pipeprof.verdict.speedup import CHANGE, GAIN

MS = 1_000_000
PLAN = Plan(2, 8)
PARTS = {"even": (10.0,) * 8, "changed": (10.0,) * 4 + (20.0,) * 4}


def step(number, kind="train", dur=10, rank=0, epoch=None):
    start = number * 100 * MS
    times = {"start_ns": start, "end_ns": start + dur * MS}
    return {"kind": kind, "rank": rank, "kind_step": number, "epoch": epoch} | times


def test_sides_alternate_in_balance():
    assert [sides(pair) for pair in range(3)] == [("a", "b"), ("b", "a"), ("a", "b")]


@pytest.mark.parametrize(
    ("pairs", "decided", "spent_s", "budget_s", "expected"),  # a pair that would not end in time is not begun
    [
        (1, True, 1e6, None, None), (2, True, 1e6, None, "decided"), (2, False, 1e6, None, None),
        (7, False, 1e6, None, None), (8, False, 1e6, None, "pairs"), (8, True, 1e6, None, "decided"),
        (1, False, 29.0, 60.0, None), (1, False, 31.0, 60.0, "budget"), (2, False, 41.0, 60.0, "budget"),
    ],
)  # fmt: skip
def test_pairs_are_added_until_they_decide_or_the_time_is_over(pairs, decided, spent_s, budget_s, expected):
    assert Plan(2, 8, budget_s=budget_s).stop(pairs, spent_s, decided=decided) == expected


def test_rate_leaves_out_warmup_evaluation_and_the_first_quarter():
    rows = [step(0, "warmup", 900), *(step(n, dur=50) for n in range(1, 4)), *(step(n) for n in range(4, 13))]
    rows += [step(n, "eval", 500) for n in range(20)]
    rate = steady_rate(rows)
    assert (rate.per_second, rate.steps) == (pytest.approx(100.0), 9)
    assert steady_rate([step(n) for n in range(5)]) is None  # a few steps make no rate
    assert steady_rate([]) is None
    rows = [step(n, rank=rank, dur=10 + 10 * rank) for n in range(10) for rank in (0, 1)]
    assert steady_rate(rows).per_second == pytest.approx(50.0)  # the slowest rank counts


def test_starting_workers_between_two_steps_takes_time_and_within_one_it_is_in_the_step_already():
    """Steps of 10 ms begin every 100 ms: one of the last nine has a start of 80 ms behind it, 70 of them between."""
    rows = [step(n) for n in range(12)]
    loader = {"role": "train", "rank": 0, "iteration": 1, "closed_ns": None, "closing_ns": None}
    made = loader | {"created_ns": 500 * MS, "ready_ns": 580 * MS}
    assert steady_rate(rows, starts_of([made])).per_second == pytest.approx(9e3 / (90 + 70))
    ended = made | {"closed_ns": 850 * MS, "closing_ns": 30 * MS}
    assert steady_rate(rows, starts_of([ended])).per_second == pytest.approx(9e3 / (90 + 70 + 30))
    for other in ({"rank": 1}, {"role": "eval"}, {"iteration": None}, {"created_ns": 0, "ready_ns": 90 * MS}):
        assert steady_rate(rows, starts_of([made | other])).per_second == pytest.approx(100.0)


def test_ratio_is_the_median_of_the_pairs():
    found = ratio_of([10.0, 10.0, 20.0], [20.0, 25.0, 30.0])
    assert (found.ratio, found.low, found.high) == (2.0, 1.5, 2.5)


def test_the_parts_of_a_run_have_rates():
    """After the first quarter 10 ms, later 20 ms; the first step of an epoch is long and in no part."""
    slow = dict.fromkeys(range(61, 101), 20)
    rates = rates_of_parts([step(n, dur=900 if n % 25 == 0 else slow.get(n, 10), epoch=n // 25) for n in range(101)])
    assert len(rates) == 8
    assert (rates[:3], rates[-3:]) == (pytest.approx([100.0] * 3), pytest.approx([50.0] * 3))
    assert rates_of_parts([step(n) for n in range(50)]) == rates_of_parts([]) == []  # a short run has none


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
    content = measured_facts(found, command=["train", "--password", "hunter2"])
    assert content["command"] == ["train", "--password", "***"]
    _, _, said = series([10.0], [20.0], plan_of(None, 2, None, 1_200, HEADSPACE_PAIRS))
    assert said[0] == "pairs of runs: 2; each run ends after 1,200 training steps"


def test_pairs_that_contradict_each_other_are_followed_by_more(series):
    found, made, said = series([10.0], [5.5, 15.3, 10.0, 10.1, 9.9, 10.0])
    assert (len(made), found.stopped, found.answer.decided) == (12, "decided", "below")
    assert sum("so far" in line for line in said) == 5
    found, made, _ = series([10.0], [5.5, 15.3] * 2, Plan(2, 4))
    assert (len(made), found.stopped, found.answer.decided) == (8, "pairs", None)


def test_the_time_that_more_pairs_may_take_is_said(series):
    found, made, said = series([10.0], [5.5, 15.3], Plan(2, 3, budget_s=3600.0))
    assert said[0] == "pairs of runs: 2 to 3, until they decide, within 60 min 00 s"
    assert (len(made), found.stopped) == (6, "pairs")
    standing = [line.partition("more")[0] for line in said if "so far" in line]
    assert standing == ["1 pair so far (x0.55): at most 2 ", "2 pairs so far (x0.55 to x1.53): at most 1 "]


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


def test_a_run_that_changes_its_speed_is_named(series):
    content = measured_facts(series([10.0], [20.0], parts="changed")[0], command=["train"])
    assert content["runs"][0]["speeds"] == [{"steps_per_second": speed, "parts": 4} for speed in (10.0, 20.0)]
    assert speed_lines(content)[0] == "run a0 changed its speed: 10.0 steps/s in 4, 20.0 steps/s in 4 of its 8 parts"


@pytest.mark.parametrize(
    ("b", "answer", "words"),
    [
        ([15.0, 15.1, 15.05], "faster",
         "1.51 times as fast (98 % interval x1.49 to x1.53; single pairs x1.50 to x1.51): faster"),
        ([9.0, 9.01, 9.02], "slower", ": slower"), ([10.0, 10.2, 10.1], "undecided", ": a small difference"),
        ([9.0, 14.0], "undecided", "measure more of them (--max-pairs 8)"),
    ],
)  # fmt: skip
def test_a_change_is_judged_by_the_same_rule(series, b, answer, words):
    content = measured_facts(series([10.0], b, Plan(3, 4), CHANGE)[0], command=["train"])
    content |= {"change": {}, "error": None, "op": {"op_type": "MapOp", "op_id": 1, "name": "rotate"}}
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
