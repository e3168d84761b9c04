"""Logs of load_and_run are of inference: nothing is said of a training, and numbers are the same everywhere."""

import pytest

from pipeprof.read.foreign import import_path
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import first_lines, sections
from pipeprof.report.summary import three_lines
from tests.unit.read.test_load_and_run import CURRENT


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    (folder / "log.txt").write_text(CURRENT, encoding="utf-8")
    return import_path(folder / "log.txt", folder / "run")


def test_it_speaks_of_iterations_of_inference(run):
    content = build(run)
    shown = [*first_lines(content), *three_lines(run)]
    for section in sections(content):
        shown += [section.title, *section.strong, *section.notes]
        shown += [str(cell) for block in section.blocks for row in (block.head, *block.rows) for cell in row]
    text = "\n".join(line for line in shown if str(run.path) not in line)
    assert "iterations" in text
    assert "training step" not in text
    assert "limits the inference" in text


def test_the_summary_counts_the_steps_that_the_report_counts(run):
    content = build(run)
    (timed,) = (row["steps"] for row in content["steps"]["summary"] if row["kind"] == "train")
    (warm,) = (row["steps"] for row in content["steps"]["summary"] if row["kind"] == "warmup")
    assert f"{timed} iterations after {warm} of warm-up, median iteration" in three_lines(run)[0]
    assert f"{timed} iterations, median" in " ".join(first_lines(content))
