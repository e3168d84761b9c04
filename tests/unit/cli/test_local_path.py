"""Options and arguments that name a path on this machine: a URL is refused before anything runs."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pipeprof.cli import cli
from pipeprof.errors import UsageError


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
