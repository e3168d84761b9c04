"""Whole reports of one real capture, as users see them.

The stored texts are contracts. After an intended change, write them anew and review the difference:

    PIPEPROF_UPDATE_GOLDEN=1 python -m pytest tests/golden && git diff tests/golden
"""

import json
import os
from pathlib import Path

import pytest
from copies import copy_tree

from pipeprof.read.spool.finish import open_run
from pipeprof.report import json_text, markdown, terminal
from pipeprof.report.build import build

HERE = Path(__file__).parent
CAPTURES = HERE.parent / "real" / "captures"
UPDATE = os.environ.get("PIPEPROF_UPDATE_GOLDEN") == "1"
DIGITS = 9  # of a float; the last ones depend on the order in which a database adds


@pytest.fixture(scope="module", params=["2.10-graph", "2.10-ranks"])
def report(request, tmp_path_factory):
    """(name, content) of a capture's report, as `pipeprof report run` makes it in the folder of the run."""
    folder = tmp_path_factory.mktemp("golden")
    copy_tree(CAPTURES / request.param, folder / "run")
    before = Path.cwd()
    os.chdir(folder)
    try:
        return request.param, build(open_run("run"))
    finally:
        os.chdir(before)


def compare(name, text):
    path = HERE / name
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: see the docstring of this module"
    assert text == path.read_text(encoding="utf-8")


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_terminal(report):
    name, content = report
    compare(f"{name}.txt", terminal.text(content))


def test_markdown(report):
    name, content = report
    compare(f"{name}.md", markdown.text(content))


def test_json(report):
    name, content = report
    document = rounded(json.loads(json_text.text(content)))
    compare(f"{name}.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
