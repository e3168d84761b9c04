"""Every training of the catalogue runs, and its operators can be told apart and replaced."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from catalogue import CASES

HOME = Path(__file__).resolve().parents[2] / "lab" / "real_trainings"
PARTS = 4  # processes; a process imports MindSpore once for its trainings
pytestmark = [pytest.mark.mindspore, pytest.mark.slow]


@pytest.mark.parametrize("part", range(PARTS))
def test_the_trainings_run(pipeprof, part):
    names = [case.name for case in CASES[part::PARTS]]
    done = pipeprof.plain([pipeprof.python, str(HOME / "train.py"), *names, "--seconds", "0.5"])
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith(" steps")] == names


def label(pipeprof, name):
    """The label of a training that is measured here and now, whatever else the machine does."""
    words = [pipeprof.python, str(HOME / "label.py"), name, "--one", "--any-load", "--out", str(pipeprof.folder)]
    done = subprocess.run(words, capture_output=True, text=True, env=pipeprof.environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert (pipeprof.folder / f"{name}.tar.xz").stat().st_size > 1000
    return json.loads((pipeprof.folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.skipif("PIPEPROF_LABEL" not in os.environ, reason="takes minutes: PIPEPROF_LABEL=1 runs it")
def test_a_storage_that_answers_late_is_measured_to_limit(pipeprof):
    """The 8 rows of a step wait 20 ms each, which takes no CPU; the loop behind them takes a few ms."""
    found = label(pipeprof, "distant")
    assert found["limits"] == "op", found
    assert [op["name"] for op in found["ops"] if op["op_id"] in found["accepted"]] == ["Distant"]
    assert found["whole"]["low"] > 1.5
