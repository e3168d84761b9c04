"""Arguments, folders, variables and names that are bytes and no text: the training runs, and nothing ends in a traceback."""

import json
import os
import subprocess

import pytest

from pipeprof.record import store
from pipeprof.record.run import load

ODD = os.fsdecode(b"gr\xfcn\xff")
SHOWN = "gr\\xfcn\\xff"
VERBS = [
    ["report"], ["report", "--format", "json"], ["report", "--format", "html"], ["report", "--format", "markdown"],
    ["ops", "--format", "json"], ["ops", "--format", "csv"], ["memory"], ["memory", "--format", "json"], ["verify"],
    ["verify", "--format", "json"], ["status"], ["status", "--format", "json"], ["timeline", "-o", "trace.json"],
]  # fmt: skip


@pytest.fixture(scope="module")
def odd(pipeprof_in):
    """A run whose name, command, folder and variables are bytes and no text, recorded from an odd folder, too."""
    inside = pipeprof_in("odd")
    folder = inside.folder / ODD
    folder.mkdir()
    env = inside.environment(OMP_PROC_BIND=ODD, XDG_CACHE_HOME=str(folder / "cache"))
    code = f"import sys; sys.argv[1:] = ['6']; exec(open({inside.script('marks.py')[-1]!r}).read())"
    command = [inside.python, "-c", code, ODD, "--name=" + ODD]
    recording = inside.collect(
        command, "--fp-point", ODD, out=folder / ODD, env=env, cwd=folder, stdin=subprocess.DEVNULL
    )
    recording.inside = inside
    return recording


def test_the_training_runs_and_is_recorded(odd):
    assert odd.done.stdout.endswith("last words\n")
    assert "Traceback" not in odd.done.stderr
    assert odd.done.returncode == 0
    manifest = load(odd.path).manifest
    assert manifest.state == "complete"
    assert manifest.tables["step"] == store.read(odd.run, "step").num_rows == 6


def test_what_is_no_text_is_stored_with_escapes(odd):
    content = json.loads(odd.path.joinpath("run.json").read_bytes())
    assert content["command"][-2:] == [SHOWN, f"--name={SHOWN}"]
    assert content["workdir"].endswith(f"/{SHOWN}")
    assert content["fingerprint"]["environment"]["OMP_PROC_BIND"] == SHOWN
    assert content["options"]["fp_point"] == SHOWN


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_reads_it(odd, words):
    done = odd.inside.run(words[0], odd.path, *words[1:], cwd=odd.path.parent)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_its_tables_can_be_asked_and_it_is_listed(odd):
    done = odd.inside.run("sql", odd.path, "SELECT count(*) AS steps FROM step", "--format", "json")
    assert json.loads(done.stdout) == [{"steps": 6}], done.stderr
    done = odd.inside.run("runs", odd.path.parent, "--format", "json")
    (row,) = json.loads(done.stdout)["runs"]
    assert row["path"].endswith(SHOWN)
    assert row["state"] == "complete"


def refused(done):
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"]
    assert len(lines[0]) < 500
    return lines[0]


@pytest.mark.parametrize("name", ["x" * 300, "/".join(["y" * 200] * 19)], ids=["one name", "the whole path"])
def test_a_name_that_is_too_long_is_refused_in_one_line(pipeprof, name):
    assert "too long" in refused(pipeprof.collect(["true"], out=pipeprof.folder / name).done)
    assert not any(pipeprof.folder.rglob("run.json"))


@pytest.mark.parametrize("words", [["report"], ["verify"], ["runs"], ["import"], ["compare", "other"]], ids=" ".join)
def test_a_name_that_is_too_long_is_refused_by_every_verb(pipeprof, words):
    done = pipeprof.run(*words, "x" * 300)
    assert "Traceback" not in done.stderr
    assert done.returncode in (2, 3)
    assert done.stderr.splitlines()[0].startswith("error: ")


def test_a_command_that_is_too_long_is_not_found(pipeprof):
    assert "command not found" in refused(pipeprof.collect(["./" + "x" * 5000]).done)
