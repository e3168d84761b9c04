"""`pipeprof demo` on real trainings: what it says is what it measured."""

import json
import re
import subprocess

import pytest
from conftest import LIMIT_S, PYTHON, clean_environment

from pipeprof.verdict.rules import PREFILLED

pytestmark = [pytest.mark.mindspore, pytest.mark.alone]
WIDTH = 80


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the demo prints, and the report of each of its two runs."""
    folder = tmp_path_factory.mktemp("demo")

    def ask(*words):
        return subprocess.run(
            [PYTHON, "-m", "pipeprof", *words], cwd=folder, env=clean_environment(), capture_output=True, text=True,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip

    done = ask("demo", "-o", "demo")
    reports = [json.loads(ask("report", f"demo/{name}", "--format", "json").stdout) for name in ("slow", "fixed")]
    return done, *reports


def test_a_training_whose_time_is_over_still_has_steps_to_compare():
    """On a busy machine the time is over in the first step."""
    done = subprocess.run(
        [PYTHON, "-m", "pipeprof.experiment.workload", "--steps", "40", "--seconds", "0"], env=clean_environment(),
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.stdout == "trained 30 steps\n", done.stderr


def planted(report):
    return next(row for row in report["pipeline"]["load"] if row["name"] == "mask_from_storage")


def test_it_names_the_planted_operator_and_confirms_the_fix(told):
    done, slow, fixed = told
    assert done.returncode == 0, done.stdout + done.stderr
    assert slow["diagnosis"]["op_name"] == "mask_from_storage"
    medians = [report["steps"]["summary"][-2]["median_ns"] for report in (slow, fixed)]
    assert [row["kind"] for row in slow["steps"]["summary"]][-2] == "train"
    assert medians[1] < medians[0]
    assert f"a training step is {medians[0] / medians[1]:.1f} times as fast" in done.stdout


def test_its_limit_holds_for_the_gain_that_it_measures(told):
    done, slow, _ = told
    words = " ".join(done.stdout.split())
    (limit,) = [item["gain_high"] for item in slow["diagnosis"]["suggestions"] if item["code"] == "bound"]
    gain, average = re.findall(
        r"a training step is ([0-9.]+) times as fast in the median, ([0-9.]+) times on average", words
    )[0]
    assert 1.0 < float(average) <= limit, (gain, done.stdout)


def test_the_planted_operator_works_no_more_than_its_workers_can(told):
    """But for what was prepared before: so much more is a doubt of its own."""
    _, slow, _ = told
    row = planted(slow)
    assert row["work_ns"] >= 80e6  # 16 pictures of at least 5 ms
    assert row["work_ns"] / 1e9 * row["loop_rate"] <= PREFILLED * row["workers"]


def test_its_text_fits_a_narrow_terminal_and_is_built_of_the_report(told):
    done, slow, _ = told
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= WIDTH
    words, screen = " ".join(done.stdout.split()), slow["first_screen"]
    assert [
        name for name in ("sentence", "cause", "place", "action") if screen[name] and screen[name] not in words
    ] == []
    (line,) = (line for line in lines if line.strip().startswith("mask_from_storage"))
    assert line.split()[-2:] == [f"{min(1.0, planted(slow)['utilisation']) * 100:.1f}", "%"]
