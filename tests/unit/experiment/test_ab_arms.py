"""What each arm of `pipeprof ab` runs: revisions in worktrees of a real, temporary repository."""

import pytest
from ab_bench import FakeBench, Killed, says
from git_repository import GitRepository

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
EARLIER, HERE = ArmWish(ref="HEAD~1"), ArmWish()
A, B = ArmWish(command=("a",)), ArmWish(command=("b", "x"))


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two commits; `jobs/train.py` says 1, then 2. We stand in `jobs`."""
    made = GitRepository(tmp_path / "repository")
    for number in (1, 2):
        made.commit({"jobs/train.py": f"print({number})\n"})
    made.jobs = made.root / "jobs"
    monkeypatch.chdir(made.jobs)
    made.worktrees = lambda: made.git("worktree", "list", "--porcelain").count("worktree ")
    return made


def arms(base=EARLIER, new=HERE, command=COMMAND):
    return resolve_arms(Workspace.here(), base, new, command)


def said(place):
    return (place / "train.py").read_text()


def test_a_revision_is_checked_out_beside_the_working_tree(repository):
    folder = repository.root / "session"
    folder.mkdir()
    with checked_out(Workspace.here(), arms(), folder) as places:
        assert (said(places["base"]), places["base"].name) == ("print(1)\n", "jobs")
        assert places["new"] == repository.jobs
        assert repository.worktrees() == 2
    assert repository.worktrees() == 1
    assert list(folder.iterdir()) == []
    pair = arms(EARLIER, ArmWish(ref="main"))
    stale = checked_out(Workspace.here(), pair, folder)  # what a kill left is made anew
    (stale.__enter__()["base"] / "train.py").write_text("half")
    with checked_out(Workspace.here(), pair, folder) as places:
        assert (said(places["base"]), said(places["new"])) == ("print(1)\n", "print(2)\n")
    assert repository.worktrees() == 1


def test_worktrees_go_when_an_arm_fails(repository):
    wish = AbWish(EARLIER, HERE, COMMAND, repository.root / "session")
    for bench, error in ((FakeBench(fails=["base-000"]), WorkloadError), (FakeBench(dies_at=10), Killed)):
        with pytest.raises(error):
            run_ab(wish, Policy(), print, bench)
        assert repository.worktrees() == 1


def test_each_arm_runs_in_its_own_folder(repository):
    bench = FakeBench(compare=says("unchanged", 5))
    content = run_ab(AbWish(EARLIER, HERE, COMMAND), Policy(), print, bench)
    of_base = {folder for name, folder in zip(bench.ran, bench.places, strict=True) if name.startswith("base")}
    assert {folder.parent.name for folder in of_base} == {"tree-base"}
    assert set(bench.places) - of_base == {repository.jobs}
    told = content["session"]["arms"]
    assert told["base"]["revision"] == repository.git("rev-parse", "HEAD~1")
    assert (told["new"]["ref"], told["new"]["dirty"]) == (None, False)
    assert repository.git("status", "--porcelain") == ""  # the session's folder hides itself


def test_a_changed_working_tree_is_noted_and_another_comparison(repository):
    workspace, clean = Workspace.here(), arms()
    assert arm_notes(workspace, clean) == []
    repository.write({"jobs/weights.ckpt": "1"})  # an output is no change
    assert arms() == clean
    repository.write({"jobs/train.py": "print(3)\n"})
    dirty = arms()
    assert arm_notes(workspace, dirty) == [{"code": "uncommitted", "arm": "new"}]
    assert "and changes" in dirty[1].label
    assert pair_hash(workspace, clean, "p") != pair_hash(workspace, dirty, "p")
    repository.write({"jobs/train.py": "print(4)\n"})
    assert arms()[1].tree != dirty[1].tree
    repository.write({"jobs/train.py": "print(2)\n", "jobs/extra.py": "1"})  # a new Python file is one
    assert arms()[1].tree != clean[1].tree


def test_a_working_tree_that_changes_meanwhile_ends_the_session(repository):
    class Editing(FakeBench):
        def run(self, command, env, workdir, path, slow_down=None):
            super().run(command, env, workdir, path, slow_down)
            repository.write({"jobs/train.py": "print(9)\n"})

    with pytest.raises(MeasureError, match="working tree was changed"):
        run_ab(AbWish(EARLIER, HERE, COMMAND), Policy(), print, Editing())


def test_the_same_revision_by_another_name_is_the_same_pair(repository):
    repository.git("tag", "v1", "HEAD~1")
    pairs = [arms(), arms(ArmWish(ref="v1")), arms(command=("python", "train.py", "--lr", "1"))]
    first, second, other = (pair_hash(Workspace.here(), pair, "p") for pair in pairs)
    assert first == second != other


@pytest.mark.parametrize(
    ("base", "new", "command", "message"),
    [
        (HERE, HERE, COMMAND, "the same code"), (ArmWish(ref="nosuch"), HERE, COMMAND, "no revision `nosuch`"),
        (ArmWish(ref="--help"), HERE, COMMAND, "no revision `--help`"), (EARLIER, HERE, (), "no command .* `base`"),
        (A, B, COMMAND, "a third one after `--`"), (ArmWish(env=("1X=2",)), HERE, COMMAND, "variable `1X=2`"),
        (ArmWish(env=("X",)), HERE, COMMAND, "variable `X`"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("repository")
def test_arms_that_cannot_be_are_refused(base, new, command, message):
    with pytest.raises(UsageError, match=message):
        arms(base, new, command)


def test_a_folder_that_the_revision_lacks_is_named(repository, monkeypatch):
    (repository.root / "later").mkdir()
    monkeypatch.chdir(repository.root / "later")
    folder = repository.root / "s"
    with pytest.raises(UsageError, match="`later` does not exist"), checked_out(Workspace.here(), arms(), folder):
        pass
    assert repository.worktrees() == 1


@pytest.mark.parametrize(("git", "why"), [(False, "not in a git repository"), (True, "no revision `HEAD`")])
def test_without_a_commit_commands_can_be_compared_but_no_revisions(tmp_path, monkeypatch, git, why):
    if git:
        GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    base, new = arms(A, B, ())
    assert (base.revision, base.tree, new.command) == (None, None, ("b", "x"))
    check_unchanged(Workspace.here(), new)
    with pytest.raises(UsageError, match=why):
        arms(ArmWish(ref="HEAD"))


def test_paths_into_the_repository_become_those_of_the_worktree(repository, monkeypatch):
    workspace, (base, new) = Workspace.here(), arms()
    monkeypatch.setenv("PYTHONPATH", f"{repository.jobs}:/elsewhere:lib")
    tree = repository.root / "s" / "tree-base"
    assert variables(workspace, base, tree / "jobs")["PYTHONPATH"] == f"{tree}/jobs:/elsewhere:lib"
    assert "PYTHONPATH" not in variables(workspace, new, repository.jobs)
    script = str(repository.jobs / "train.py")  # an absolute script is what both arms run
    assert {"code": "same_file", "path": script} in arm_notes(workspace, arms(command=("python", script)))


def test_secrets_do_not_reach_the_session_file():
    facts = Arm("base", ("train", "--api-key=abc"), {"MY_TOKEN": "xyz", "OMP_NUM_THREADS": "2"}).facts()
    assert (facts["command"], facts["env"]) == (["train", "--api-key=***"], ["MY_TOKEN=***", "OMP_NUM_THREADS=2"])


def test_the_budget_does_not_make_another_policy():
    assert policy_hash(Policy(budget_s=1.0)) == policy_hash(Policy()) != policy_hash(Policy(alpha=0.05))
