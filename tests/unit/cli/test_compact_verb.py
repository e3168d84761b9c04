"""`pipeprof compact`: what every verb says about a run is the same before and after."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.read.spool.finish import open_run
from pipeprof.record.run import load

CAPTURE = Path(__file__).parents[2] / "real" / "captures" / "2.10-ranks"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compact")
    shutil.copytree(CAPTURE, folder / "RUN")
    open_run(folder / "RUN")
    shutil.rmtree(folder / "RUN" / "spool")
    return folder


@pytest.fixture
def folder(captured, tmp_path, monkeypatch):
    """A run of two ranks, as it was recorded, in the current folder."""
    shutil.copytree(captured / "RUN", tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(words):
    done = CliRunner().invoke(cli, words.split(" "), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("words", [
    "report RUN --full", "report RUN --format json", "ops RUN --top 0 --format json", "memory RUN --format json",
    "sql RUN FROM\nstep\nORDER\nBY\nALL --format csv",
])  # fmt: skip
def test_a_report_says_the_same_about_a_compacted_run(folder, words):
    before = ask(words)
    ask("compact RUN")
    assert ask(words) == before
    assert len(load(folder / "RUN").files("step")) == 1


@pytest.mark.parametrize("words", ["timeline RUN -o", "timeline RUN --ranks 1 -o", "stacks RUN --by scope -o"])
def test_a_trace_has_the_same_events_in_the_same_order(folder, words):
    ask(f"{words} before.json")
    ask("compact RUN")
    ask(f"{words} after.json")
    assert folder.joinpath("after.json").read_bytes() == folder.joinpath("before.json").read_bytes()


def test_it_says_how_many_files_became_how_many_and_verify_knows_them(folder):
    files = len(list(folder.joinpath("RUN").rglob("*.parquet")))
    tables = len({path.parts[-4] for path in folder.joinpath("RUN").rglob("*.parquet")})
    done = CliRunner().invoke(cli, ["compact", "RUN"], catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == f"pipeprof: {files} files became {tables}"
    assert f"as it was written: {tables} files" in ask("verify RUN")
