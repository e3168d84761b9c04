"""Where the gate's settings come from, and that a wrong key is named with its file."""

import os
from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.policy_file import find_policy
from pipeprof.verdict.gate.policy import Policy


@pytest.fixture
def project(tmp_path, monkeypatch):
    """`project(files)` writes files of a repository, in whose folder `jobs/small` we stand; the settings that hold."""
    for folder in (".git", "jobs/small"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "jobs" / "small")

    def written(**files):
        for name, text in files.items():
            (tmp_path / name.replace("__", "/")).with_suffix(".toml").write_text(text)
        return find_policy(None).policy

    written.root = tmp_path
    return written


def test_the_nearest_file_up_to_the_git_root_wins_and_pipeprof_toml_before_pyproject(project):
    assert project(pyproject="[tool.other]\nx = 1\n") == Policy()
    assert project(pyproject="[tool.pipeprof.gate]\nalpha = 0.05\n").alpha == 0.05
    assert project(pipeprof="[gate]\nalpha = 0.04\n").alpha == 0.04
    nearest = project(jobs__pipeprof="alpha = 0.03\nlooks = [4, 6]\n")
    assert (nearest.alpha, nearest.looks) == (0.03, (4, 6))
    (project.root / "jobs" / "pipeprof.toml").unlink()
    (project.root / "jobs" / ".git").mkdir()
    assert project() == Policy()


@pytest.mark.parametrize("name", ["pipeprof.toml", "pyproject.toml"])
def test_a_file_that_is_there_and_cannot_be_read_is_not_passed_over(project, name):
    (project.root / name).symlink_to("gone.toml")
    with pytest.raises(UsageError, match=rf"cannot read the policy .*{name}"):
        project()


def test_outside_a_repository_only_the_folder_itself_counts(project):
    (project.root / ".git").rmdir()
    assert project(jobs__pipeprof="alpha = 0.05\n") == Policy()


def test_a_named_file_of_any_name_is_read(tmp_path):
    path = tmp_path / "strict.toml"
    path.write_text("[tool.pipeprof.gate]\nalpha = 0.001\n[tool.pipeprof.gate.metrics.data_wait]\nmin_effect = 0.2\n")
    assert find_policy(path).policy.rule("data_wait").min_effect == 0.2


OWN = [
    ("[gate]\nalhpa = 1\n", "alhpa"), ("alhpa = 1\n", "alhpa"),
    ("[gate]\nalpha = 0.01\n[gates]\n", "unknown key `gates`"), ("looks = [5, 1000000000]\n", "looks .* at most 1000"),
    ("[metrics]\nstep_time_p90 = true\n", "`metrics.step_time_p90` is True, expected a table"),
    ('[metrics]\nstep_time_p90 = "x"\n', "`metrics.step_time_p90` is 'x', expected \"decides\""),
    ("[metrics.data_wait]\nmin_efect = 1\n", "`metrics.data_wait`: .*min_efect"),
    ("[metrics.data_wait]\nmin_effect = nan\n", "min_effect of `data_wait` is nan"),
    ("[metrics.data_wait]\nmargin = inf\n", "margin of `data_wait` is inf"),
    ("[metrics.data_wait]\nfloor = -1\n", "floor of `data_wait` is -1"),
    ('[metrics.loss]\nfamily = "deterministic"\n', "family of `loss` .*, expected exact = true"),
    ('[metrics."count/Conv2D"]\nexact = false\n', "family of `count/Conv2D` is deterministic"),
    ("detect = -0.5\n", "detect"), ("detect = nan\n", "detect"), ("least_jobs = 1\n", "least_jobs"),
    ("least_reps = 1\n", "least_reps"), ("budget_s = -5\n", "budget_s"), ("alpha = nan\n", "alpha"),
    ('commands = ["python \'x"]\n', "commands"), ('commands = [""]\n', "commands"),
]  # fmt: skip
PROJECT = [
    ("[tool.pipeprof.gates]\nalpha = 0.01\n", "unknown key `tool.pipeprof.gates`"), ("[project]\n", "no table"),
    ("[tool.pipeprof]\ngate = 1\n", "is not a table"), ("[project\n", "is not TOML"),
    ("[tool.pipeprof.gate.metrics.step]\nmin_efect = 1\n", "min_efect"),
    ("[tool.pipeprof.gate]\nlooks = [8, 5]\n", "looks"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "case"), [*(("pipeprof.toml", one) for one in OWN), *(("pyproject.toml", one) for one in PROJECT)]
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, name, case):
    text, message = case
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        find_policy(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("text", "meant"),
    [("alpa = 0.1\n", "alpha"), ("[metrics.data_wait]\nmin_efect = 1\n", "min_effect"),
     ("[[acknowledge]]\nresaon = 'x'\n", "reason")],
)  # fmt: skip
def test_a_misspelt_key_is_answered_with_the_one_that_is_meant(tmp_path, text, meant):
    path = tmp_path / "pipeprof.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="there is no key") as caught:
        find_policy(path)
    assert caught.value.hint == f"did you mean `{meant}`?"


def test_a_pipe_is_refused_with_what_to_do_instead(tmp_path):
    # as bash makes one for `--policy <(...)`
    reader, writer = os.pipe()
    os.mkfifo(tmp_path / "policy.toml")
    try:
        for path in (Path(f"/dev/fd/{reader}"), tmp_path / "policy.toml"):
            with pytest.raises(UsageError, match=rf"cannot read the policy `{path}`: it is a pipe, expected") as caught:
                find_policy(path)
            assert caught.value.hint == "write its content into a file and name that"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the policy .*nosuch\.toml"):
        find_policy(tmp_path / "nosuch.toml")
