"""Only the commands that the base revision names: all their words, and no other program of the same name."""

import sys
from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.base_revision_policy import check_command
from pipeprof.verdict import Policy

TRAIN = ("train.py", "--epochs", "1")
HERE = str(Path(sys.executable).parent)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """`program(folder)`: a `python` in that folder, which is the working directory's."""
    monkeypatch.chdir(tmp_path)

    def make(folder):
        path = tmp_path / folder / "python"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    return make


def check(*command, allowed="python train.py --epochs 1"):
    check_command(Policy(commands=(allowed,)), command)


def refused(message, *command, allowed="python train.py --epochs 1"):
    with pytest.raises(UsageError, match=message) as raised:
        check(*command, allowed=allowed)
    return raised.value.hint


def test_any_program_where_none_is_named_else_that_of_this_environment_and_of_the_system(monkeypatch):
    check_command(Policy(), ("evil/python", "x"))
    check_command(Policy(), ())
    monkeypatch.setenv("PATH", HERE)
    check("python", *TRAIN)
    check(f"{HERE}/python", *TRAIN)
    check("/bin/sh", "run.sh", allowed="sh run.sh")


@pytest.mark.parametrize("folder", ["evil", "tools", ".venv/bin"])
def test_another_program_of_that_name_is_refused_by_its_path(program, folder):
    path = program(folder)
    for word in (str(path), f"{folder}/python", f"./{folder}/python"):
        hint = refused(f"^`{word}` of the command is `{word}`, which is neither of", word, *TRAIN)
        assert "name its path in `commands`" in hint


@pytest.mark.parametrize("path", ["{}/evil:" + HERE, "evil:" + HERE, ":" + HERE])
def test_a_path_that_puts_another_program_first_is_refused(program, monkeypatch, path):
    evil = program("evil")
    monkeypatch.chdir(evil.parent if path.startswith(":") else evil.parents[1])
    monkeypatch.setenv("PATH", path.format(evil.parents[1]))
    refused("^`python` of the command is `.*python`, which is neither of", "python", *TRAIN)


@pytest.mark.parametrize("folders", ["later:{}", "{}:later", ":{}"])
def test_a_relative_folder_where_no_program_is_yet_may_have_one_in_the_worktree(tmp_path, monkeypatch, folders):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", folders.format(HERE))
    if folders.startswith("{}"):
        check("python", *TRAIN)
    else:
        refused("relative folder", "python", *TRAIN)
    refused("relative folder", "later/python", *TRAIN)
    refused("relative folder", "nowhere", *TRAIN, allowed="nowhere train.py --epochs 1")


def test_variables_of_one_side_are_words_of_its_command():
    command = ("python", *TRAIN)
    with pytest.raises(UsageError, match=r"`STEPS=1 python train\.py"):
        check_command(Policy(commands=("python train.py --epochs 1",)), command, ("STEPS=1",))
    allowed = Policy(commands=("THREADS=2 python train.py --epochs 1",))
    check_command(allowed, command, ("THREADS=2",))
    for env in ((), ("THREADS=1",), ("THREADS=2", "STEPS=1")):
        with pytest.raises(UsageError, match="is not among"):
            check_command(allowed, command, env)


def test_a_path_that_the_base_names_is_taken_to_the_letter(program):
    path = program("tools")
    check("tools/python", *TRAIN, allowed="tools/python train.py --epochs 1")
    check(str(path), *TRAIN, allowed=f"{path} train.py --epochs 1")
    for other in (str(path), "./tools/python", "evil/../tools/python", "python"):
        refused("is not among", other, *TRAIN, allowed="tools/python train.py --epochs 1")


@pytest.mark.parametrize(
    "command",
    [
        (), ("python", "train.py"), ("python", *TRAIN, "x"), ("python", "-O", *TRAIN), ("env", "python", *TRAIN),
        ("python", "train.py", "--epochs 1"), ("python", "./train.py", "--epochs", "1"), ("python3", *TRAIN),
        ("python train.py", "--epochs", "1"), ("python", "train.py", "--epochs", "\u0661"),
        ("python", "tr\u0430in.py", "--epochs", "1"),
    ],
)  # fmt: skip
def test_every_word_has_to_be_the_same(command):
    refused("is not among the `commands`", *command)
