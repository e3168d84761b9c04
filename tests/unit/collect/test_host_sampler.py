"""What one look at the machine and the command's processes holds."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from pipeprof.collect.host import HostSampler, shown_command


@pytest.fixture
def look(tmp_path):
    """`look(pid)`: a function that takes a sample and returns it."""
    samplers = []

    def begin(pid):
        sampler = HostSampler(pid, tmp_path / "host.jsonl")
        samplers.append(sampler)

        def sample():
            sampler.sample()
            return json.loads((tmp_path / "host.jsonl").read_text(encoding="utf-8").splitlines()[-1])

        return sample

    yield begin
    for sampler in samplers:
        sampler.__exit__(None, None, None)


def test_a_command_is_one_short_line_without_secrets():
    assert shown_command(["train", "--token", "abc", "a\nb\x1b[0m\tc"]) == "train --token *** a b\\x1b[0m c"
    assert shown_command(["x" * 1000]) == "x" * 297 + "..."


def test_the_command_of_a_process_is_told_once(look):
    command = [sys.executable, "-c", "print(flush=True), input()", "--flag"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()  # until then the kernel may not have its command yet
        sample = look(child.pid)
        first, second = sample()["procs"][0], sample()["procs"][0]
        child.communicate(b"\n")
    assert "--flag" in first["command"]
    assert "command" not in second
    assert second["born"] == first["born"]


def test_children_that_were_waited_for_stay_in_the_sum(look):
    sample = look(os.getpid())
    before = next(process for process in sample()["procs"] if process["pid"] == os.getpid())["ended"]
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    after = next(process for process in sample()["procs"] if process["pid"] == os.getpid())["ended"]
    assert after - before > 0.2  # the kernel counts in ticks, user and system time each


def test_threads_and_limits_are_of_processes_with_a_folder_in_the_spool(look, tmp_path):
    sample = look(os.getpid())
    assert sample()["inside"] == {}
    (tmp_path / f"proc-{os.getpid()}-1").mkdir()
    found = sample()
    assert os.getpid() in [name[0] for name in found["inside"][str(os.getpid())]["names"]]
    assert found["room"][str(os.getpid())]["cpus"] == len(os.sched_getaffinity(0))


def test_where_other_processes_are_hidden_the_command_itself_is_sampled(look, monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda _folder: [str(os.getpid())])
    assert [process["pid"] for process in look(os.getpid())()["procs"]] == [os.getpid()]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), ValueError("odd"), psutil.Error()])
def test_a_sample_that_fails_is_left_out_and_the_next_one_is_not(tmp_path, monkeypatch, error):
    def fails():
        raise error

    with HostSampler(os.getpid(), tmp_path / "host.jsonl") as sampler:
        with monkeypatch.context() as broken:
            broken.setattr(psutil, "virtual_memory", fails)
            sampler.sample()
        sampler.sample()
    assert sampler.problem is None
    assert len((tmp_path / "host.jsonl").read_text(encoding="utf-8").splitlines()) == 1


def test_an_idle_time_is_of_the_cores_that_may_be_used(look, tmp_path):
    (tmp_path / f"proc-{os.getpid()}-1").mkdir()
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        found = look(os.getpid())()
    finally:
        os.sched_setaffinity(0, allowed)
    room = found["room"][str(os.getpid())]
    assert room["cpus"] == 1
    assert room["idle"] <= found["idle"] + 1
