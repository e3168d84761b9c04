"""Where the gate's settings come from, and that a wrong key is named with its file."""

import os
from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.experiment.policy_file import find_policy
from pipeprof.verdict.gate.policy import Policy


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "jobs" / "small"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_without_a_file_the_defaults_hold(project):
    (project / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_policy(None).policy == Policy()


def test_pyproject_of_a_parent_is_found_up_to_the_git_root(project):
    (project / "pyproject.toml").write_text("[tool.pipeprof.gate]\nalpha = 0.05\n")
    assert find_policy(None).policy.alpha == 0.05
    (project / "jobs" / ".git").mkdir()
    assert find_policy(None).policy == Policy()


def test_the_nearest_file_wins_and_pipeprof_toml_before_pyproject(project):
    (project / "pyproject.toml").write_text("[tool.pipeprof.gate]\nalpha = 0.05\n")
    (project / "pipeprof.toml").write_text("[gate]\nalpha = 0.04\n")
    assert find_policy(None).policy.alpha == 0.04
    (project / "jobs" / "pipeprof.toml").write_text("alpha = 0.03\nlooks = [4, 6]\n")
    assert (find_policy(None).policy.alpha, find_policy(None).policy.looks) == (0.03, (4, 6))


@pytest.mark.parametrize("name", ["pipeprof.toml", "pyproject.toml"])
def test_a_file_that_is_there_and_cannot_be_read_is_not_passed_over(project, name):
    (project / name).symlink_to("gone.toml")
    with pytest.raises(UsageError, match=rf"cannot read the policy .*{name}"):
        find_policy(None)


def test_outside_a_repository_only_the_folder_itself_counts(tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pipeprof.toml").write_text("alpha = 0.05\n")
    monkeypatch.chdir(inner)
    assert find_policy(None).policy == Policy()


def test_a_named_file_of_any_name_is_read(tmp_path):
    path = tmp_path / "strict.toml"
    path.write_text("[tool.pipeprof.gate]\nalpha = 0.001\n[tool.pipeprof.gate.metrics.data_wait]\nmin_effect = 0.2\n")
    assert find_policy(path).policy.rule("data_wait").min_effect == 0.2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pipeprof.toml", "[gate]\nalhpa = 1\n", "alhpa"),
        ("pipeprof.toml", "alhpa = 1\n", "alhpa"),
        ("pipeprof.toml", "[gate]\nalpha = 0.01\n[gates]\n", "unknown key `gates`"),
        ("pyproject.toml", "[tool.pipeprof.gates]\nalpha = 0.01\n", "unknown key `tool.pipeprof.gates`"),
        ("pyproject.toml", "[tool.pipeprof]\ngate = 1\n", "is not a table"),
        ("pyproject.toml", "[tool.pipeprof.gate.metrics.step]\nmin_efect = 1\n", "min_efect"),
        ("pyproject.toml", "[project]\n", "no table"),
        ("pyproject.toml", "[project\n", "is not TOML"),
        ("pyproject.toml", "[tool.pipeprof.gate]\nlooks = [8, 5]\n", "looks"),
        ("pipeprof.toml", "looks = [5, 1000000000]\n", "looks has 1000000000, expected at most 1000"),
        ("pipeprof.toml", "[metrics]\nstep_time_p90 = true\n", "`metrics.step_time_p90` is True, expected a table"),
        ("pipeprof.toml", '[metrics]\nstep_time_p90 = "x"\n', "`metrics.step_time_p90` is 'x', expected \"decides\""),
        ("pipeprof.toml", "[metrics.data_wait]\nmin_efect = 1\n", "`metrics.data_wait`: .*min_efect"),
        ("pipeprof.toml", "[metrics.data_wait]\nmin_effect = nan\n", "min_effect of `data_wait` is nan"),
        ("pipeprof.toml", "[metrics.data_wait]\nmargin = inf\n", "margin of `data_wait` is inf"),
        ("pipeprof.toml", "[metrics.data_wait]\nfloor = -1\n", "floor of `data_wait` is -1"),
        (
            "pipeprof.toml",
            '[metrics.loss]\nfamily = "deterministic"\n',
            "family of `loss` is deterministic and exact is false, expected exact = true",
        ),
        ("pipeprof.toml", '[metrics."count/Conv2D"]\nexact = false\n', "family of `count/Conv2D` is deterministic"),
        ("pipeprof.toml", "detect = -0.5\n", "detect"),
        ("pipeprof.toml", "detect = nan\n", "detect"),
        ("pipeprof.toml", "least_jobs = 1\n", "least_jobs"),
        ("pipeprof.toml", "least_reps = 1\n", "least_reps"),
        ("pipeprof.toml", "budget_s = -5\n", "budget_s"),
        ("pipeprof.toml", "alpha = nan\n", "alpha"),
        ("pipeprof.toml", 'commands = ["python \'x"]\n', "commands"),
        ("pipeprof.toml", 'commands = [""]\n', "commands"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        find_policy(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("alpa = 0.1\n", "did you mean `alpha`?"),
        ("[metrics.data_wait]\nmin_efect = 1\n", "did you mean `min_effect`?"),
        ("[[acknowledge]]\nresaon = 'x'\n", "did you mean `reason`?"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_one_that_is_meant(tmp_path, text, hint):
    path = tmp_path / "pipeprof.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="there is no key") as caught:
        find_policy(path)
    assert caught.value.hint == hint


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
