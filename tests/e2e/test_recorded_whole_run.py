"""What interrupts a training is named in the first sentence, and the parts of a run add up to its wall time."""

import json
import os
import re
import subprocess
import sys

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
    if who in ("checkpoint", "eval"):
        assert re.search(r"\w\.py:\d+$", content["first_screen"]["place"])
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


def test_a_leak_is_said_beside_why_the_training_is_slow(reported):
    """1 MiB is kept in each of 180 steps."""
    _, content = reported("leak")
    (row,) = [row for row in content["memory_growth"] if row["name"] == "trainer"]
    assert row["slope_bytes"] == pytest.approx(1 << 20, rel=0.1)
    assert content["first_screen"]["also"].startswith("Memory grows by ")
    assert "Memory" not in content["first_screen"]["sentence"]
    assert not (reported("none")[1]["first_screen"]["also"] or "").startswith("Memory grows")


def test_other_programs_that_begin_in_the_middle_are_named_in_the_first_sentence(pipeprof):
    launcher, run = pipeprof.start(pipeprof.script("around.py", "late"), "--ops", "off", text=True)
    assert any(line.strip() == "half" for line in launcher.stdout)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        _, said = launcher.communicate()
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert launcher.returncode == 0, said
    content = json.loads(pipeprof.run("report", str(run), "--format", "json").stdout)
    assert content["first_screen"]["sentence"].startswith("The training gets slower as it runs: ")
    assert "other programs take more CPU" in content["first_screen"]["sentence"]
    (drift,) = content["steps"]["drift"]
    assert drift["at_step"] == pytest.approx(90, abs=15)
