"""The limits of a control group, from files as the kernel's two interfaces write them."""

import pytest

from pipeprof.collect.cgroup import cpu_group, kills_in, memory_events

V1 = {
    "cpu/box/cpu.cfs_quota_us": "150000", "cpu/box/cpu.cfs_period_us": "100000",
    "cpu/box/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000",
    "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "cpuacct/box/cpuacct.usage": "7000000000",
}  # fmt: skip
V2 = {
    "cgroup.controllers": "cpu memory", "a/cpu.max": "200000 100000", "a/cpu.stat": "usage_usec 9000000\nthrottled_usec 250000",
    "a/b/cpu.max": "max 100000", "a/b/cpu.stat": "usage_usec 5000000\nthrottled_usec 0",
}  # fmt: skip


@pytest.fixture
def facts(tmp_path):
    """Facts of process 7 whose /proc file and mounted files are given; None without a group."""

    def read(membership, files):
        proc, mount = tmp_path / "proc", tmp_path / "cgroup"
        (proc / "7").mkdir(parents=True)
        (proc / "7" / "cgroup").write_text(membership, encoding="utf-8")
        for name, text in files.items():
            path = mount / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        found = cpu_group(7, proc, mount)
        return None if found is None else found.facts()

    return read


def test_version_1_has_its_files_in_two_folders(facts):
    found = facts("4:memory:/box\n2:cpuacct:/box\n1:cpu:/box\n0::/\n", V1)
    assert found == {"quota": 1.5, "used": 7.0, "throttled": 2.5}


def test_version_1_whose_path_is_of_another_namespace_is_the_mounted_root(facts):
    files = {name.replace("/box", ""): text for name, text in V1.items() if "/box/" in name}
    assert facts("1:cpu,cpuacct:/docker/0123\n", files) == {"quota": 1.5, "used": 7.0, "throttled": 2.5}


def test_in_version_2_the_tightest_limit_above_counts(facts):
    assert facts("0::/a/b\n", V2) == {"quota": 2.0, "used": 9.0, "throttled": 0.25}


def test_without_a_limit_the_quota_is_unknown_and_throttling_is_as_counted(facts):
    assert facts("0::/a/b\n", V2 | {"a/cpu.max": "max 100000"}) == {"quota": None, "used": 5.0, "throttled": 0.0}


@pytest.mark.parametrize("membership", ["", "0::/a\n", "5:memory:/a\n"])
def test_without_a_group_of_cpu_there_is_none(facts, membership):
    assert facts(membership, {}) is None


def test_a_path_that_leads_out_is_the_root(facts):
    assert facts("0::/../../a\n", V2) == {"quota": None, "used": None, "throttled": None}


@pytest.mark.parametrize(
    ("group", "file"),
    [("0::/job", "job/memory.events"), ("5:memory:/job\n0::/", "memory/job/memory.oom_control")],
    ids=["version 2", "version 1"],
)
def test_kills_for_lack_of_memory_are_those_of_the_own_group(tmp_path, group, file):
    proc, mount = tmp_path / "proc", tmp_path / "cgroup"
    counts = mount / file
    for folder in (proc / "7", counts.parent):
        folder.mkdir(parents=True)
    (proc / "7" / "cgroup").write_text(group + "\n", encoding="utf-8")
    assert memory_events(7, proc, mount) is None
    counts.write_text("oom 4\noom_kill 3\n", encoding="utf-8")
    assert memory_events(7, proc, mount) == counts
    assert (kills_in(counts), kills_in(proc / "7" / "cgroup")) == (3, None)
    assert memory_events(8, proc, mount) is None
    counts.with_name("release_agent").touch()  # of the root of the machine's groups
    assert memory_events(7, proc, mount) is None
