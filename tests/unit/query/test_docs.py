"""The reference pages say what the schema and the headers say."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import pipeprof
from pipeprof.cli.report import SECTIONS
from pipeprof.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools/make_docs.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "tools"))
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "tools"))


@pytest.mark.parametrize("name", ["tables.md", "queries.md", "cli.md", "rules.md", "decisions/index.md", "way.svg"])
def test_the_committed_page_is_up_to_date(make_docs, name):
    if name == "way.svg":
        pytest.importorskip("grimp")
    path = ROOT / "docs" / name
    assert path.read_text(encoding="utf-8") == make_docs.PAGES[name](), "run `python tools/make_docs.py`"


def test_the_pages_name_every_table_query_and_parameter(make_docs):
    assert "## op_service" in make_docs.tables_page()
    side = [line for line in make_docs.tables_page().splitlines() if line.startswith("| `side` |") and "queue" in line]
    assert side[0] == "| `side` | varchar |  | iterator \\| host_queue \\| data_queue |"  # a bar stays inside its cell
    page = make_docs.queries_page()
    assert "### step_phase\n" in page
    assert "### fleet/machine\n" in page
    assert "| `$slow` | double |" in page
    listed = re.findall(r"^\| `([^`]+)` \|", make_docs.queries_list(), re.MULTILINE)
    assert listed == re.findall(r"^### (.+)$", page, re.MULTILINE)


def test_the_picture_of_the_way_names_every_reader_and_verb_and_what_a_room_imports(make_docs):
    pytest.importorskip("grimp")
    picture = make_docs.picture()
    assert all(verb in picture for verb in VERBS)
    assert all(f"{reader}," in picture for reader in ("ascend", "kineto", "megengine"))
    # the edge asks every room below it
    assert "imports collect, experiment, query, read, record, report, verdict<" in picture


def test_the_command_line_s_page_has_every_verb_once_with_its_options_and_examples(make_docs):
    page = make_docs.cli_page()
    verbs = [line for line in page.splitlines() if line.startswith("## ")]
    assert verbs == [f"## pipeprof {name}" for name in sorted(VERBS) if name != "render"]
    collect = page.partition("## pipeprof collect\n")[2].partition("\n## ")[0]
    assert "pipeprof collect -- python train.py --epochs 3" in collect
    assert "| `-o, --output FOLDER\\|URL` |" in collect
    assert [line for line in page.splitlines() if line.endswith("|  |")] == [], "every option has a meaning"


def test_the_page_on_the_report_names_every_section_and_the_one_on_python_every_public_name():
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert [name for name in SECTIONS if f"`{name}`" not in page] == []
    shown = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").splitlines()
    names = [name for name in pipeprof.__all__ if name != "__version__"]
    assert [name for name in names if not any(line.endswith(f".{name}") for line in shown)] == []


def test_check_tells_a_stale_page(make_docs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_docs, "DOCS", tmp_path)
    monkeypatch.delitem(make_docs.PAGES, "way.svg")  # it takes a package of the extra `dev`
    assert make_docs.main(["--check"]) == 1
    assert "tables.md" in capsys.readouterr().err
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
