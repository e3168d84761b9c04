"""What a run keeps of its machine and command: enough to compare, no secret."""

from __future__ import annotations

import json
import platform
import subprocess

import pytest

from pipeprof.collect import fingerprint
from pipeprof.collect.fingerprint import CI_JOBS, KEPT_VARIABLES, git_state, job, machine, without_secrets


def test_only_variables_of_the_list_are_kept(monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "HOME_OF_SECRETS", "MY_PASSWORD", "OMP_NUM_THREADSX"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("FP_POINT", "Default/MatMul-op0")
    found = machine()
    assert found["environment"]["OMP_NUM_THREADS"] == "3"
    assert found["environment"]["FP_POINT"] == "Default/MatMul-op0"
    assert set(found["environment"]) <= set(KEPT_VARIABLES)
    assert "s3cret" not in json.dumps(found)


def test_no_variable_of_the_list_is_named_like_a_secret():
    assert [name for name in KEPT_VARIABLES if fingerprint._SECRET.search(name)] == []


def test_the_host_is_recognisable_but_not_named(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "alice-laptop.example.org")
    one = machine()
    monkeypatch.setattr(platform, "node", lambda: "bob")
    assert "alice" not in json.dumps(one)
    assert one["host"] != machine()["host"]


def test_a_fingerprint_is_plain_json():
    found = machine()
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["python", "t.py", "--token", "abc"], ["python", "t.py", "--token", "***"]),
        (["python", "t.py", "--hf_token=abc"], ["python", "t.py", "--hf_token=***"]),
        (["python", "t.py", "--api-key", "abc", "--lr", "0.1"], ["python", "t.py", "--api-key", "***", "--lr", "0.1"]),
        (["env", "MY_PASSWORD=abc", "python"], ["env", "MY_PASSWORD=***", "python"]),
        (["python", "t.py", "--secret-file", "--lr", "1"], ["python", "t.py", "--secret-file", "--lr", "1"]),
        (["t", "mysql://me:abc@host/db"], ["t", "mysql://me:***@host/db"]),
        (["t", "--url=https://me:abc@host/x?y=1"], ["t", "--url=https://me:***@host/x?y=1"]),
        (
            ["python", "train.py", "--lr=0.1", "--name=a b", "x=y"],
            ["python", "train.py", "--lr=0.1", "--name=a b", "x=y"],
        ),
        ([], []),
    ],
)
def test_values_that_look_like_secrets_are_hidden_and_nothing_else(command, shown):
    assert without_secrets(command) == shown


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "python t.py --token s3cret"],
        ["bash", "-c", "python t.py --api-key=s3cret --lr 1"],
        ["bash", "-c", "cd x; export HF_TOKEN=s3cret; python t.py"],
        ["python", "t.py", "--header", "Authorization: Bearer s3cret"],
    ],
)
def test_a_secret_inside_a_word_is_hidden_too(command):
    assert "s3cret" not in " ".join(without_secrets(command))


@pytest.fixture
def no_ci(monkeypatch):
    for name in (name for names in CI_JOBS for name in names):
        monkeypatch.delenv(name, raising=False)


def test_a_job_is_this_host_since_it_was_started(no_ci):
    assert job() == job()
    assert job().startswith("boot:")


def test_a_ci_job_is_its_own_job(no_ci, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    first = job()
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    assert first.startswith("ci:")
    assert job() != first


@pytest.fixture
def repository(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init", "-q")
    tmp_path.joinpath("a").write_text("1", encoding="utf-8")
    git("add", "a")
    git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")
    return tmp_path


def test_git_tells_the_revision_and_whether_the_tree_was_changed(repository):
    clean = git_state(str(repository))
    repository.joinpath("a").write_text("2", encoding="utf-8")
    assert len(clean["revision"]) == 40
    assert (clean["dirty"], git_state(str(repository))["dirty"]) == (False, True)


def test_outside_a_repository_or_without_git_it_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(str(tmp_path)) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(str(tmp_path)) is None
