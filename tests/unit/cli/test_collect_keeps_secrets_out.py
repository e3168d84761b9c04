"""A recording holds no secret, also not in its spool, and nobody may read it whom the umask leaves out."""

import os
import re
import stat
import subprocess
import sys

import pytest

from pipeprof.record.run import load
from pipeprof.report import html, markdown, terminal
from pipeprof.report.build import build

FAILS = "import sys; raise ValueError('cannot open https://me:' + sys.argv[2] + '@host for customer-42, token ' + sys.argv[2])"
SECRET = "c0ffee-do-not-keep"  # noqa: S105 - what must not be found


def collected(folder, *words, umask=0o022, env=None):
    command = [sys.executable, "-m", "pipeprof", "collect", "-o", str(folder / "run"), "--keep-spool", *words]
    env = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, umask=umask, env=env, cwd=folder)


def everything(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_failure_is_kept_without_secrets_and_what_else_must_not_be_kept(tmp_path):
    done = collected(tmp_path, "--redact", r"customer-\d+", "--", sys.executable, "-c", FAILS, "--token", SECRET)
    assert done.returncode == 1
    run = load(tmp_path / "run")
    assert run.manifest.reps[0].failure.error == "ValueError: cannot open https://me:***@host for ***, token ***"
    kept = everything(tmp_path / "run")
    assert SECRET.encode() not in kept
    assert b"customer-42" not in kept
    assert b"customer" not in (tmp_path / "run" / "run.json").read_bytes(), "the pattern is not kept either"


def test_the_variable_hides_as_the_option_does(tmp_path):
    done = collected(tmp_path, "--", "echo", "customer-42", "customer-7", env={"PIPEPROF_REDACT": r"customer-\d+"})
    assert done.returncode == 0
    assert load(tmp_path / "run").manifest.command == ["echo", "***", "***"]


def test_what_a_command_to_paste_lacks_is_named(tmp_path):
    short = "raise ValueError"  # a longer command is not shown where other lines need its place
    collected(tmp_path, "--", sys.executable, "-c", short, "--token", SECRET, "--url=https://x@host/y")
    content = build(load(tmp_path / "run"))
    page = re.sub("</?span>|<wbr>", "", html.text(content))  # which say where a line is broken
    for text in (terminal.text(content, full=False), markdown.text(content), page):
        assert "# put in what was left out (***): --token, --url=https://***@host/y" in text


@pytest.mark.parametrize(("umask", "forbidden"), [(0o077, 0o077), (0o027, 0o027), (0o022, 0o022)])
def test_files_of_a_run_have_the_modes_that_the_umask_leaves(tmp_path, umask, forbidden):
    done = collected(tmp_path, "--", sys.executable, "-c", "pass", umask=umask)
    assert done.returncode == 0, done.stderr
    found = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}
    assert not {name: oct(mode) for name, mode in modes.items() if mode & forbidden}
    assert modes["run.json"] == 0o666 & ~umask
