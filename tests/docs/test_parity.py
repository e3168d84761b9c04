"""tests/docs/parity.md: the command of every row runs, and the test that it names is there."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

import parity_inputs
import pytest
from blocks import TRAINS
from click.testing import CliRunner
from play import ROOT, parse

from pipeprof.cli import cli

pytestmark = pytest.mark.slow  # runs the commands of the parity page

PAGE = ROOT / "tests" / "docs" / "parity.md"
VIEWS = ROOT / "docs" / "howto" / "from-mindinsight.md"
KEPT = re.compile(r"yes|(?:partly|no): \S.*")


class Row(NamedTuple):
    """A promise, the command that shows it, the test that holds it, and whether it is kept."""

    promise: str
    command: str
    test: str
    kept: str


def sections():
    """The rows of each table of the page, by its heading; heads left out."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ")] = here = []
        elif line.startswith("| ") and not line.startswith(("| ---", "| promise")):
            promise, shown, held, kept = (cell.strip() for cell in line.strip("|").split(" | "))
            here.append(Row(promise, shown.strip("`"), held.strip("`"), kept))
    return found


def rows():
    return [row for section in sections().values() for row in section]


def names_of(path):
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_every_row_is_kept_or_says_why_not():
    assert len(rows()) >= 127
    assert [row for row in rows() if not KEPT.fullmatch(row.kept)] == []
    assert len({row.promise for row in rows()}) == len(rows())


def test_every_test_that_is_named_is_there():
    missing = []
    for row in rows():
        file, _, name = row.test.partition("::")
        path = ROOT / "tests" / file
        if not path.is_file() or name not in names_of(path):
            missing.append(row.test)
    assert missing == []


def test_a_promise_is_held_without_anything_beside_the_checkout(tmp_path):
    """Tests against other programs read outside data too, where it is; none of the named ones is skipped without it."""
    named = sorted({f"tests/{row.test}" for row in rows() if row.test.startswith("oracles/")})
    assert len(named) > 20
    found = skips(named, PIPEPROF_OUTSIDE=str(tmp_path / "absent"))
    assert found == []


def skips(tests, **variables):
    """What pytest says of those that would be skipped; none is run."""
    words = [sys.executable, "-m", "pytest", "--setup-plan", "-q", "-rs", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, **variables}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]


@pytest.mark.parametrize("section", sections())
def test_every_command_runs(tmp_path, monkeypatch, section):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(parity_inputs.make(tmp_path / "parity"))
    commands = dict.fromkeys(row.command for row in sections()[section])
    failures = [(command, said) for command in commands if (said := failure(command))]
    assert failures == []


def test_a_command_that_does_not_run_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no such run" in failure("pipeprof ops absent")
    assert "No such option" in failure("pipeprof collect --absent -- python train.py")
    assert "No such file" in failure("python examples/absent.py")
    assert failure("make absent")


def test_every_part_of_the_page_that_has_a_view_of_a_dashboard_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(parity_inputs.make(tmp_path / "parity"))
    views = VIEWS.read_text(encoding="utf-8").partition("from its list:")[2]
    pages = "".join(CliRunner().invoke(cli, ["report", run, "--format", "html"]).stdout for run in ("slow", "sink"))
    named = re.findall('"([^"]+)"', views)
    assert len(named) >= 7
    shown = set(re.findall("<h[23]>([^<]+)</h[23]>", pages)) | set(re.findall('"title": ?"([^"]+)"', pages))
    assert [name for name in named if not any(title.startswith(name) for title in shown)] == []


def failure(command):
    """What is wrong with a command; empty when it runs, or can be run where it starts a training."""
    program, *words = shlex.split(command)
    try:
        if program == "make":
            subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, capture_output=True)
        elif program == "python":
            compile((ROOT / words[0]).read_text(encoding="utf-8"), words[0], "exec")
        elif words[0] in TRAINS and "--help" not in words and "--table" not in words:
            parse(words)
        else:
            result = CliRunner().invoke(cli, words)
            return "" if result.exit_code in (0, *allowed(words)) else f"{result.exception!r} {result.output[-400:]}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the row fails with it
        return f"{error!r} {getattr(error, 'message', '')}"
    return ""


def allowed(words):
    """Exit codes that are an answer: a comparison that finds a regression, or cannot tell."""
    return (1, 4) if words[0] == "compare" else ()
