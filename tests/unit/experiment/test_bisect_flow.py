"""`pipeprof bisect` with a fake bench in a real repository: the commit, ranges, failures, budgets, kills."""

import json
from pathlib import Path

import numpy as np
import pytest
from ab_bench import STEP, FakeBench, Killed
from documents import BISECTED
from git_repository import GitRepository

from pipeprof.collect import fingerprint
from pipeprof.errors import MeasureError, RunError, UsageError, WorkloadError
from pipeprof.experiment.bisect import search as room
from pipeprof.experiment.bisect.search import BisectWish, run_bisect
from pipeprof.record.git import git_or_none
from pipeprof.record.measures import Measures, Repetition
from pipeprof.report import bisect_text

MANY, SLOW = 16, 11
MS = 1e6


class CommitBench(FakeBench):
    """Takes the step time from the file of the commit that is checked out; its map is what got slower.

    `failing`: a revision that fails so often after its first two runs. `bare`: what is broken runs, without step times.
    """

    def __init__(self, seed=1, spread=0.02, compute=30, other=5, failing=(None, 0), *, bare=False, **more):
        super().__init__(**more)
        self.noise, self.spread, self.bare = np.random.default_rng(seed), spread, bare
        self.parts, (self.revision, self.left), self.good = (compute * MS, other * MS), failing, 0

    def run(self, command, env, workdir, path, slow_down=None):  # noqa: ARG002 - as Bench has it
        self._point()
        text = (workdir / "step.txt").read_text()
        path.mkdir()
        self.time += self.seconds
        self.ran.append(path.name)
        here = self.left and git_or_none(workdir, "rev-parse", "HEAD") == self.revision
        if here and self.good >= 2:
            self.left -= 1
            raise WorkloadError("signal 9", "its output is in a log")
        self.good += bool(here)
        if text == "broken" and not self.bare:
            raise WorkloadError("exit code 1; it said `no such layer`", "its output is in a log")
        if text != "broken":
            text = str(float(text) * np.exp(self.noise.normal(0, self.spread)))
        (path / "step").write_text(text)

    def measure(self, path):
        text, (compute, other) = (path / "step").read_text(), self.parts
        values = {"peak_memory": 1.0}
        if text != "broken":
            step = float(text)
            parts = {"phase/data_wait": step - compute, "phase/compute": compute, "pipeline/decode": step - other}
            values = {STEP: step} | parts
        return Measures(
            label=str(path), workload="train", reps={0: Repetition(order=0)}, fingerprint={"cpu_model": "one"},
            values={name: {0: value} for name, value in values.items()}, run_ids=[path.name], digests=[path.name],
        )  # fmt: skip


@pytest.fixture
def repository(tmp_path, monkeypatch):
    found = GitRepository(tmp_path / "code")
    monkeypatch.chdir(found.root)
    monkeypatch.setattr(fingerprint, "machine", lambda: {"cpu_model": "one"})
    monkeypatch.setattr(fingerprint, "job", lambda: "boot:1")
    return found


def commits(repository, slow=SLOW, broken=(), factor=1.08):
    steps = [40 * MS * (factor if at >= slow else 1.0) for at in range(MANY + 1)]
    return [
        repository.commit({"step.txt": "broken" if at in broken else str(step)}, f"commit {at}")
        for at, step in enumerate(steps)
    ]


def call(revisions, bench=None, said=None, **wish):
    asked = {"good": revisions[0], "bad": revisions[-1], "command": ("train",)} | wish
    return run_bisect(BisectWish(**asked), (said if said is not None else []).append, bench or CommitBench())


def refused(error, words, *args, **wish):
    with pytest.raises(error, match=words) as caught:
        call(*args, **wish)
    return caught.value


def test_the_commit_is_named_with_its_subject_and_its_cause(repository):
    revisions, said = commits(repository), []
    content = call([*revisions[:-1], "main"], said=said, command=("train", "--token", "c0ffee"))
    ends = [revision[:10] for revision in (revisions[0], revisions[-1])]
    assert f"{ends[0]} (`{revisions[0]}`), up to {ends[1]} (`main`), in" in said[0]
    assert any(f", {' to '.join(ends)}, " in line for line in bisect_text.document(content).sections[0].notes)
    assert (content["verdict"], content["exit_code"]) == ("found", 0)
    assert (content["commit"]["revision"], content["commit"]["subject"]) == (revisions[SLOW], f"commit {SLOW}")
    assert content["probability"] >= 0.995
    assert content["ratio"] == pytest.approx(1.08, abs=0.03)
    assert content["cause"]["name"] == "decode"
    assert repository.git("worktree", "list").count("\n") == 0
    kept = Path(content["session"]["folder"], "session.json").read_text(encoding="utf-8")
    assert ('"***"' in kept, "c0ffee" in kept) == (True, False)  # no secret of the command


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_change_too_small_for_the_gate_to_explain_has_its_cause(repository, seed):
    """Nearly all of the step is a wait for the map, so that every part grows by what the step does."""
    content = call(commits(repository, factor=1.045), CommitBench(seed, 0.015, compute=1, other=0.5))
    assert (content["verdict"], content["cause"]["name"]) == ("found", "decode")
    assert min(content["compared"].values()) >= 5


def test_a_commit_that_fails_is_left_out_and_its_neighbour_not_blamed_for_it(repository):
    revisions = commits(repository, broken=(SLOW - 1, SLOW))
    content = call(revisions)
    assert (content["verdict"], content["exit_code"]) == ("range", 4)
    assert [one["revision"] for one in content["range"]] == revisions[SLOW - 1 : SLOW + 2]
    assert {one["subject"] for one in content["cannot_be_measured"]} == {f"commit {SLOW - 1}", f"commit {SLOW}"}


@pytest.mark.parametrize(("failures", "verdict"), [(1, "found"), (2, "range")])
def test_a_commit_that_has_run_may_fail_once_by_chance(repository, failures, verdict):
    revisions, said = commits(repository), []
    content = call(revisions, CommitBench(failing=(revisions[SLOW], failures)), said)
    assert content["verdict"] == verdict
    assert any("failed: signal 9" in line for line in said)
    assert len(content["cannot_be_measured"]) == (verdict == "range")


def test_a_commit_that_runs_without_the_metric_is_left_out_too(repository):
    revisions, said = commits(repository, broken=(SLOW,)), []
    content = call(revisions, CommitBench(bare=True), said)
    assert [one["revision"] for one in content["range"]] == revisions[SLOW : SLOW + 2]
    assert [one["subject"] for one in content["cannot_be_measured"]] == [f"commit {SLOW}"]
    assert [run["state"] for run in content["session"]["repetitions"]].count("failed") == 1
    assert sum(f"{revisions[SLOW][:10]} cannot be measured: `{STEP}`" in line for line in said) == 1
    refused(MeasureError, f"`{STEP}` was not", revisions[: SLOW + 1], CommitBench(bare=True), folder=Path("b"))


@pytest.mark.parametrize("verdict", ["found", "range"])
def test_what_became_larger_is_no_time_that_became_longer(verdict):
    content = BISECTED | {"verdict": verdict, "commit": BISECTED["range"][0], "probability": 0.9}
    for metric, word in ((STEP, "slower"), ("op/Conv2D", "slower"), ("peak_memory", "larger")):
        assert f"made it {word}" in bisect_text.document(content | {"metric": metric}).title


def test_no_change_is_said_and_no_commit_is_named(repository):
    content = call(commits(repository, slow=99))
    assert (content["verdict"], content["exit_code"], content["commit"], content["range"]) == ("no_change", 3, None, [])


@pytest.mark.parametrize("factor", [0.9, 0.3])
def test_a_bad_end_that_is_faster_ends_it_soon_and_with_both_times(repository, factor):
    bench = CommitBench()
    refused(MeasureError, r"fell: [34]\d\.\d ms at the good", commits(repository, factor=factor), bench)
    assert len(bench.ran) <= 12


@pytest.mark.parametrize(("slow", "factor"), [(1, 1.08), (MANY, 1.08), (SLOW, 1.5), (SLOW, 4.0)])
def test_the_first_and_the_last_commit_can_be_the_one_and_a_change_is_said_in_its_size(repository, slow, factor):
    content = call(commits(repository, slow, factor=factor), CommitBench(spread=0.01))
    assert content["commit"]["subject"] == f"commit {slow}"
    assert content["ratio"] == pytest.approx(factor, rel=0.04)


def test_a_shallow_clone_is_named_as_what_hides_the_way_between(repository, monkeypatch):
    revisions = commits(repository)
    clone = repository.root.parent / "clone"
    repository.git("clone", "--quiet", "--depth", "3", f"file://{repository.root}", str(clone))
    repository.git("-C", str(clone), "fetch", "--quiet", "--depth", "1", "origin", revisions[2])
    monkeypatch.chdir(clone)
    assert "--unshallow" in refused(UsageError, "not among the first parents", [revisions[2], "HEAD"]).hint


def test_a_budget_that_ends_gives_a_range_and_more_budget_goes_on(repository):
    revisions = commits(repository)
    first = call(revisions, CommitBench(spread=0.05), most_runs=10)
    assert (first["verdict"], first["stopped"], first["runs"]) == ("range", "budget", 10)
    assert revisions[SLOW] in [one["revision"] for one in first["range"]]
    second = CommitBench(2)
    content = call(revisions, second)
    assert (content["commit"]["revision"], content["session"]["starts"]) == (revisions[SLOW], 2)
    assert content["runs"] == 10 + len(second.ran) - 1  # the first run of each start warms up


def test_time_is_a_budget_too(repository):
    bench = CommitBench(spread=0.05)
    assert call(commits(repository), bench, budget_s=95.0)["stopped"] == "budget"
    assert bench.time - 1000 <= 95
    short = {"budget_s": 1.0, "folder": Path("short")}
    refused(MeasureError, "before both ends", commits(repository), **short)  # and no warning of numpy


def test_subjects_may_be_empty_and_hold_any_line_separator(repository):
    good = repository.commit({"step.txt": str(40 * MS)})
    repository.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", "")
    bad = repository.commit(message="one\u2028two\ttabs")
    found = room.commits_between(room.Workspace.here(), good, bad)
    assert [one.subject for one in found] == ["a change", "", "one\u2028two\ttabs"]
    assert found[-1].revision == bad


def test_after_a_kill_at_any_moment_it_goes_on(repository):
    revisions = commits(repository)
    for dies_at in range(1, 40, 7):
        folder = repository.root.parent / f"s{dies_at}"
        with pytest.raises(Killed):
            call(revisions, CommitBench(dies_at=dies_at), folder=folder)
        assert call(revisions, CommitBench(3), folder=folder)["commit"]["revision"] == revisions[SLOW]
        state = json.loads((folder / "session.json").read_text())
        assert all(run["state"] in ("counted", "discarded") for run in state["runs"])
        assert len({run["name"] for run in state["runs"]}) == len(state["runs"])


def test_an_end_whose_command_fails_and_a_metric_that_was_not_measured_end_it(repository):
    refused(WorkloadError, "failed at the good commit", commits(repository, broken=(0,)))
    unknown = refused(MeasureError, "`peak_memory` was not measured", commits(repository), metric="peak_memory")
    assert STEP in unknown.hint


def test_another_machine_or_job_cannot_go_on(repository, monkeypatch):
    revisions = commits(repository)
    call(revisions, CommitBench(spread=0.05), most_runs=8)
    monkeypatch.setattr(fingerprint, "job", lambda: "boot:2")
    refused(MeasureError, "in another job", revisions)


def test_revisions_in_the_wrong_order_and_a_foreign_folder_are_refused(repository):
    revisions = commits(repository)
    newer = refused(UsageError, "is newer than", revisions[::-1])
    assert f"pipeprof bisect {revisions[0]} {revisions[-1]}" in newer.hint
    refused(UsageError, "the same commit", revisions, bad=revisions[0])
    call(revisions, folder=repository.root / "s")
    refused(RunError, "something else", revisions, folder=repository.root / "s", good=revisions[1])
