"""What a run keeps of its machine and command: enough to compare, no secret."""

import json
import os
import platform
import subprocess

import pytest

from pipeprof.collect import fingerprint
from pipeprof.collect.fingerprint import CI_JOBS, KEPT_VARIABLES, git_state, job, machine
from pipeprof.collect.probe.redact import is_secret


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


def test_a_kept_variable_is_without_what_looks_like_a_secret(monkeypatch):
    monkeypatch.setenv("MS_PROFILER_OPTIONS", '{"path": "https://me:s3cret@host/x", "token": "s3cret"}')
    monkeypatch.setenv("CONTAINER_IMAGE_DIGEST", "https://s3cret@registry.example/image")
    found = machine()
    assert found["environment"]["MS_PROFILER_OPTIONS"] == '{"path": "https://me:***@host/x", "token": "***"}'
    assert "s3cret" not in json.dumps(found)


def test_no_variable_of_the_list_is_named_like_a_secret():
    assert [name for name in KEPT_VARIABLES if is_secret(name)] == []


def test_the_host_is_recognisable_but_not_named(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "alice-laptop.example.org")
    one = machine()
    monkeypatch.setattr(platform, "node", lambda: "bob")
    assert "alice" not in json.dumps(one)
    assert one["host"] != machine()["host"]


def test_a_variable_that_is_not_utf8_is_kept_with_escapes(monkeypatch):
    monkeypatch.setenv("FP_POINT", os.fsdecode(b"op-\xff"))
    assert machine()["environment"]["FP_POINT"] == r"op-\xff"


def test_a_fingerprint_is_plain_json():
    found = machine()
    assert json.loads(json.dumps(found)) == found


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
    clean = git_state(repository)
    repository.joinpath("a").write_text("2", encoding="utf-8")
    assert len(clean["revision"]) == 40
    assert (clean["dirty"], git_state(repository)["dirty"]) == (False, True)


def test_outside_a_repository_or_without_git_it_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None


def test_looking_at_a_repository_neither_writes_into_it_nor_runs_its_programs(tmp_path):
    """A look that takes too long is killed: a lock that it holds would stay."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    monitor, file, ran = tmp_path / "monitor", tmp_path / "train.py", tmp_path / "ran"
    monitor.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    monitor.chmod(0o755)
    file.write_text("x = 1\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "train.py"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", str(monitor)], check=True)
    os.utime(file, (1, 1))  # the index does not know it like that
    before = tmp_path.joinpath(".git/index").read_bytes()
    assert git_state(tmp_path)["dirty"] is False
    assert tmp_path.joinpath(".git/index").read_bytes() == before
    assert not ran.exists()


def test_a_repository_that_takes_too_long_is_not_waited_for(tmp_path, monkeypatch):
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(fingerprint, "_GIT_S", 0.1)
    assert git_state(tmp_path) is None
