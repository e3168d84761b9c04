"""The run folder and the repetitions."""

from __future__ import annotations

import sys

import pytest

from pipeprof.collect import session
from pipeprof.collect.launch import Outcome, ProbeOptions, command_path
from pipeprof.collect.session import create_run, default_name, record
from pipeprof.errors import UsageError
from pipeprof.record.run import load

COMMAND = [sys.executable, "train.py"]


def create(path, force=False, command=COMMAND):
    return create_run(path, command, {"ops": "window"}, force=force)


def test_a_new_run_is_there_at_once_and_says_that_it_is_running(tmp_path):
    create(tmp_path / "deep" / "run")
    manifest = load(tmp_path / "deep" / "run").manifest
    assert (manifest.state, manifest.command, manifest.options) == ("running", COMMAND, {"ops": "window"})


def test_the_command_is_kept_without_its_secrets(tmp_path):
    create(tmp_path / "run", command=[*COMMAND, "--token", "hush-hush"])  # no hash holds this by chance
    assert b"hush-hush" not in tmp_path.joinpath("run/run.json").read_bytes()


def test_an_empty_folder_may_be_used(tmp_path):
    create(tmp_path)
    assert load(tmp_path).manifest.state == "running"


def test_a_folder_that_holds_something_is_refused(tmp_path):
    tmp_path.joinpath("data").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match="` exists") as caught:
        create(tmp_path)
    assert "--force" in caught.value.hint


def test_force_replaces_a_run_and_all_that_is_in_it(tmp_path):
    path = tmp_path / "run"
    first = create(path).manifest.run_id
    path.joinpath("step").mkdir()
    create(path, force=True)
    assert load(path).manifest.run_id != first
    assert [entry.name for entry in path.iterdir()] == ["run.json"]


def test_force_replaces_nothing_but_runs(tmp_path):
    tmp_path.joinpath("data").write_text("precious", encoding="utf-8")
    for path in (tmp_path, tmp_path / "data"):
        with pytest.raises(UsageError, match="is not a pipeprof run, so --force does not replace it"):
            create(path, force=True)
    assert tmp_path.joinpath("data").read_text(encoding="utf-8") == "precious"


def test_force_on_a_link_to_a_run_replaces_it_or_says_why_not(tmp_path):
    first = create(tmp_path / "run").manifest.run_id
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "run")
    try:
        create(link, force=True)
    except UsageError:
        assert load(tmp_path / "run").manifest.run_id == first
    else:
        assert load(link).manifest.run_id != first


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    tmp_path.joinpath("file").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot write `.*file/run`: Not a directory"):
        create(tmp_path / "file" / "run")


def test_a_command_that_does_not_exist_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(UsageError, match="command not found: `no-such-command-at-all`"):
        create(tmp_path / "run", command=["no-such-command-at-all"])
    assert not tmp_path.joinpath("run").exists()


def test_a_script_that_is_not_executable_gets_a_hint(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="not an executable file") as caught:
        command_path([str(path)])
    assert f"python {path}" in caught.value.hint


@pytest.fixture
def outcomes(monkeypatch):
    """Repetitions that end as told, without starting anything; returns the spools that were given."""
    spools = []

    def play(*ends):
        remaining = list(ends)

        def run_command(_command, spool, _options, _interval):
            assert spool.is_dir()
            spools.append(spool.name)
            return remaining.pop(0)

        monkeypatch.setattr(session, "run_command", run_command)
        return spools

    return play


GOOD, BAD, STOPPED = Outcome(0, interrupted=False), Outcome(3, interrupted=False), Outcome(0, interrupted=True)


@pytest.mark.parametrize(
    ("ends", "ran"),
    [((GOOD, GOOD, GOOD), 3), ((GOOD, BAD, GOOD), 2), ((STOPPED, GOOD, GOOD), 1)],
    ids=["good", "failed", "interrupted"],
)
def test_repetitions_go_on_until_one_fails_or_is_interrupted(tmp_path, outcomes, ends, ran):
    spools = outcomes(*ends)
    told = []
    found = record(create(tmp_path / "run"), COMMAND, ProbeOptions(), reps=3, host_interval_s=1.0, started=told.append)
    assert found == list(ends[:ran])
    assert spools == [f"rep={number}" for number in range(ran)]
    assert told == list(range(ran))


def test_a_default_name_is_never_one_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        names.append(default_name())
        names[-1].mkdir()
    assert len(set(names)) == 3
