"""What each arm of `pipeprof ab` runs: revisions in worktrees of a real, temporary repository."""

import subprocess

import pytest
from ab_bench import FakeBench, Killed, says

from pipeprof.errors import MeasureError, UsageError, WorkloadError
from pipeprof.experiment.ab import AbWish, policy_hash, run_ab
from pipeprof.experiment.arms import (
    Arm,
    ArmWish,
    Workspace,
    arm_notes,
    check_unchanged,
    checked_out,
    pair_hash,
    resolve_arms,
    variables,
)
from pipeprof.verdict.gate.policy import Policy

COMMAND = ("python", "train.py")


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two commits; `jobs/train.py` says 1, then 2. We stand in `jobs`."""
    root = tmp_path / "repository"
    (root / "jobs").mkdir(parents=True)
    git(root, "init", "--quiet", "-b", "main")
    for number in (1, 2):
        (root / "jobs" / "train.py").write_text(f"print({number})\n")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", str(number))
    monkeypatch.chdir(root / "jobs")
    return root


def arms(base=None, new=None, command=COMMAND):
    return resolve_arms(Workspace.here(), base or ArmWish(), new or ArmWish(), command)


def worktrees(root):
    return git(root, "worktree", "list", "--porcelain").count("worktree ")


def test_a_revision_is_checked_out_beside_the_working_tree(repository):
    workspace = Workspace.here()
    pair = arms(ArmWish(ref="HEAD~1"))
    folder = repository / "session"
    folder.mkdir()
    with checked_out(workspace, pair, folder) as places:
        assert (places["base"] / "train.py").read_text() == "print(1)\n"
        assert places["base"].name == "jobs"
        assert places["new"] == repository / "jobs"
        assert worktrees(repository) == 2
    assert worktrees(repository) == 1
    assert list(folder.iterdir()) == []


def test_worktrees_that_a_kill_left_are_made_anew(repository):
    workspace, pair = Workspace.here(), arms(ArmWish(ref="HEAD~1"), ArmWish(ref="main"))
    folder = repository / "session"
    folder.mkdir()
    stale = checked_out(workspace, pair, folder)
    (stale.__enter__()["base"] / "train.py").write_text("half")
    with checked_out(workspace, pair, folder) as places:
        assert (places["base"] / "train.py").read_text() == "print(1)\n"
        assert (places["new"] / "train.py").read_text() == "print(2)\n"
    assert worktrees(repository) == 1


def test_worktrees_go_when_an_arm_fails(repository):
    wish = AbWish(ArmWish(ref="HEAD~1"), ArmWish(), COMMAND, repository / "session")
    with pytest.raises(WorkloadError):
        run_ab(wish, Policy(), print, FakeBench(fails=["base-000"]))
    assert worktrees(repository) == 1
    with pytest.raises(Killed):
        run_ab(wish, Policy(), print, FakeBench(dies_at=10))
    assert worktrees(repository) == 1


def test_each_arm_runs_in_its_own_folder(repository):
    bench = FakeBench(compare=says("unchanged", 5))
    content = run_ab(AbWish(ArmWish(ref="HEAD~1"), ArmWish(), COMMAND), Policy(), print, bench)
    of_base = {folder for name, folder in zip(bench.ran, bench.places, strict=True) if name.startswith("base")}
    assert {folder.parent.name for folder in of_base} == {"tree-base"}
    assert set(bench.places) - of_base == {repository / "jobs"}
    said = content["session"]["arms"]
    assert said["base"]["revision"] == git(repository, "rev-parse", "HEAD~1")
    assert (said["new"]["ref"], said["new"]["dirty"]) == (None, False)
    assert git(repository, "status", "--porcelain") == ""  # the session's folder hides itself


def test_a_changed_working_tree_is_noted_and_another_comparison(repository):
    workspace, clean = Workspace.here(), arms(ArmWish(ref="HEAD~1"))
    assert arm_notes(workspace, clean) == []
    (repository / "jobs" / "train.py").write_text("print(3)\n")
    dirty = arms(ArmWish(ref="HEAD~1"))
    assert arm_notes(workspace, dirty) == [{"code": "uncommitted", "arm": "new"}]
    assert "and changes" in dirty[1].label
    assert pair_hash(workspace, clean, "p") != pair_hash(workspace, dirty, "p")
    (repository / "jobs" / "train.py").write_text("print(4)\n")
    assert arms(ArmWish(ref="HEAD~1"))[1].tree != dirty[1].tree


def test_a_new_python_file_changes_the_working_tree_but_an_output_does_not(repository):
    before = arms(ArmWish(ref="HEAD~1"))[1]
    (repository / "jobs" / "weights.ckpt").write_text("1")
    assert arms(ArmWish(ref="HEAD~1"))[1] == before
    (repository / "jobs" / "extra.py").write_text("1")
    assert arms(ArmWish(ref="HEAD~1"))[1].tree != before.tree


def test_a_working_tree_that_changes_meanwhile_ends_the_session(repository):
    class Editing(FakeBench):
        def run(self, command, env, workdir, path, slow_down=None):
            super().run(command, env, workdir, path, slow_down)
            (repository / "jobs" / "train.py").write_text("print(9)\n")

    with pytest.raises(MeasureError, match="working tree was changed"):
        run_ab(AbWish(ArmWish(ref="HEAD~1"), ArmWish(), COMMAND), Policy(), print, Editing())


def test_the_same_revision_by_another_name_is_the_same_pair(repository):
    workspace = Workspace.here()
    git(repository, "tag", "v1", "HEAD~1")
    assert pair_hash(workspace, arms(ArmWish(ref="HEAD~1")), "p") == pair_hash(workspace, arms(ArmWish(ref="v1")), "p")
    other = arms(ArmWish(ref="v1"), command=("python", "train.py", "--lr", "1"))
    assert pair_hash(workspace, other, "p") != pair_hash(workspace, arms(ArmWish(ref="v1")), "p")


@pytest.mark.parametrize(
    ("base", "new", "command", "message"),
    [
        (ArmWish(), ArmWish(), COMMAND, "both sides are the same code"),
        (ArmWish(ref="nosuch"), ArmWish(), COMMAND, "no revision `nosuch`"),
        (ArmWish(ref="--help"), ArmWish(), COMMAND, "no revision `--help`"),
        (ArmWish(ref="HEAD~1"), ArmWish(), (), "no command to run for `base`"),
        (ArmWish(command=("a",)), ArmWish(command=("b",)), COMMAND, "there is a third one after `--`"),
        (ArmWish(env=("1X=2",)), ArmWish(), COMMAND, "variable `1X=2`"),
        (ArmWish(env=("X",)), ArmWish(), COMMAND, "variable `X`"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_arms_that_cannot_be_are_refused(base, new, command, message):
    with pytest.raises(UsageError, match=message):
        arms(base, new, command)


def test_a_folder_that_the_revision_lacks_is_named(repository, monkeypatch):
    (repository / "later").mkdir()
    monkeypatch.chdir(repository / "later")
    workspace, pair = Workspace.here(), arms(ArmWish(ref="HEAD~1"))
    with pytest.raises(UsageError, match="`later` does not exist"), checked_out(workspace, pair, repository / "s"):
        pass
    assert worktrees(repository) == 1


def test_outside_a_repository_commands_can_be_compared_but_no_revisions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base, new = arms(ArmWish(command=("a",)), ArmWish(command=("b", "x")), ())
    assert (base.revision, base.tree, new.command) == (None, None, ("b", "x"))
    with pytest.raises(UsageError, match="not in a git repository"):
        arms(ArmWish(ref="main"))


def test_in_a_repository_without_a_commit_commands_can_be_compared(tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet")
    monkeypatch.chdir(tmp_path)
    base, new = arms(ArmWish(command=("a",)), ArmWish(command=("b",)), ())
    assert (base.revision, base.tree) == (None, None)
    check_unchanged(Workspace.here(), new)
    with pytest.raises(UsageError, match="git knows no revision `HEAD`"):
        arms(ArmWish(ref="HEAD"))


def test_paths_into_the_repository_become_those_of_the_worktree(repository, monkeypatch):
    workspace, (base, new) = Workspace.here(), arms(ArmWish(ref="HEAD~1"))
    monkeypatch.setenv("PYTHONPATH", f"{repository}/jobs:/elsewhere:lib")
    tree = repository / "s" / "tree-base"
    assert variables(workspace, base, tree / "jobs")["PYTHONPATH"] == f"{tree}/jobs:/elsewhere:lib"
    assert "PYTHONPATH" not in variables(workspace, new, repository / "jobs")


def test_an_absolute_script_is_noted_because_both_arms_run_it(repository):
    script = str(repository / "jobs" / "train.py")
    pair = arms(ArmWish(ref="HEAD~1"), command=("python", script))
    assert "same_file" in {note["code"] for note in arm_notes(Workspace.here(), pair)}


def test_secrets_do_not_reach_the_session_file():
    arm = Arm("base", ("train", "--api-key=abc"), {"MY_TOKEN": "xyz", "OMP_NUM_THREADS": "2"})
    assert arm.facts()["command"] == ["train", "--api-key=***"]
    assert arm.facts()["env"] == ["MY_TOKEN=***", "OMP_NUM_THREADS=2"]


def test_the_budget_does_not_make_another_policy():
    assert policy_hash(Policy(budget_s=1.0)) == policy_hash(Policy())
    assert policy_hash(Policy(alpha=0.05)) != policy_hash(Policy())
