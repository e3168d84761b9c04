"""The report in its formats: for terminals of any width, for GitHub, for programs."""

import io
import json
from copy import deepcopy

import pytest
from hostile import without_scripts
from rich.console import Console

from pipeprof.record.run import NotMeasured
from pipeprof.report import html, json_text, markdown, section_markdown, terminal
from pipeprof.report.build import build
from pipeprof.report.sections import Block
from pipeprof.report.sections.of_run import sections

KINDS = ["empty", "normal", "ranks", "odd"]


@pytest.fixture(params=KINDS)
def any_content(request, built):
    if request.param not in built:
        built[request.param] = build(request.getfixturevalue(request.param))
    return deepcopy(built[request.param])


def titles(run):
    return [section.title for section in sections(build(run))]


def printed(content, width, **how):
    buffer = io.StringIO()
    terminal._print(Console(file=buffer, width=width, highlight=False, **how), sections(content))
    return buffer.getvalue()


def test_an_empty_run_says_what_was_not_measured_and_nothing_more(empty):
    assert titles(empty) == [f"Run {empty.path}", "Diagnosis", "Not measured"]
    text = terminal.text(build(empty))
    assert "Not measured" in text
    assert "step: no training step was seen" in text


def test_a_normal_run_has_its_sections_the_answer_first(normal):
    assert titles(normal) == [
        f"Run {normal.path}", "Diagnosis", "Steps", "Data pipeline", "Operators (from op windows)", "Memory and CPU",
    ]  # fmt: skip


def test_batches_that_could_not_be_recorded_are_unknown_not_0(unfetched):
    assert "0 batches, waited" in terminal.text(build(unfetched))
    unfetched.manifest.not_measured = [NotMeasured(what="fetch", why="no queue file with batches")]
    row = build(unfetched)["pipeline"]["pipelines"][0]
    assert (row["batches"], row["wait_ns"]) == (None, None)
    assert "batch size 4, batches not recorded" in terminal.text(build(unfetched))


def test_several_ranks_get_a_section_and_the_details_are_of_the_slowest(ranks):
    assert "Ranks and repetitions" in titles(ranks)
    assert "details are of rank 1, the slowest of 2" in terminal.text(build(ranks))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal(any_content, width):
    assert max(len(line) for line in printed(any_content, width).splitlines()) <= width


@pytest.mark.parametrize("width", [80, 200])
def test_no_cell_is_cut_off(any_content, width):
    assert "…" not in printed(any_content, width)


def test_the_plain_text_has_no_control_characters(any_content):
    assert "\x1b" not in terminal.text(any_content)


def test_no_color_is_honoured_on_a_terminal(normal, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    with_colour = printed(build(normal), 100, force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    without = printed(build(normal), 100, force_terminal=True)
    assert "\x1b[" in with_colour
    assert not any(code in without for code in ("\x1b[3", "\x1b[9", ";3"))


def test_names_are_shown_as_they_are_not_as_markup(odd):
    text = printed(build(odd), 300)
    assert "<b>a|b*_[red]\\x</b>" in text
    assert "'[bold]*x*'" in text


def test_the_number_of_steps_beside_a_time_is_of_those_that_count_in_it(normal):
    section = next(section for section in sections(build(normal)) if section.title == "Steps")
    train = next(row for row in section.blocks[0].rows if row[0] == "train")
    assert train[1] in ("7", "7 of 9")


def test_markdown_starts_with_one_heading_and_the_others_are_below_it(any_content):
    lines = markdown.text(any_content).splitlines()
    assert lines[0] == "# pipeprof report"
    assert [line for line in lines if line.startswith("# ")] == lines[:1]


def test_markdown_tables_have_the_same_number_of_cells_in_every_row(any_content):
    unescaped = markdown.text(any_content).replace("\\\\", "").replace("\\|", "")
    tables = [block.splitlines() for block in unescaped.split("\n\n") if block.startswith("| ")]
    for table in tables:
        assert len({line.count("|") for line in table}) == 1, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a|b", "a\\|b"), ("*x*", "\\*x\\*"), ("_a_b", "\\_a_b"), ("<b>", "\\<b\\>"), ("a\\b", "a\\\\b"), ("a\nb", "a b")],
)
def test_markdown_escapes_what_would_be_markup(text, shown):
    assert section_markdown.table(Block(("h",), [[text]]))[2] == f"| {shown} |"


@pytest.mark.parametrize("text", ["[text](https://example.org)", "~~gone~~"])
def test_markdown_makes_no_link_or_strike_of_a_name(text):
    (cell,) = section_markdown.table(Block(("h",), [[text]]))[2:]
    assert text not in cell


def test_markdown_keeps_the_depth_of_a_tree_visible():
    assert section_markdown.table(Block(("h",), [["  MapOp"]]))[2] == "| &nbsp;&nbsp;MapOp |"


def test_markdown_aligns_numbers_to_the_right():
    assert section_markdown.table(Block(("a", "b"), [], frozenset((1,))))[1] == "| --- | ---: |"


def test_json_has_the_schema_version_first_and_the_documented_fields(any_content):
    document = json.loads(json_text.text(any_content))
    assert next(iter(document)) == "schema_version"
    assert {"schema_version", "run", "steps", "pipeline", "ops", "diagnosis", "not_measured"} <= set(document)
    assert document["schema_version"] == 1


def test_json_holds_no_number_that_json_does_not_have(any_content):
    def refuse(name):
        raise AssertionError(name)

    json.loads(json_text.text(any_content), parse_constant=refuse)


def test_the_diagnosis_of_a_source_that_is_full_behind_an_empty_map_is_the_map(normal):
    found = build(normal)["diagnosis"]
    assert (found["verdict"], found["op_type"], found["op_name"]) == ("input_bound", "MapOp", "halve")


def test_top_bounds_the_slowest_steps(normal):
    assert len(build(normal, top=3)["steps"]["slowest"]) == 3


def test_building_a_report_changes_nothing_in_the_run(normal):
    before = {path: path.read_bytes() for path in normal.path.rglob("*") if path.is_file()}
    build(normal)
    assert {path: path.read_bytes() for path in normal.path.rglob("*") if path.is_file()} == before


def test_the_html_page_stands_alone_and_escapes_every_name(odd):
    text = html.text(build(odd))
    assert "http" not in without_scripts(text).replace("http-equiv", "")
    assert "<b>a|b" not in text
    assert "&lt;b&gt;a|b*_[red]\\x&lt;/b&gt;" in text


def test_the_html_page_has_every_section_and_draws_the_step(normal):
    content = build(normal)
    text = html.text(content)
    for section in sections(content):
        assert f"<h2>{section.title}</h2>" in text
    assert text.count("<rect") >= 2
