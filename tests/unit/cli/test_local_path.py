"""Options and arguments that name a path on this machine: a URL is refused before anything runs."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.errors import PipeprofError, UsageError


@pytest.mark.parametrize("words", [
    ("serve", "URL"), ("timeline", "RUN", "-o", "URL"), ("report", "RUN", "-o", "URL"), ("import", "URL"),
])  # fmt: skip
def test_a_url_is_no_path_on_this_machine(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "s3://key:word@bucket/runs"
    done = CliRunner().invoke(cli, [url if word == "URL" else word for word in words])
    assert isinstance(done.exception, UsageError)
    assert "`s3://bucket/runs` is a URL: expected a path on this machine" in done.exception.message
    assert "pipeprof push RUN URL" in done.exception.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [
    ("report", ""), ("sql", ""), ("sql", "", "FROM step"), ("runs", ""), ("fleet", ""), ("ops", ""), ("serve", ""),
    ("push", "", "file:///tmp/x"), ("report", "RUN", "-o", ""), ("history", ""), ("compare", "", "RUN"),
    ("baseline", "write", "", "--workload", "x"),
])  # fmt: skip
def test_an_empty_path_is_not_the_current_folder(words, make_run, monkeypatch):
    """As of a variable of the shell that is not set: `pipeprof report "$RUN"`."""
    run = make_run({"step": []})
    run.manifest.state = "complete"
    run.save()
    monkeypatch.chdir(run.path)
    before = sorted(run.path.iterdir())
    done = CliRunner().invoke(cli, [str(run.path) if word == "RUN" else word for word in words])
    assert isinstance(done.exception, PipeprofError)
    assert done.exception.message in ("a path is empty", "no such run, baseline or file: ``")
    assert sorted(run.path.iterdir()) == before
