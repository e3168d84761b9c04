"""What a run keeps of its machine and command: enough to compare, no secret."""

import json
import os
import platform
import subprocess

from pipeprof.collect import fingerprint
from pipeprof.collect.fingerprint import CI_JOBS, KEPT_VARIABLES, git_state, job, machine
from pipeprof.collect.probe.redact import is_secret


def test_only_variables_of_the_list_are_kept(monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "HOME_OF_SECRETS", "MY_PASSWORD", "OMP_NUM_THREADSX"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("FP_POINT", os.fsdecode(b"Default/MatMul-op\xff"))
    found = machine()
    assert found["environment"]["OMP_NUM_THREADS"] == "3"
    assert found["environment"]["FP_POINT"] == r"Default/MatMul-op\xff"
    assert set(found["environment"]) <= set(KEPT_VARIABLES)
    assert "s3cret" not in json.dumps(found)
    assert json.loads(json.dumps(found)) == found
    assert [name for name in KEPT_VARIABLES if is_secret(name)] == []


def test_a_kept_variable_is_without_what_looks_like_a_secret(monkeypatch):
    monkeypatch.setenv("MS_PROFILER_OPTIONS", '{"path": "https://me:s3cret@host/x", "token": "s3cret"}')
    monkeypatch.setenv("CONTAINER_IMAGE_DIGEST", "https://s3cret@registry.example/image")
    found = machine()
    assert found["environment"]["MS_PROFILER_OPTIONS"] == '{"path": "https://me:***@host/x", "token": "***"}'
    assert "s3cret" not in json.dumps(found)


def test_the_host_is_recognisable_but_not_named(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "alice-laptop.example.org")
    one = machine()
    monkeypatch.setattr(platform, "node", lambda: "bob")
    assert "alice" not in json.dumps(one)
    assert one["host"] != machine()["host"]


def test_a_job_is_this_host_since_it_was_started_or_a_ci_job(monkeypatch):
    for name in (name for names in CI_JOBS for name in names):
        monkeypatch.delenv(name, raising=False)
    assert job() == job()
    assert job().startswith("boot:")
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    first = job()
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    assert first.startswith("ci:")
    assert job() != first


def test_git_tells_the_revision_and_whether_the_tree_was_changed_and_neither_writes_nor_runs_programs(tmp_path):
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
    clean = git_state(tmp_path)
    assert (len(clean["revision"]), clean["dirty"]) == (40, False)
    file.write_text("x = 2\n", encoding="utf-8")
    assert git_state(tmp_path)["dirty"] is True
    assert tmp_path.joinpath(".git/index").read_bytes() == before
    assert not ran.exists()


def test_outside_a_repository_or_without_git_or_where_that_takes_too_long_it_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    slow, path = tmp_path / "git", os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None
    slow.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path), path)))
    monkeypatch.setattr(fingerprint, "_GIT_S", 0.1)
    assert git_state(tmp_path) is None
