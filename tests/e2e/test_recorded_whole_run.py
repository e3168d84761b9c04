"""What interrupts a training is named in the first sentence, and the parts of a run add up to its wall time."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.mindspore, pytest.mark.alone]


@pytest.fixture
def reported(recorded, pipeprof):
    def report(who):
        run = recorded("around.py", who, options=("--ops", "off"))
        return run, json.loads(pipeprof.run("report", str(run.path), "--format", "json").stdout)

    return report


def parts(content, name):
    return [row for row in content["run_account"]["parts"] if row["part"] == name]


@pytest.mark.parametrize(
    ("who", "begin", "action"),
    [
        ("checkpoint", "Writing checkpoints takes ", "less often"),
        ("callback", "The callback `Watcher` takes ", "less often"),
        ("eval", "Evaluation takes ", "Evaluate less often"),
        ("short", "Graphs are compiled again in the middle of the training", "drop_remainder=True"),
    ],
)
def test_what_interrupts_the_training_is_named_in_the_first_sentence(reported, who, begin, action):
    run, content = reported(who)
    assert content["first_screen"]["sentence"].startswith(begin)
    assert action in content["first_screen"]["action"]
    assert sum(row["dur_ns"] for row in content["run_account"]["parts"]) == run.manifest.reps[0].dur_ns


def test_each_of_three_is_counted_with_the_time_that_it_took(reported):
    _, content = reported("checkpoint")
    (row,) = parts(content, "checkpoint")
    assert row["count"] == 3
    assert row["dur_ns"] >= 3 * 500_000_000  # the script sleeps for that long in each
    (evaluated,) = parts(reported("eval")[1], "evaluation")
    assert evaluated["count"] == 3


def test_the_graph_of_an_evaluation_is_told_apart(reported):
    _, content = reported("eval")
    assert len(parts(content, "compile")) == 1
    assert parts(content, "compile_eval")
    assert not parts(content, "recompile")


def test_without_any_of_it_nothing_of_the_kind_is_the_answer(reported):
    run, content = reported("none")
    assert content["run_account"]["leading"] is None
    assert {"import", "dataset_build", "compile", "first_steps", "training", "epoch_gap", "ending"} <= {
        row["part"] for row in content["run_account"]["parts"]
    }
    assert sum(row["dur_ns"] for row in content["run_account"]["parts"]) == run.manifest.reps[0].dur_ns
