"""The verbs `ab` and `qualify`: words in, room called, exit code out."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from git_repository import GitRepository

from pipeprof.cli.ab import ab, qualify, shares
from pipeprof.cli.options import budget_seconds
from pipeprof.errors import UsageError
from pipeprof.experiment import ab as ab_room
from pipeprof.experiment.arms import ArmWish
from pipeprof.experiment.qualify import rates as qualify_room
from pipeprof.verdict.gate.policy import Policy

SIDE = {"label": "x", "kind": "session", "workload": "train", "reps": 5, "git": None, "created_at": None}
CONTENT = {
    "schema_version": 1, "verdict": "regressed", "exit_code": 1, "headline": "Regressed: step time +8.3 %",
    "metrics": [], "explanation": [], "fingerprint": {"same": True, "differences": []}, "notes": ["a note"],
    "informational": False, "base": SIDE, "new": SIDE, "looks": [5], "next_look": None,
    "session": {"stopped": "decided"},
}  # fmt: skip
RATE = {"sessions": 20, "count": 0, "rate": 0.0, "low": 0.0, "high": 0.16, "verdicts": {"unchanged": 20}}
QUALIFIED = {
    "schema_version": 1, "alpha": 0.01, "slow_downs": [], "sees": [], "notes": [],
    "pool": {"rounds": 3, "repetitions": 12, "seconds": 60.0, "seconds_per_repetition": 5.0, "spread": {}},
    "false_alarms": RATE | {"mean_repetitions": 5.0},
}  # fmt: skip


@pytest.fixture
def called(tmp_path, monkeypatch):
    """What the rooms were asked for, in a repository with one commit on main."""
    repository = GitRepository(tmp_path / "project")
    repository.commit({"train.py": "1\n"})
    monkeypatch.chdir(repository.root)
    found = SimpleNamespace(repository=repository)

    def run_ab(wish, policy, say, trust):
        found.wish, found.policy, found.trust = wish, policy, trust
        say("base-000: 1.0 s")
        return CONTENT

    def run_qualify(order, sessions, policy, folder, say):
        found.order, found.sessions, found.policy, found.folder = order, sessions, policy, folder
        return QUALIFIED

    monkeypatch.setattr(ab_room, "run_ab", run_ab)
    monkeypatch.setattr(qualify_room, "run_qualify", run_qualify)
    return found


def call(verb, *words):
    return CliRunner().invoke(verb, words)


def test_the_arms_are_read_from_the_options(called):
    done = call(ab, "--base-ref", "main", "--new", "python 'my train.py' -x", "--new-env", "A=1", "--new-env", "B=2",
                "--budget", "10m", "--", "python", "train.py", "--lr", "1")  # fmt: skip
    assert done.exit_code == 1
    assert called.wish.base == ArmWish(ref="main")
    assert called.wish.new == ArmWish(command=("python", "my train.py", "-x"), env=("A=1", "B=2"))
    assert called.wish.command == ("python", "train.py", "--lr", "1")
    assert (called.wish.budget_s, called.wish.new_session, called.policy) == (600.0, False, Policy())


@pytest.mark.usefixtures("called")
def test_words_go_to_stderr_and_the_result_to_stdout_in_every_format():
    done = call(ab, "--base-ref", "main", "--format", "json", "--", "python")
    assert json.loads(done.stdout) == CONTENT | {"limits": None}
    assert done.stderr == "pipeprof: base-000: 1.0 s\n"
    for form in ("terminal", "markdown", "junit"):
        assert "step time +8.3 %" in call(ab, "--base-ref", "main", "--format", form, "--", "python").stdout


def test_the_policy_file_is_read(called, tmp_path):
    (tmp_path / "strict.toml").write_text("alpha = 0.001\n")
    call(ab, "--base-ref", "main", "--policy", str(tmp_path / "strict.toml"), "--", "python")
    assert (called.policy.alpha, called.trust["policy"]["origin"]) == (0.001, "file")


def test_the_settings_are_those_of_the_base(called):
    base = called.repository.commit({"pipeprof.toml": "alpha = 0.01\n"})
    called.repository.commit({"pipeprof.toml": "alpha = 0.0001\n", "train.py": "2\n"})
    call(ab, "--base-ref", "HEAD~1", "--new-ref", "HEAD", "--", "python", "train.py")
    path = "pipeprof.toml"
    assert called.policy.alpha == 0.01
    assert called.trust["policy"] == {"origin": "revision", "path": path, "revision": base, "changed": False}
    (policy, workload) = called.trust["edits"]
    (setting,) = policy["settings"]
    assert (policy["path"], setting["key"], setting["value"], setting["effect"]) == (path, "alpha", 0.0001, "looser")
    assert (workload["kind"], workload["path"]) == ("workload", "train.py")


def test_without_a_base_revision_the_working_tree_has_the_settings(called):
    called.repository.write({"pipeprof.toml": "alpha = 0.0001\n"})
    call(ab, "--base", "a", "--new", "b")
    assert (called.policy.alpha, called.trust["policy"]["changed"]) == (0.0001, True)
    assert (called.trust["base_revision"], called.trust["edits"]) == (None, [])


def test_qualify_asks_for_what_was_said(called, tmp_path):
    words = ["--sessions", "50", "--slow-down", "0.1,0.02", "--rounds", "4", "--seed", "9", "--budget", "1h30m"]
    done = call(qualify, *words, "-o", "q", "--", "python", "train.py")
    assert done.exit_code == 0, done.output
    order = called.order
    assert (order.slow_downs, order.rounds, order.seed, order.budget_s) == ((0.02, 0.1), 4, 9, 5400.0)
    assert (called.sessions, called.folder) == (50, tmp_path / "project" / "q")
    assert "False alarms" in done.stdout


@pytest.mark.usefixtures("called")
def test_a_command_with_an_open_quote_and_a_missing_one_are_usage_errors():
    error = call(ab, "--base", "python 'train", "--new", "b").exception
    assert isinstance(error, UsageError)
    assert "--base" in error.message
    assert isinstance(call(qualify).exception, UsageError)


@pytest.mark.parametrize(("text", "found"), [("90", 90), ("1.5m", 90), ("1h30m", 5400), (" 20s ", 20)])
def test_times_are_read(text, found):
    assert budget_seconds(None, None, text) == found


@pytest.mark.parametrize("text", ["", "0", "ten", "10x", "-5", "m5", "9" * 400])
def test_what_is_no_time_is_refused(called, text):
    done = call(ab, "--budget", text, "--base-ref", "main", "--", "python")
    assert done.exit_code == 2
    assert "10m" in done.output


@pytest.mark.parametrize("text", ["", "0", "a", "0.1,2"])
def test_what_is_no_share_is_refused(called, text):
    assert call(qualify, "--slow-down", text, "--", "python").exit_code == 2


def test_shares_are_sorted_and_come_once():
    assert shares(None, None, "0.1,0.05,0.1") == (0.05, 0.1)
