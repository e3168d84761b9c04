"""The reference pages say what the schema and the headers say."""

import importlib.util
from pathlib import Path

import pytest

from pipeprof.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools/make_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["tables.md", "queries.md", "cli.md", "rules.md", "decisions/index.md"])
def test_the_committed_page_is_up_to_date(make_docs, name):
    path = ROOT / "docs" / name
    assert path.read_text(encoding="utf-8") == make_docs.pages()[path], "run `python tools/make_docs.py`"


def test_the_pages_name_every_table_query_and_parameter(make_docs):
    assert "## op_service" in make_docs.tables_page()
    page = make_docs.queries_page()
    assert "### step_phase\n" in page
    assert "### diagnose/queue_rule\n" in page
    assert "| `$skip_share` | double |" in page


def test_a_bar_in_a_description_stays_inside_its_cell(make_docs):
    row = next(
        line for line in make_docs.tables_page().splitlines() if line.startswith("| `side` |") and "queue" in line
    )
    assert row == "| `side` | varchar |  | iterator \\| host_queue \\| data_queue |"


def test_the_command_line_s_page_has_every_verb_once_with_its_options_and_examples(make_docs):
    page = make_docs.cli_page()
    verbs = [line for line in page.splitlines() if line.startswith("## ")]
    assert verbs == [f"## pipeprof {name}" for name in sorted(VERBS) if name != "render"]
    collect = page.partition("## pipeprof collect\n")[2].partition("\n## ")[0]
    assert "pipeprof collect -- python train.py --epochs 3" in collect
    assert "| `-o, --output PATH` |" in collect


def test_check_tells_a_stale_page(make_docs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_docs, "DOCS", tmp_path)
    assert make_docs.main(["--check"]) == 1
    assert "tables.md" in capsys.readouterr().err
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
