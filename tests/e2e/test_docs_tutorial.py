"""The trainings of the tutorial, as it says them, and the story that it tells about them."""

import json
import re
import statistics
import sys
from pathlib import Path

import pytest
from copies import copy_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import blocks, commands

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.mindspore, pytest.mark.alone]
MADE = {"collect", "whatif", "headspace"}  # `ab` needs a repository, and has tests of its own


def trainings():
    """The words of each training of the page; once where it says five times, and one pair."""
    typed = [command for block in blocks(ROOT / "docs" / "tutorial.md") for command in commands(block)]
    for words in (call for command in typed for call in command.calls):
        if words[1] in MADE:
            text = re.sub("--reps 5", "--reps 1", " ".join(words[1:]))
            yield (
                text.replace(words[1], f"{words[1]} --max-pairs 1", 1).split()
                if words[1] != "collect"
                else text.split()
            )


def test_the_trainings_of_the_tutorial_tell_its_story(pipeprof):
    copy_file(ROOT / "examples" / "tutorial" / "train.py", pipeprof.folder)
    said = {}
    for words in trainings():
        done = pipeprof.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        said[words[0]] = done.stdout
    diagnosis = json.loads(pipeprof.run("report", "slow", "--format", "json").stdout)["diagnosis"]
    assert (diagnosis["verdict"], diagnosis["op_name"]) == ("input_bound", "rotate")
    assert median_step(pipeprof, "fast") < median_step(pipeprof, "slow") / 2
    assert set(said) == MADE


def median_step(pipeprof, run):
    done = pipeprof.run("sql", run, "SELECT dur_ns FROM train_step WHERE kind = 'train'", "--format", "json")
    return statistics.median(row["dur_ns"] for row in json.loads(done.stdout))
