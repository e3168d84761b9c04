"""What a change edits of what judges it, and that `ab` judges by the base."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from ab_bench import STEP, FakeBench
from git_repository import GitRepository

from pipeprof.errors import UsageError
from pipeprof.experiment import policy_file, trust
from pipeprof.experiment.ab import AbWish, run_ab
from pipeprof.experiment.arms import ArmWish, Workspace
from pipeprof.experiment.base_revision_policy import judged_arms, judged_sides
from pipeprof.experiment.bisect.search import commits_between
from pipeprof.experiment.policy_file import FoundPolicy
from pipeprof.experiment.trust import Change, trust_of

HEAD = ArmWish(ref="HEAD")
COMMAND = ("python", "jobs/train.py", "-m", "tools.make", "../outside.py", "--data=x")


class Slower(FakeBench):
    """The new arm takes twice as long."""

    def _step(self, word, name, slow_down):
        return super()._step(word, name, slow_down) * (2 if name.startswith("new") else 1)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = GitRepository(tmp_path / "project")
    made.base = made.commit({"jobs/train.py": "1\n", "tools/make.py": "1\n", "other.py": "1\n"})
    monkeypatch.chdir(made.root)
    return made


def edits(repository, command=COMMAND, new=None, policy_file=None):
    change = Change.here(repository.base, new, command, policy_file)
    return [(one["kind"], one["path"], one["change"]) for one in trust_of(FoundPolicy(), change)["edits"]]


SMALL = "[tool.pipeprof.gate]\nalpha = 0.1\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"other.py": "2\n", "docs/pipeprof.toml": "alpha = 0.1\n", "lib/Jenkinsfile": "x"}, []),
        ({"jobs/train.py": "2\n", "tools/make.py": None},  # that the command names
         [("workload", "jobs/train.py", "edited"), ("workload", "tools/make.py", "removed")]),
        ({os.fsdecode(b".github/\xff.yml"): "x"}, [("ci", r".github/\xff.yml", "added")]),
        ({"kept/w/m/baseline.json": "{}", "kept/w/m/measures.parquet": "x", "kept/w/m/summary.md": "x"},
         [("baseline", "kept/w/m", "added")]),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, []),
        ({"pyproject.toml": SMALL}, [("policy", "pyproject.toml", "added")]),
    ],
)  # fmt: skip
def test_a_change_edits_what_it_is_judged_by(repository, files, expected):
    repository.commit(files)
    assert edits(repository) == expected


def test_words_count_from_the_working_directory(repository, monkeypatch):
    repository.commit({"jobs/train.py": "2\n"})
    monkeypatch.chdir(repository.root / "jobs")
    told = [edits(repository, ("python", word)) for word in ("train.py", "../jobs/train.py", "jobs/train.py")]
    assert told == [[("workload", "jobs/train.py", "edited")]] * 2 + [[]]


def loaded_comment():
    place = Path(__file__).resolve().parents[3] / "ci" / "comment.py"
    spec = importlib.util.spec_from_file_location("comment", place)
    comment = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(comment)
    return comment


def test_the_comment_knows_the_same_files():
    comment = loaded_comment()
    assert frozenset(comment.BASELINES) == trust.BASELINE_FILES
    assert (comment.POLICY, comment.PROJECT) == (policy_file.OWN, policy_file.PROJECT)
    names = [*trust.CI_FILES, *(f"{folder}/x/y.yml" for folder in trust.CI_FOLDERS)]
    assert {comment.kind_of(name, "", set()) for name in names} == {"ci"}
    assert {comment.kind_of(f"sub/{name}", "", set()) for name in names} == {""}
    # Of the workload only the run itself knows; some things only GitHub's list of files leaves open.
    left_open = (comment.POSSIBLE, comment.NOT_LISTED)
    assert trust.KINDS[:-1] == tuple(kind for kind in comment.KINDS if kind not in left_open)
    assert comment.LOCAL_ACTION == trust._LOCAL_ACTION


@pytest.mark.parametrize(
    ("line", "touched", "told"),
    [
        ("      - uses: ./ci", "ci/gate.py", True), ("  - {uses: ./ci}", "ci/gate.py", True),
        ('      - "uses" : "./ci/"', "ci/lib/x.sh", True), ("      - uses: ./", "action.yml", True),
        ("        uses: './tools/check' # x", "tools/check/action.yml", True),
        ("      - uses: ./ci", "cip/gate.py", False),
        ("      - uses: ./", "other.py", False), ("      - uses: some/ci@v1", "ci/gate.py", False),
    ],
)  # fmt: skip
def test_an_action_of_the_repository_is_part_of_the_check(repository, line, touched, told):
    workflow = ".github/workflows/gate.yml"
    repository.base = repository.commit({workflow: f"jobs:\n  a:\n    steps:\n{line}\n", "ci/gate.py": "1\n"})
    repository.commit({touched: "2\n"})
    assert [path for kind, path, _ in edits(repository) if kind == "ci"] == ([touched] if told else [])
    comment = loaded_comment()
    assert comment.kind_of(touched, "", comment.local_actions()) == ("ci" if told else "")


@pytest.mark.parametrize(
    "name", [".github/workflows/gate.yml", ".gitlab-ci.yml", "Jenkinsfile", ".ci/run", ".github/actions/x/action.yml"]
)
def test_what_may_say_how_it_is_measured_is_told(repository, name):
    repository.commit({name: "x"})
    assert edits(repository) == [("ci", name, "added")]


@pytest.mark.parametrize(
    "name", [".github/ISSUE_TEMPLATE/bug.yml", ".github/pull_request_template.md", ".github/FUNDING.yml", "docs/a.md"]
)
def test_what_people_read_is_no_edit_of_the_check(repository, name):
    repository.commit({name: "x"})
    assert edits(repository) == []
    assert loaded_comment().kind_of(name, "", set()) == ""


def test_the_new_revision_counts_not_the_working_tree(repository):
    repository.write({"pipeprof.toml": "alpha = 0.1\n"})
    assert edits(repository) == [("policy", "pipeprof.toml", "added")]  # git does not know it yet
    new = repository.commit()
    repository.write({"pipeprof.toml": None, "jobs/train.py": "3\n"})
    assert edits(repository, new=new) == [("policy", "pipeprof.toml", "added")]
    assert edits(repository) == [("workload", "jobs/train.py", "edited")]


def test_what_others_changed_on_the_base_is_no_edit(repository):
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit({"other.py": "2\n"})
    repository.git("checkout", "--quiet", "main")
    repository.base = repository.commit({"pipeprof.toml": "alpha = 0.1\n", "jobs/train.py": "2\n"})
    repository.git("checkout", "--quiet", "change")
    assert edits(repository) == []


def measured(base, new, command=COMMAND, folder="session"):
    wish = AbWish(base, new, command, folder=Path(folder), seed=1)
    judged = judged_arms(wish, None)
    return run_ab(wish, judged.policy, print, Slower(), judged.trust)


def test_twice_as_slow_regresses_in_turn_whatever_the_change_says_and_no_hook_is_started(repository):
    loose = "[metrics.step_time_median]\nmin_effect = 9.0\nmargin = 9.0\n"
    new = repository.commit({"pipeprof.toml": loose, "jobs/train.py": "slow\n"})
    ran = repository.root / "it-ran"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = repository.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    content = measured(ArmWish(ref=repository.base), HEAD)
    assert (content["verdict"], content["exit_code"], ran.exists()) == ("regressed", 1, False)
    assert content["base"]["label"] == f"base ({repository.base}, {repository.base[:10]})"
    assert content["metrics"][0]["name"] == STEP
    assert [edit["path"] for edit in content["trust"]["edits"]] == ["pipeprof.toml", "jobs/train.py"]
    assert content["session"]["arms"]["new"]["revision"] == new
    own = measured(ArmWish(command=("a",)), ArmWish(command=("b",)), (), "desk")
    assert own["exit_code"] == 0


def test_only_commands_that_the_base_names_are_measured_against_it(repository):
    base = repository.commit({"pipeprof.toml": "commands = ['python jobs/train.py --steps 50']\n"})
    repository.commit({"pipeprof.toml": "commands = ['python jobs/train.py --steps 1']\n"})

    def judge(words, new=HEAD, **of_base):
        return judged_arms(AbWish(ArmWish(ref=base, **of_base), new, words), None)

    allowed = (str(Path(sys.executable).parent / "python"), "jobs/train.py", "--steps", "50")
    assert judge(allowed).policy.commands
    assert judge(("python", *allowed[1:])).policy.commands
    with pytest.raises(UsageError, match=r"`python jobs/train\.py --steps 1` is not among the `commands`"):
        judge(("python", "jobs/train.py", "--steps", "1"))
    for new, env in ((ArmWish(command=("true",)), ()), (ArmWish(), ("SLOW=1",)), (ArmWish(env=("PATH=evil",)), ())):
        with pytest.raises(UsageError, match="is not among"):
            judge(allowed, new, env=env)
    judged_arms(AbWish(ArmWish(command=("a",)), ArmWish(command=("b",))), None)  # at a desk any


def test_a_shadowed_name_is_refused_by_each_verb_that_takes_one(repository):
    repository.git("checkout", "--quiet", "-b", "change")
    repository.git("tag", "main", repository.commit({"pipeprof.toml": "alpha = 0.1\n"}))
    for ask in (
        lambda: judged_arms(AbWish(ArmWish(ref="main"), HEAD, COMMAND), None),
        lambda: judged_arms(AbWish(ArmWish(ref="HEAD~1"), ArmWish(ref="main"), COMMAND), None),
        lambda: judged_sides("baselines/w", "main", None, COMMAND),
        lambda: commits_between(Workspace.here(), "main", "HEAD"),
        lambda: commits_between(Workspace.here(), "HEAD~1", "main"),
    ):
        with pytest.raises(UsageError, match=r"^`main` is ambiguous: it is refs/tags/main .* and refs/heads/main "):
            ask()
