"""The report, and the rows of any query, in their formats: for terminals of any width, for GitHub, for programs."""

import io
import json
from copy import deepcopy
from pathlib import Path

import pytest
from hostile import without_scripts
from rich.console import Console

import pipeprof
from pipeprof.errors import QueryError, UsageError
from pipeprof.query.engine import Engine
from pipeprof.record.run import NotMeasured
from pipeprof.report import html, json_text, markdown, section_markdown, terminal
from pipeprof.report.build import build
from pipeprof.report.output import check_free
from pipeprof.report.rows import show_rows
from pipeprof.report.sections import Block
from pipeprof.report.sections.of_run import sections


@pytest.fixture(params=["empty", "normal", "ranks", "odd"])
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
    content = build(normal)
    shown = sections(content)
    assert [section.title for section in shown] == [
        f"Run {normal.path}", "Diagnosis", "Steps", "Data pipeline", "Operators (from op windows)", "Memory and CPU",
    ]  # fmt: skip
    found = content["diagnosis"]  # a source that is full behind an empty map
    assert (found["verdict"], found["op_type"], found["op_name"]) == ("input_bound", "MapOp", "halve")
    assert next(row for row in shown[2].blocks[0].rows if row[0] == "train")[1] in ("7", "7 of 9")
    text = html.text(content)
    assert [section.title for section in shown if f"<h2>{section.title}</h2>" not in text] == []
    assert text.count("<rect") >= 2


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
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_cut_off(any_content, width):
    text = printed(any_content, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
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
    content = build(odd)
    text, page = printed(content, 300), html.text(content)
    assert "<b>a|b*_[red]\\x</b>" in text
    assert "'[bold]*x*'" in text
    assert "http" not in without_scripts(page).replace("http-equiv", "")
    assert "<b>a|b" not in page
    assert "&lt;b&gt;a|b*_[red]\\x&lt;/b&gt;" in page


def test_markdown_has_one_heading_at_its_start_and_as_many_cells_in_every_row_of_a_table(any_content):
    text = markdown.text(any_content)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# ")] == lines[:1] == ["# pipeprof report"]
    unescaped = text.replace("\\\\", "").replace("\\|", "")
    for table in (block.splitlines() for block in unescaped.split("\n\n") if block.startswith("| ")):
        assert len({line.count("|") for line in table}) == 1, table


@pytest.mark.parametrize(("text", "shown"), [
    ("a|b", "a\\|b"), ("*x*", "\\*x\\*"), ("_a_b", "\\_a_b"), ("<b>", "\\<b\\>"), ("a\\b", "a\\\\b"), ("a\nb", "a b"),
    ("  MapOp", "&nbsp;&nbsp;MapOp"),  # the depth of a tree stays visible
])  # fmt: skip
def test_markdown_escapes_what_would_be_markup(text, shown):
    assert section_markdown.table(Block(("h",), [[text]]))[2] == f"| {shown} |"


@pytest.mark.parametrize("text", ["[text](https://example.org)", "~~gone~~"])
def test_markdown_makes_no_link_or_strike_of_a_name_and_aligns_numbers_to_the_right(text):
    (cell,) = section_markdown.table(Block(("h",), [[text]]))[2:]
    assert text not in cell
    assert section_markdown.table(Block(("a", "b"), [], frozenset((1,))))[1] == "| --- | ---: |"


def test_json_has_the_schema_version_first_the_documented_fields_and_its_own_numbers_only(any_content):
    def refuse(name):
        raise AssertionError(name)

    document = json.loads(json_text.text(any_content), parse_constant=refuse)
    assert next(iter(document.items())) == ("schema_version", 1)
    assert {"run", "steps", "pipeline", "ops", "diagnosis", "not_measured"} <= set(document)


def test_building_a_report_changes_nothing_in_the_run(normal):
    def stored():
        return {path: path.read_bytes() for path in normal.path.rglob("*") if path.is_file()}

    before = stored()
    assert len(build(normal, top=3)["steps"]["slowest"]) == 3
    assert stored() == before


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/null", "/proc/self/fd/1"])
def test_a_device_is_no_place_for_a_file_that_is_renamed(name):
    """`/dev/stdout` is a link to what the shell made stdout, such as a file: it would be replaced for everybody."""
    with pytest.raises(UsageError, match="not a file"):
        check_free(Path(name), force=True)


def test_a_new_name_is_free_and_one_that_is_there_needs_force(tmp_path):
    check_free(tmp_path / "new", force=False)
    (tmp_path / "there").touch()
    check_free(tmp_path / "there", force=True)
    with pytest.raises(UsageError, match="exists"):
        check_free(tmp_path / "there", force=False)


FAR = "SELECT 1, DATE 'infinity' AS never, TIMESTAMP '-infinity', DATE '290000-01-01' AS late, DATE '2026-01-02' AS day"
ODD = [
    ("TIME '24:00:00'", "24:00:00"), ("[TIME '24:00:00']", "['24:00:00']"),
    ("{'a': TIME '24:00:00'}", "{'a': '24:00:00'}"), ("[DATE 'infinity']", "[infinity]"),
    ("MAP {'a': DATE '-infinity'}", "{a=-infinity}"),
    ("TIMESTAMPTZ 'infinity'", "infinity"),
]  # fmt: skip


@pytest.fixture
def shown(make_run, capsys):
    """`shown(sql, form)`: what is printed of its rows."""

    def printed(sql, form):
        with Engine.open(make_run({"step": []}), lazily=True) as engine:
            show_rows(engine.sql(sql), form)
        return capsys.readouterr().out

    return printed


def test_times_that_python_has_no_years_for_are_shown_as_duckdb_shows_them(shown):
    assert shown(FAR, "csv").splitlines()[1] == "1,infinity,-infinity,290000-01-01,2026-01-02"
    assert json.loads(shown(FAR, "json"))[0]["never"] == "infinity"
    assert "-infinity" in shown(FAR, "terminal")


@pytest.mark.parametrize(("value", "text"), ODD)
def test_a_time_that_python_has_not_is_shown_as_duckdb_shows_it(shown, value, text):
    found = json.loads(shown(f"SELECT {value} AS t", "json"))[0]["t"]
    assert found.replace("'", "") == text.replace("'", "")


@pytest.mark.parametrize("value", [value for value, _ in ODD] + ["DATE '290000-01-01'", "TIMESTAMP_NS 'infinity'"])
def test_in_python_it_is_an_error_that_names_the_column(make_run, value):
    """pandas would end with an error of its own, or show another time."""
    run = make_run({"step": []}, state="complete")
    with pipeprof.open(run.path) as opened, pytest.raises(QueryError, match="the column `t` holds a time") as caught:
        opened.sql(f"SELECT {value} AS t")
    assert "VARCHAR" in caught.value.hint


def test_times_that_python_has_are_handed_over(make_run):
    with pipeprof.open(make_run({"step": []}, state="complete").path) as opened:
        row = opened.sql("SELECT TIME '23:59:59' AS t, DATE '9999-12-31' AS d, [TIMESTAMP '2026-01-02'] AS l").iloc[0]
    assert (str(row["t"]), str(row["d"])) == ("23:59:59", "9999-12-31")
