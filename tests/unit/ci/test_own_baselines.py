"""Our own workloads: what records them, what the workflow compares, and the stored baselines agree with each other."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from action_steps import ROOT, executable, load_tool
from copies import copy_file

from pipeprof.record.baseline import load_whole
from pipeprof.report import baselines

# Its clock shows what the work says that it takes, a little more from one execution to the next.
PLACE = """import pathlib

count = pathlib.Path(__file__).with_name("count")
number = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (number + 1))
seconds = 0.0


def clock():
    global seconds
    seconds += 1e-9
    return seconds


def work():
    global seconds
    seconds += {seconds} * (1 + 0.01 * (number % 3))
"""
BENCHMARK = """import pytest
from place import clock, work


@pytest.mark.benchmark(timer=clock)
def test_work(benchmark):
    benchmark.pedantic(work, rounds=3)
"""


@pytest.fixture(scope="module")
def recorder():
    return load_tool("record_baselines")


def stored():
    return baselines.states(str(ROOT / "baselines"), histories=True)


def of_gate():
    """The job of the workflow that compares with baselines."""
    return yaml.safe_load((ROOT / ".github/workflows/gate.yml").read_text(encoding="utf-8"))["jobs"]["baseline"]


def commit(folder, what="."):
    identity = ["-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    for words in (["init", "-q"], ["add", what], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def bash(script):
    return subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True, check=False)


def test_every_workload_has_a_whole_baseline_and_the_readme_names_it(recorder):
    rows = stored()
    assert {row["workload"] for row in rows} == set(recorder.WORKLOADS)
    assert [row["problem"] for row in rows] == [None] * len(rows)
    text = (ROOT / "baselines" / "README.md").read_text(encoding="utf-8")
    assert [name for name in recorder.WORKLOADS if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("row", stored(), ids=lambda row: row["workload"])
def test_a_stored_baseline_can_judge_across_jobs_and_is_of_the_command_that_is_measured(recorder, row):
    about, _ = load_whole(str(ROOT / "baselines" / row["workload"] / row["machine"]))
    assert about.jobs >= 8
    assert about.git["dirty"] is False
    if row["workload"] in recorder.TRAININGS:
        assert list(about.command) == recorder.TRAININGS[row["workload"]]


def test_the_workflow_compares_what_is_recorded(recorder):
    entries = of_gate()["strategy"]["matrix"]["include"]
    compared = {entry["workload"]: entry.get("benchmark") or shlex.split(entry["command"]) for entry in entries}
    assert compared == recorder.TRAININGS | {recorder.BENCHMARK: recorder.BENCHMARKS}


@pytest.mark.parametrize("stored", ["amd-2c", "intel-2c", None])
@pytest.mark.parametrize("workload", ["demo", "import"])
def test_a_job_that_has_no_baseline_to_compare_with_is_red(tmp_path, monkeypatch, workload, stored):
    """The script of the workflow on a machine of the class `amd-2c`; only a baseline that is in the base's commit counts."""
    step, *later = of_gate()["steps"][3:]
    assert "There has to be a baseline" in step["name"]
    assert not any("always()" in str(one.get("if")) for one in later)
    programs = tmp_path / "bin"
    for name, text in (("pipeprof", "amd-2c"), ("jq", "amd-2c"), ("python", "")):
        executable(programs / name, f"#!/bin/sh\necho {text}\n")
    monkeypatch.chdir(tmp_path)
    benchmark = "bench.py" if workload == "import" else ""
    for name, value in (("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}"), ("WORKLOAD", workload),
                        ("BENCHMARK", benchmark), ("BASE", "HEAD"), ("RUNNER_TEMP", ".")):  # fmt: skip
        monkeypatch.setenv(name, value)
    if stored:
        folder = tmp_path / "baselines" / workload / stored
        folder.mkdir(parents=True)
        folder.joinpath("baseline.json").write_text("{}")
    commit(tmp_path)
    done = bash(step["run"])
    assert (done.returncode == 0) is (stored == "amd-2c")
    assert ("not judged by a baseline" in done.stdout) is (stored != "amd-2c")


def timed(folder, seconds):
    """Five files of pytest-benchmark, as of a job of its own."""
    folder.mkdir(parents=True)
    machine = {"node": str(seconds), "machine": "x86_64", "system": "Linux", "cpu": {"brand_raw": "A", "count": 2}}
    for rep in range(5):
        benchmarks = [{"fullname": "test_x.py::test_a", "stats": {"median": seconds * (1 + rep / 1000), "rounds": 5}}]
        content = {"machine_info": machine, "benchmarks": benchmarks, "datetime": f"2026-01-01T00:00:0{rep}+00:00"}
        (folder / f"{rep}.json").write_text(json.dumps(content))


@pytest.mark.parametrize(("seconds", "exit_code"), [(0.05, 1), (0.0501, 0)])
def test_a_benchmark_that_became_slower_than_its_baseline_is_red_and_an_undecided_one_is_not(
    tmp_path, monkeypatch, seconds, exit_code
):
    """The script of the workflow: of one past job only 30 % and more count, so that like times are undecided."""
    script = next(step["run"] for step in of_gate()["steps"] if "benchmark" in step.get("name", ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name, value in (("WORKLOAD", "import"), ("BASE", "HEAD"), ("GITHUB_STEP_SUMMARY", "summary.md")):
        monkeypatch.setenv(name, value)
    timed(tmp_path / "past", 0.005 if exit_code else 0.05)
    timed(tmp_path / ".benchmarks" / "import", seconds)
    subprocess.run(["pipeprof", "baseline", "write", "past", "--workload", "import"], check=True, capture_output=True)
    commit(tmp_path, "baselines")
    done = bash(script)
    assert done.returncode == exit_code, done.stderr
    assert "test_a" in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fails", [0, 3])
@pytest.mark.parametrize("exists", [True, False])
def test_baselines_change_when_all_jobs_of_a_clean_tree_are_recorded(recorder, monkeypatch, tmp_path, fails, exists):
    root = tmp_path / "baselines"
    if exists:
        root.mkdir()
        (root / "README.md").write_text("what is here")
    state = {"revision": "0" * 40, "dirty": True}

    def jobs(_):
        assert not state["dirty"]
        (recorder.NEXT / "demo").mkdir(parents=True)
        assert not (root / "demo").exists()
        return fails

    monkeypatch.setattr(recorder, "NEXT", tmp_path / "next")
    monkeypatch.setattr(recorder, "git_state", lambda _: state)
    monkeypatch.setattr(recorder, "jobs", jobs)
    monkeypatch.setattr(sys, "argv", ["record_baselines", "--root", str(root)])
    with pytest.raises(SystemExit, match="the tree has changes"):
        recorder.main()
    state["dirty"] = False
    assert recorder.main() == fails
    assert (root / "demo").exists() == (fails == 0)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one benchmark, of 2 ms, and the tool."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # nothing runs beside it: benchmarks count
    tree = tmp_path / "tree"
    (tree / "tests" / "benchmarks").mkdir(parents=True)
    (tree / "tools").mkdir()
    copy_file(ROOT / "tools" / "bench_gate.py", tree / "tools")
    (tree / "tests" / "benchmarks" / "test_work.py").write_text(BENCHMARK)
    (tree / "pytest.ini").write_text("[pytest]\n")
    (tree / ".gitignore").write_text(".benchmarks\n__pycache__\ncount\n")
    (tree / "place.py").write_text(PLACE.format(seconds=0.002))
    commit(tree)
    return tree


def judged(tree):
    words = [sys.executable, "tools/bench_gate.py", "--base", "HEAD", "--times", "3"]
    return subprocess.run(words, cwd=tree, capture_output=True, text=True, check=False, timeout=300)


def test_benchmarks_that_became_ten_times_as_slow_are_red_and_one_that_fails_is_no_pass(repository):
    (repository / "place.py").write_text(PLACE.format(seconds=0.02))
    done = judged(repository)
    assert done.returncode == 1, done.stdout + done.stderr
    summary = (repository / ".benchmarks" / "gate" / "summary.md").read_text(encoding="utf-8")
    assert "test_work" in summary
    left = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, check=True).stdout
    assert left.count(b"\n") == 1  # the base's tree is gone
    (repository / "place.py").write_text("def work():\n    raise RuntimeError\n")
    assert judged(repository).returncode == 5
