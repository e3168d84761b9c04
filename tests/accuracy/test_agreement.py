"""A report agrees with itself: what it states in two places is the same number, on stored captures of real trainings."""

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
from every import every

from pipeprof.query.engine import Engine
from pipeprof.query.measure import measure
from pipeprof.read.spool.finish import open_run
from pipeprof.report import html, markdown, section_markdown
from pipeprof.report.build import build
from pipeprof.report.sections.of_run import sections
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


def of_tables(run, content):
    with Engine.open(run) as engine:
        return [*steps(content, engine), *batches(content, engine), *memory(content, engine), *longest(content)]


TWICE = {
    "the pipeline table shows what the diagnosis goes by": lambda _, content: pipelines(content),
    "every reason is a number of the stages": lambda _, content: evidence(content),
    "the training waits for one share of its time": lambda _, content: waiting(content),
    "the same words about waiting have the same number": lambda run, content: said_to_wait(
        content, three_lines(run)[0]
    ),
    "the phases are the step": lambda _, content: phases(content),
    "steps, batches and memory are those of the tables": of_tables,
    "a comparison uses the numbers of the report": lambda run, content: compared(content, measure(run).values),
}


@every(TWICE)
def test_what_is_said_in_two_places_is_the_same_number(what, capture):
    agree(TWICE[what](*capture))


def test_shares_of_operators_are_of_their_sum(capture):
    _, content = capture
    if content["ops"]:
        agree(operators(content))


def test_markdown_and_html_hold_every_cell_of_every_table(capture):
    _, content = capture
    tables = [block for section in sections(content) for block in section.blocks]
    assert tables
    page, text = html.text(content), markdown.text(content)
    cells = [unescape(SHORT.sub(r"\1", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]
    shown = [cell for block in tables for row in block.rows for cell in row]
    assert Counter(cells) >= Counter(shown)  # the page has what the answer is about in front
    for block in tables:
        for line in section_markdown.table(block):
            assert line in text


@pytest.mark.parametrize("name", BUSY)
def test_no_operator_works_more_than_its_workers_can(name, tmp_path):
    unpack(HERE / "captures" / f"{name}.tar.xz", tmp_path)
    found = build(open_run(tmp_path))
    (row,) = (row for row in found["pipeline"]["load"] if row["op_id"] == found["diagnosis"]["op_id"])
    assert 0.8 * row["workers"] <= row["work_ns"] / 1e9 * row["loop_rate"] <= row["workers"]
