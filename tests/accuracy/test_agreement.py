"""A report agrees with itself: what it states in two places is the same number, on stored captures of real trainings."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from agreement import (
    batches,
    compared,
    evidence,
    longest,
    memory,
    operators,
    phases,
    pipelines,
    said_to_wait,
    steps,
    waiting,
)
from archive import unpack
from copies import copy_tree

from pipeprof.query.engine import Engine
from pipeprof.query.measure import measure
from pipeprof.read.spool.finish import open_run
from pipeprof.report import html, markdown
from pipeprof.report.build import build
from pipeprof.report.sections import sections
from pipeprof.report.summary import three_lines

HERE = Path(__file__).parent
REAL = HERE.parent / "real" / "captures"
LABELLED = (
    "batch_wait", "concat_second", "drawn_20261122_27", "loop_model", "map_before_filter", "map_fresh_epochs", "map_py",
    "map_short", "map_wait", "map_wait_two", "source_poll", "source_processes", "zip_after",
)  # fmt: skip
SHORT = re.compile(r'<span class="short" title="([^"]*)">.*?</span>')  # a long word, cut in its middle
BUSY = ("batch_wait", "map_wait", "map_py", "zip_after")


@pytest.fixture(scope="module", params=[*sorted(path.name for path in REAL.iterdir()), *LABELLED])
def capture(request, tmp_path_factory):
    """(run, content) of a capture."""
    folder = tmp_path_factory.mktemp("agreement") / "run"
    if (REAL / request.param).is_dir():
        copy_tree(REAL / request.param, folder)
    else:
        folder.mkdir()
        unpack(HERE / "captures" / f"{request.param}.tar.xz", folder)
    run = open_run(folder)
    return run, build(run)


def agree(pairs):
    found = list(pairs)
    assert found
    for what, one, other in found:
        assert other == (pytest.approx(one, rel=1e-9) if isinstance(other, float) or isinstance(one, float) else one), (
            what
        )


def test_the_pipeline_table_shows_what_the_diagnosis_goes_by(capture):
    agree(pipelines(capture[1]))


def test_every_reason_is_a_number_of_the_stages(capture):
    agree(evidence(capture[1]))


def test_the_training_waits_for_one_share_of_its_time(capture):
    agree(waiting(capture[1]))


def test_the_same_words_about_waiting_have_the_same_number_everywhere(capture):
    run, content = capture
    agree(said_to_wait(content, three_lines(run)[0]))


def test_the_phases_are_the_step(capture):
    agree(phases(capture[1]))


def test_steps_batches_and_memory_are_those_of_the_tables(capture):
    run, content = capture
    with Engine.open(run) as engine:
        agree([*steps(content, engine), *batches(content, engine), *memory(content, engine), *longest(content)])


def test_shares_of_operators_are_of_their_sum(capture):
    _, content = capture
    if content["ops"]:
        agree(operators(content))


def test_a_comparison_uses_the_numbers_of_the_report(capture):
    run, content = capture
    agree(compared(content, measure(run).values))


def test_markdown_and_html_hold_every_cell_of_every_table(capture):
    _, content = capture
    tables = [block for section in sections(content) for block in section.blocks]
    assert tables
    page, text = html.text(content), markdown.text(content)
    cells = [unescape(SHORT.sub(r"\1", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]
    shown = [cell for block in tables for row in block.rows for cell in row]
    assert Counter(cells) >= Counter(shown)  # the page has what the answer is about in front
    for block in tables:
        for line in markdown.table(block):
            assert line in text


@pytest.mark.parametrize("name", BUSY)
def test_no_operator_works_more_than_its_workers_can(name, tmp_path):
    unpack(HERE / "captures" / f"{name}.tar.xz", tmp_path)
    found = build(open_run(tmp_path))
    (row,) = (row for row in found["pipeline"]["load"] if row["op_id"] == found["diagnosis"]["op_id"])
    assert 0.8 * row["workers"] <= row["work_ns"] / 1e9 * row["loop_rate"] <= row["workers"]
