"""What one look at the machine and the command's processes holds: of these, of their threads, and of their limits.

The kernel's files are written as it does, in a folder of the test.
"""

import json
import os
import subprocess
import sys
import threading

import psutil
import pytest

from pipeprof.collect.cgroup import cpu_group, kills_in, memory_events
from pipeprof.collect.host import Descendants, HostSampler, ThreadReader, scheduled, shown_command

ME = os.getpid()
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@pytest.fixture
def look(tmp_path):
    """`look(pid)`: a function that takes a sample and returns it."""
    samplers = []

    def begin(pid=ME):
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
    assert [len(shown_command(["x" * length])) for length in (300, 301)] == [300, 300]
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
    sample = look()

    def ended():
        return next(process["ended"] for process in sample()["procs"] if process["pid"] == ME)

    before = ended()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert ended() - before > 0.2  # the kernel counts in ticks, user and system time each


def test_threads_and_limits_are_of_processes_with_a_folder_in_the_spool(look, tmp_path):
    sample = look()
    assert sample()["inside"] == {}
    (tmp_path / f"proc-{ME}-1").mkdir()
    allowed = os.sched_getaffinity(0)
    found = sample()
    assert ME in [name[0] for name in found["inside"][str(ME)]["names"]]
    assert found["room"][str(ME)]["cpus"] == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        found = sample()
    finally:
        os.sched_setaffinity(0, allowed)
    room = found["room"][str(ME)]
    assert room["cpus"] == 1
    assert room["idle"] <= found["idle"] + 1  # of the cores that may be used


def test_where_other_processes_are_hidden_the_command_itself_is_sampled(look, monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda _folder: [str(ME)])
    assert [process["pid"] for process in look()()["procs"]] == [ME]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), ValueError("odd"), psutil.Error()])
def test_a_sample_that_fails_is_left_out_and_the_next_one_is_not(tmp_path, monkeypatch, error):
    def fails():
        raise error

    with HostSampler(ME, tmp_path / "host.jsonl") as sampler:
        with monkeypatch.context() as broken:
            broken.setattr(psutil, "virtual_memory", fails)
            sampler.sample()
        sampler.sample()
    assert sampler.problem is None
    assert len((tmp_path / "host.jsonl").read_text(encoding="utf-8").splitlines()) == 1


@pytest.fixture
def machine(tmp_path):
    """`machine(latest, parents)`: what is found below 10 in such a /proc, and whom that asked; it knows its last look."""
    descendants, asked = Descendants(tmp_path), []
    parent = descendants._parent
    descendants._parent = lambda pid: asked.append(pid) or parent(pid)

    def below(latest, parents):
        for folder in tmp_path.glob("[0-9]*"):
            (folder / "stat").unlink()
            folder.rmdir()
        (tmp_path / "self").mkdir(exist_ok=True)
        (tmp_path / "loadavg").unlink(missing_ok=True)
        if latest is not None:
            (tmp_path / "loadavg").write_text(f"0.1 0.2 0.3 1/100 {latest}\n")
        for pid, above in parents.items():
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b (c)) S {above} 1 1 0\n")
        asked.clear()
        return descendants.new_below({10}), sorted(asked)

    return below


def test_descendants_of_any_depth_are_found_and_each_process_is_asked_once(machine):
    assert machine(40, {1: 0, 10: 1, 30: 20, 20: 10, 21: 20, 40: 1, 41: 40})[0] == {20, 21, 30}
    others = dict.fromkeys(range(100, 400), 1)
    assert machine(400, {10: 1, **others}) == (set(), list(range(100, 400)))
    assert machine(402, {10: 1, **others, 401: 1, 402: 10}) == ({402}, [401, 402])


def test_a_number_that_is_given_out_again_is_asked_again(machine):
    machine(400, {10: 1, 300: 1})
    machine(401, {10: 1})
    assert machine(402, {10: 1, 300: 10})[0] == {300}  # it was gone in between
    machine(500, {10: 1, 350: 1})
    assert machine(360, {10: 1, 350: 10})[0] == {350}  # numbers began anew between two looks


def test_nothing_is_listed_while_no_process_has_begun_unless_the_latest_id_is_not_told(machine):
    assert machine(400, {10: 1, 300: 1}) == (set(), [300])
    assert machine(400, {10: 1, 350: 10}) == (set(), [])
    assert machine(None, {10: 1, 300: 1}) == (set(), [300])
    assert machine(None, {10: 1, 300: 10}) == ({300}, [300])


def test_real_processes_are_found():
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    descendants = Descendants()
    before = descendants.new_below({ME})
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = descendants.new_below({ME, *before})
        child.communicate(b"\n")
    assert child.pid in found
    assert len(found) == 2


@pytest.fixture
def thread(tmp_path):
    """`thread(tid, name, ticks)` writes what the kernel tells of a thread of process 9."""

    def write(tid, name, ticks, start=5, schedstat=""):
        place = tmp_path / "9" / "task" / str(tid)
        place.mkdir(parents=True, exist_ok=True)
        behind = ["S", *["0"] * 10, str(ticks - 1), "1", *["0"] * 6, str(start), "0"]
        (place / "stat").write_text(f"{tid} ({name}) {' '.join(behind)}\n", encoding="utf-8")
        (place / "schedstat").write_text(schedstat, encoding="utf-8")

    return write


def test_cpu_time_of_threads_is_in_ticks_where_the_scheduler_counts_nothing(thread, tmp_path):
    thread(9, "python", 30)
    thread(10, "a (b) c", 7, start=11)
    (tmp_path / "9/task/10/schedstat").unlink()
    found = ThreadReader(str(tmp_path)).look(9)
    assert sorted(found["cpu"]) == [[9, 30 * TICK_NS, None], [10, 7 * TICK_NS, None]]
    assert sorted(found["names"]) == [[9, "python", 5 * TICK_NS], [10, "a (b) c", 11 * TICK_NS]]
    assert (scheduled(b""), scheduled(b"1"), scheduled(b"1 2")) == (None, None, (1, 2))


def test_only_what_changed_of_threads_is_told_again(thread, tmp_path):
    reader = ThreadReader(str(tmp_path))
    assert reader.look(9) == {"cpu": [], "names": []}  # it is gone
    thread(9, "python", 30, schedstat="301234567 42000000 17\n")
    assert reader.look(9)["cpu"] == [[9, 301234567, 42000000]]
    thread(10, "worker", 7, schedstat="70 0 1")
    reader.look(9)
    thread(10, "worker", 8, schedstat="80 5 1")
    assert reader.look(9) == {"cpu": [[10, 80, 5]], "names": []}
    thread(10, "renamed", 9, schedstat="90 5 1")
    assert reader.look(9)["names"] == [[10, "renamed", 5 * TICK_NS]]
    reader.forget({9})
    assert reader.look(9) == {"cpu": [], "names": []}
    reader.forget(set())  # its number may be used again
    assert [len(told) for told in reader.look(9).values()] == [2, 2]


def test_a_real_process_has_its_threads():
    go, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.set(), stop.wait()))
    thread.start()
    go.wait()
    tids = {entry[0] for entry in ThreadReader().look(ME)["names"]}
    stop.set()
    thread.join()
    assert {ME, thread.native_id} <= tids


V1 = {
    "cpu/box/cpu.cfs_quota_us": "150000", "cpu/box/cpu.cfs_period_us": "100000",
    "cpu/box/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000",
    "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "cpuacct/box/cpuacct.usage": "7000000000",
}  # fmt: skip
V1_AS_ROOT = {name.replace("/box", ""): text for name, text in V1.items() if "/box/" in name}
V2 = {
    "cgroup.controllers": "cpu memory", "a/cpu.max": "200000 100000", "a/cpu.stat": "usage_usec 9000000\nthrottled_usec 250000",
    "a/b/cpu.max": "max 100000", "a/b/cpu.stat": "usage_usec 5000000\nthrottled_usec 0",
}  # fmt: skip


@pytest.fixture
def grouped(tmp_path):
    """Writes which group process 7 is in, and the mounted files; gives the arguments that name both places."""

    def write(membership, files):
        proc, mount = tmp_path / "proc", tmp_path / "cgroup"
        for path, text in ((proc / "7/cgroup", membership), *((mount / name, text) for name, text in files.items())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return proc, mount

    return write


@pytest.mark.parametrize(
    ("membership", "files", "facts"),
    [
        ("4:memory:/box\n2:cpuacct:/box\n1:cpu:/box\n0::/", V1, (1.5, 7.0, 2.5)),  # version 1: files in two folders
        ("1:cpu,cpuacct:/docker/0123", V1_AS_ROOT, (1.5, 7.0, 2.5)),  # a path of another namespace: the mounted root
        ("0::/a/b", V2, (2.0, 9.0, 0.25)),  # version 2: the tightest limit above counts
        ("0::/a/b", V2 | {"a/cpu.max": "max 100000"}, (None, 5.0, 0.0)),  # no limit
        ("0::/../../a", V2, (None, None, None)),  # a path that leads out is the root
        *((none, {}, None) for none in ("", "0::/a", "5:memory:/a")),
    ],
)
def test_the_limit_of_a_group_is_read_from_either_interface_of_the_kernel(grouped, membership, files, facts):
    found = cpu_group(7, *grouped(membership, files))
    assert (found and found.facts()) == (facts and dict(zip(("quota", "used", "throttled"), facts, strict=True)))


@pytest.mark.parametrize(
    ("group", "file"),
    [("0::/job", "job/memory.events"), ("5:memory:/job\n0::/", "memory/job/memory.oom_control")],
    ids=["version 2", "version 1"],
)
def test_kills_for_lack_of_memory_are_those_of_the_own_group(grouped, group, file):
    proc, mount = grouped(group, {file: "oom 4\noom_kill 3"})
    counts = mount / file
    assert memory_events(7, proc, mount) == counts
    assert (kills_in(counts), kills_in(proc / "7" / "cgroup")) == (3, None)
    assert memory_events(8, proc, mount) is None
    counts.with_name("release_agent").touch()  # of the root of the machine's groups
    assert memory_events(7, proc, mount) is None
    counts.unlink()
    counts.with_name("release_agent").unlink()
    assert memory_events(7, proc, mount) is None
