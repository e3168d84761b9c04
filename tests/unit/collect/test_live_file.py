"""The second process that keeps what `pipeprof top` shows in a file."""

import shutil
import sys

from pipeprof.collect.live import watched


def test_a_run_that_is_gone_at_the_end_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    run = tmp_path / "run"
    run.mkdir()
    with watched(run, tmp_path / "now.txt"):
        run.rmdir()
