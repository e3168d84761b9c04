"""What `whatif` and `tune` measured of a run before stands in the place of a prediction."""

from __future__ import annotations

import json

import pytest

from pipeprof.report.answer.data import _advise
from pipeprof.report.answer.shape import Answer
from pipeprof.report.trials import trials_of
from pipeprof.report.words import suggestions
from pipeprof.verdict.cause import Trial
from pipeprof.verdict.data_cause import chosen, data_cause, take_trials
from pipeprof.verdict.pipeline import diagnose
from pipeprof.verdict.suggest import Suggestion

OP = {"op_id": 2, "op_type": "MapOp", "name": "f"}
WHATIF = {"op": OP | {"node": 1}, "change": {"workers": [1, 4]}, "measured": {"ratio": 1.31, "interval": [1.2, 1.4]}}


def stored(folder, name, content):
    folder.mkdir()
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def trial(verdict="no_gain", new=("workers", [1, 4]), **more):
    what = [{"op": "MapOp 2", "op_id": 2, "name": "f", "change": dict([new])}]
    return {"what": what, "ratio": 1.0, "interval": None, "verdict": verdict} | more


def test_results_beside_the_run_are_read_and_those_of_others_are_not(make_run, tmp_path):
    run = make_run({})
    run.manifest.command, run.manifest.run_id = ["python", "train.py"], "mine"
    beside = run.path.parent
    stored(beside / "w1", "whatif.json", WHATIF | {"run": {"run_id": "mine"}})
    stored(beside / "w2", "whatif.json", WHATIF | {"run": {"run_id": "another"}})
    stored(beside / "w3", "whatif.json", "{")
    steps = [trial(), trial("accepted", new=("processes", [False, True])), trial(new=("prefetch", [16, 64]))]
    stored(beside / "t1", "tune.json", {"command": run.manifest.command, "trials": steps})
    stored(beside / "t2", "tune.json", {"command": ["other"], "trials": steps})
    found = trials_of(run)
    assert sorted((one.verb, *one.new.items(), one.times, one.low) for one in found) == [
        ("tune", ("processes", True), 1.0, None), ("tune", ("workers", 4), 1.0, None),
        ("whatif", ("workers", 4), 1.31, 1.2),
    ]  # fmt: skip


def found(*items):
    return diagnose([], [], []) | {
        "verdict": "input_bound", "data_wait_share": 0.4, "op_id": 2, "op_type": "MapOp", "op_name": "f", "kind": "cpu",
        "rule": "busiest", "process": None, "suggestions": [item.as_dict() for item in items],
    }  # fmt: skip


FACTS = {
    "op": OP,
    "workers": 1,
    "new_workers": 4,
    "why": None,
    "prediction": {"ratio": 1.9, "low": 1.7, "high": 2.1, "reason": None},
}
MORE = Suggestion("workers", FACTS, 2, "num_parallel_workers", 1, 4, 1.9, 1.7, 2.1, verify="pipeprof whatif RUN --op f")
CHEAPER = Suggestion("cheaper_rows", {"op": OP, "workers": 1}, 2)


@pytest.mark.parametrize(("times", "advice"), [(1.31, "workers"), (1.0, "cheaper_rows")])
def test_a_measured_gain_is_shown_and_one_that_is_none_is_no_advice(times, advice):
    diagnosis = found(MORE, CHEAPER)
    take_trials(diagnosis, [Trial("whatif", "MapOp", "f", {"workers": 4}, times, times - 0.1, times + 0.1)])
    assert chosen(diagnosis)["code"] == advice
    diagnosis["suggestions"] = [suggestions.worded(item) for item in diagnosis["suggestions"]]
    assert f"{times:.2f} times as fast ({times - 0.1:.2f} to" in diagnosis["suggestions"][0]["text"]
    assert "as `whatif` measured" in diagnosis["suggestions"][0]["text"]
    if advice == "workers":
        given, cause = Answer(""), data_cause(diagnosis)
        run = {"command": ["python", "train.py"], "source": "collect", "workdir": None}
        _advise(given, {"diagnosis": diagnosis, "run": run}, cause)
        assert cause.advice.gain.origin == "measured"
        assert given.gain == "The training would run about 1.31 times as fast (1.21 to 1.41), as `whatif` measured"
        assert "headspace" in given.next_command


@pytest.mark.parametrize(
    "other",
    [
        Trial("whatif", "MapOp", "g", {"workers": 4}, 1.0, None, None),
        Trial("whatif", "MapOp", "f", {"workers": 8}, 1.0, None, None),
        Trial("whatif", "MapOp", "f", {"workers": 4, "prefetch": 64}, 1.0, None, None),
    ],
)
def test_a_trial_of_something_else_says_nothing(other):
    diagnosis = found(MORE)
    take_trials(diagnosis, [other])
    assert diagnosis["suggestions"][0]["gain"] == 1.9
