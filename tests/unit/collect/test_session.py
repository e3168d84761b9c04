"""The run folder and the repetitions."""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeprof.collect import session
from pipeprof.collect.launch import Exit, ProbeOptions, command_path
from pipeprof.collect.session import claim_folder, create_run, default_name, record
from pipeprof.errors import UsageError
from pipeprof.record import lock
from pipeprof.record.run import LAUNCHER, load

COMMAND = [sys.executable, "train.py"]


def create(path, force=False, command=COMMAND):
    return create_run(path, command, {"ops": "window"}, force=force)


def precious(path):
    path.write_text("precious", encoding="utf-8")
    return path


def ended(path):
    """The id of a run whose recording was killed: its lock is there, its process is not."""
    run = create(path)
    text = json.loads(path.joinpath(lock.LOCK).read_bytes())
    path.joinpath(lock.LOCK).write_text(json.dumps(text | {"pid": 1 << 30}), encoding="utf-8")
    return run.manifest.run_id


@pytest.mark.parametrize("there", [False, True])
def test_a_new_run_is_there_at_once_and_says_that_it_is_running_without_its_secrets(tmp_path, there):
    path, command = tmp_path / "deep" / "run", [*COMMAND, "--token", "hush-hush"]  # no hash holds this by chance
    if there:
        path.mkdir(parents=True)
    create(path, command=command)
    manifest = load(path).manifest
    assert (manifest.state, manifest.command, manifest.options) == (
        "running",
        [*command[:-1], "***"],
        {"ops": "window"},
    )
    assert b"hush-hush" not in path.joinpath("run.json").read_bytes()


def test_a_folder_that_holds_something_is_refused(tmp_path):
    precious(tmp_path / "data")
    with pytest.raises(UsageError, match="` exists") as caught:
        create(tmp_path)
    assert "--force" in caught.value.hint


def test_force_replaces_a_run_and_all_that_is_in_it(tmp_path):
    path = tmp_path / "run"
    first = ended(path)
    for file in (path / "step/rep=0/rank=0/part-00000.parquet", path / "spool/rep=0/whatever"):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
    create(path, force=True)
    assert load(path).manifest.run_id != first
    assert sorted(entry.name for entry in path.iterdir()) == [lock.LOCK, "run.json"]
    assert lock.is_mine(path, load(path).manifest.run_id)


@pytest.mark.parametrize(
    "name", ["notes.md", "step/notes.md", "step/rep=0/rank=0/part-0.parquet.bak", "mine/empty/", "link"]
)
def test_force_removes_nothing_that_is_no_part_of_the_run(tmp_path, name):
    path = tmp_path / "run"
    first = ended(path)
    beside = path / name
    beside.parent.mkdir(parents=True, exist_ok=True)
    if name == "link":
        beside.symlink_to(tmp_path)
    elif name.endswith("/"):
        beside.mkdir()
    else:
        precious(beside)
    with pytest.raises(UsageError, match="holds what is no part of the run") as caught:
        create(path, force=True)
    assert f"`{name.removesuffix('/empty/')}" in caught.value.message
    assert load(path).manifest.run_id == first
    assert os.path.lexists(beside)


def test_of_many_foreign_files_some_are_named_and_the_others_counted(tmp_path):
    ended(tmp_path / "run")
    for number in range(5):
        precious(tmp_path / "run" / f"{number}.txt")
    with pytest.raises(UsageError, match=r"`0\.txt`, `1\.txt`, `2\.txt` and 2 more"):
        create(tmp_path / "run", force=True)


@pytest.mark.parametrize("force", [False, True])
def test_a_run_that_is_being_recorded_is_never_replaced(tmp_path, monkeypatch, force):
    first = create(tmp_path / "run").manifest.run_id
    with pytest.raises(UsageError, match="is being recorded"):
        create(tmp_path / "run", force=force)
    assert load(tmp_path / "run").manifest.run_id == first
    ended(tmp_path / "left")
    monkeypatch.setattr("pipeprof.record.lock._recorded_alive", lambda _run: {77})
    with pytest.raises(UsageError, match="is being recorded"):
        create(tmp_path / "left", force=True)  # its training goes on without the launcher


@pytest.mark.parametrize("step", [False, True])
def test_a_recording_that_was_killed_before_its_manifest_is_nothing_unless_it_has_more(tmp_path, step):
    """With more it is a run that was half removed, which can be replaced."""
    ended(tmp_path)
    tmp_path.joinpath("run.json").unlink()
    if step:
        tmp_path.joinpath("step").mkdir()
        with pytest.raises(UsageError, match="` exists"):
            create(tmp_path)
    create(tmp_path, force=step)
    assert load(tmp_path).manifest.state == "running"
    assert not tmp_path.joinpath("step").exists()


@pytest.mark.parametrize("force", [False, True])
def test_of_many_that_want_one_folder_one_gets_it(tmp_path, force):
    path = tmp_path / "run"
    if force:
        ended(path)
    ready = threading.Barrier(8)

    def claim(_number):
        ready.wait()
        try:
            return claim_folder(path, force=force)
        except UsageError:
            return None

    with ThreadPoolExecutor(8) as pool:
        (winner,) = filter(None, pool.map(claim, range(8)))
    assert json.loads(path.joinpath(lock.LOCK).read_bytes())["run_id"] == winner


def test_recordings_that_begin_in_one_second_get_a_folder_each(tmp_path, monkeypatch):
    names = iter([tmp_path / "run", tmp_path / "run", tmp_path / "run-2"])
    monkeypatch.setattr(session, "default_name", lambda: next(names))
    assert [create(None).path.name for _ in range(2)] == ["run", "run-2"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data", "precious"),
        ("run.json", "{}"),
        ("run.json", '{"run_id": "x"}'),
        ("run.json", "[]"),
        ("run.json", "half a"),
        ("lock", "12345\n"),
    ],
)
def test_force_replaces_nothing_but_runs(tmp_path, name, text):
    tmp_path.joinpath(name).write_text(text, encoding="utf-8")
    data = precious(tmp_path / "data")
    for old in (tmp_path / name, data):
        os.utime(old, (0, 0))
    for path in (tmp_path, data):
        with pytest.raises(UsageError, match="is not a pipeprof run"):
            create(path, force=True)
    assert data.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("beside", ["spool/rep=0", "step/rep=0", "step/rows.parquet"])
def test_force_replaces_a_run_whose_manifest_is_damaged(tmp_path, beside):
    tmp_path.joinpath("run.json").write_text('{"run_id":', encoding="utf-8")
    tmp_path.joinpath(beside).mkdir(parents=True)
    create(tmp_path, force=True)
    assert load(tmp_path).manifest.state == "running"


def test_force_on_a_link_to_a_run_replaces_it_or_says_why_not(tmp_path):
    first = ended(tmp_path / "run")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "run")
    try:
        create(link, force=True)
    except UsageError:
        assert load(tmp_path / "run").manifest.run_id == first
    else:
        assert load(link).manifest.run_id != first


def test_a_folder_that_cannot_be_made_or_a_command_that_does_not_exist_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write `.*file/run`: Not a directory"):
        create(precious(tmp_path / "file") / "run")
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


GOOD, BAD, STOPPED = Exit(0, interrupted=False), Exit(3, interrupted=False), Exit(0, interrupted=True)


def repeated(run, reps, started=lambda _rep: None, command=COMMAND):
    return record(run, command, ProbeOptions(), reps=reps, host_interval_s=1.0, started=started)


@pytest.mark.parametrize(
    ("ends", "ran", "warned"),
    [
        ((GOOD, GOOD, GOOD), 3, []),
        ((GOOD, BAD, GOOD), 2, []),
        ((STOPPED, GOOD, GOOD), 1, ["only 1 of 3 repetitions were made: interrupted"]),
        ((STOPPED,), 1, []),
    ],
)
def test_repetitions_go_on_until_one_fails_or_is_interrupted_and_fewer_than_asked_are_told(
    tmp_path, outcomes, ends, ran, warned
):
    spools, told = outcomes(*ends), []
    run = create(tmp_path / "run")
    assert repeated(run, len(ends), told.append) == list(ends[:ran])
    assert spools == [f"rep={number}" for number in range(ran)]
    assert told == list(range(ran))
    assert [(one.code, one.message) for one in run.manifest.warnings] == [(LAUNCHER, text) for text in warned]


@pytest.mark.parametrize("why", ["the file `lock` was removed or replaced meanwhile", "cannot write `"])
def test_no_repetition_begins_in_a_folder_that_is_no_longer_ours_or_full(tmp_path, outcomes, why):
    outcomes(GOOD, GOOD)
    run = create(tmp_path / "run")

    def meanwhile(rep):
        if not rep and "lock" in why:
            run.path.joinpath(lock.LOCK).unlink()
        elif not rep:
            precious(run.spool / "rep=1")  # no folder can be made here

    assert repeated(run, 2, meanwhile) == [GOOD]
    (warning,) = run.manifest.warnings
    assert warning.code == LAUNCHER
    assert warning.message.startswith(f"only 1 of 2 repetitions were made: {why}")


def test_a_first_repetition_that_cannot_be_recorded_is_refused_in_words(tmp_path, outcomes):
    outcomes()
    run = create(tmp_path / "run")
    precious(run.spool)
    with pytest.raises(UsageError, match=r"cannot write `.*rep=0`"):
        repeated(run, 1)


def program(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return [str(path)]


@pytest.mark.parametrize("there", [False, True])
def test_a_command_that_cannot_be_started_leaves_no_run(tmp_path, there):
    """The verbs without RUN would take it for the newest."""
    command, path = program(tmp_path / "train.sh", "no interpreter is named\n"), tmp_path / "run"
    if there:
        path.mkdir()
    run = create(path, command=command)
    with pytest.raises(UsageError, match=r"cannot start `.*train.sh`"):
        repeated(run, 2, command=command)
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.sh"]


def test_a_command_that_is_gone_keeps_the_repetitions_before(tmp_path):
    command = program(tmp_path / "once.sh", '#!/bin/sh\nrm "$0"\n')
    run = create(tmp_path / "run", command=command)
    assert repeated(run, 3, command=command) == [GOOD]
    (warning,) = run.manifest.warnings
    assert warning.message == f"only 1 of 3 repetitions were made: command not found: `{command[0]}`"
    assert run.spooled_reps() == [0]


def test_a_default_name_is_never_one_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        names.append(default_name())
        names[-1].mkdir()
    assert len(set(names)) == 3
