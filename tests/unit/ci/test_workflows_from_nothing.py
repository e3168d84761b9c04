"""The workflows of examples/github in a fresh repository: from nothing to green, and red with the cause."""

import json

import pytest
import yaml
from workflow_steps import TRAINING, WORKFLOWS, Forge

pytestmark = pytest.mark.slow

BASELINE, AGAINST_IT, IN_TURN, SELF_TEST, ALERTS = (
    "gate-baseline.yml", "gate-self-hosted.yml", "gate-hosted.yml", "gate-self-test.yml", "gate-alerts.yml",
)  # fmt: skip
FOLD = "<details>"


@pytest.fixture
def forge(tmp_path):
    return Forge(tmp_path)


def above(job):
    return job.comment().partition(FOLD)[0]


def test_each_workflow_is_played_here():
    assert {path.name for path in WORKFLOWS.glob("*.yml")} == {
        BASELINE, AGAINST_IT, IN_TURN, SELF_TEST, ALERTS, "gate-comment.yml",  # of the last one: test_gate_comment.py
    }  # fmt: skip


def test_hosted_same_code_is_green_and_slower_code_red_with_its_cause(forge):
    same = forge.pull_request(IN_TURN, forge.change())
    assert same.green, same.log
    assert "no slower than before" in above(same)
    slower = forge.pull_request(IN_TURN, forge.change(decode=13.0))
    assert not slower.green
    assert slower.annotations[0][0] == "error"
    assert "slower than before" in above(slower)
    assert "`decode`" in above(slower)
    assert "at `train.py:3` (before: `train.py:2`)" in above(slower)
    assert "2 warm-up runs" in above(slower)


@pytest.mark.parametrize(("second", "state"), [("", "confirmed"), ("1", "not_confirmed")])
def test_hosted_a_second_runner_has_to_say_the_same_where_the_policy_asks(forge, second, state):
    forge.main = forge.origin.commit({"pipeprof.toml": 'confirm = "other-runner"\n'}, "two runners")
    forge.env = {"SHIM_EQUAL_IN": "confirm" if second else ""}
    job = forge.pull_request(IN_TURN, forge.change(decode=13.0))
    assert job.before.green, job.before.log
    assert "slower than before on one runner" in above(job.before)
    assert job.green == (state == "not_confirmed"), job.log
    assert (
        json.loads((job.artifacts["pipeprof-gate-confirmed"] / "compare.json").read_text())["confirmation"]["state"]
        == state
    )
    assert ("two runners found it" if state == "confirmed" else "**Not confirmed:**") in above(job)
    assert forge.pull_request(IN_TURN, forge.change()).before is None  # nothing is to be confirmed


def test_the_self_test_is_green_because_the_check_is_red_and_red_when_nobody_notices(forge):
    noticed = forge.push(SELF_TEST)
    assert noticed.green, noticed.log
    assert noticed.steps["gate"]["outputs.verdict"] == "regressed"
    forge.env = {"SHIM_IGNORES_PLANT": "1"}
    assert not forge.push(SELF_TEST).green


def test_a_run_that_waits_is_cancelled_by_none_but_a_newer_one_of_its_own():
    """Of runs that wait in a group GitHub keeps the newest only, also without `cancel-in-progress`."""
    groups = {}
    for path in sorted(WORKFLOWS.glob("*.yml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        group = (content.get("concurrency") or {}).get("group", "")
        if path.name == BASELINE:
            assert group == "", "each merge has to be measured"
        elif "pull_request" in content[True]:
            assert "github.event.pull_request.number" in group
        groups.setdefault(group, []).append(content["name"])
    assert all(len(set(names)) == 1 for names in groups.values())


def test_the_branch_of_baselines_holds_nothing_else_and_all_of_them(forge):
    """Whatever git ignores, and also when a folder of the repository is called as the workload is."""
    ignores = {".gitignore": "*.parquet\n", "train/model.py": "", "train/parts/layer.py": ""}
    forge.main = forge.origin.commit(ignores, "a folder called train")
    for _ in range(2):
        job = forge.push(BASELINE)
        assert job.green, job.log
    kept = forge.origin.git("ls-tree", "-r", "--name-only", "performance-baselines").splitlines()
    assert {path.split("/")[0] for path in kept} == {"train"}
    assert {path.rpartition("/")[2] for path in kept} >= {"baseline.json", "measures.parquet", "history.jsonl"}
    assert len({path.split("/")[1] for path in kept}) == 1, kept
    assert "2 measurements" in job.summary


def test_each_merge_tells_since_when_it_is_slower(forge):
    for number in range(11):
        if number == 6:
            forge.merge("larger pictures", decode=14.0)
        job = forge.push(BASELINE)
        assert job.green, job.log
    changes = job.summary.partition("\n|")[0]
    assert "**step time +" in changes
    assert "`decode`" in changes
    assert "larger pictures" in changes
    assert "<svg" in (job.artifacts["performance-history"] / "history.html").read_text(encoding="utf-8")


def test_a_new_machine_begins_a_series_and_the_job_stays_green(forge):
    assert forge.push(BASELINE).green
    forge.env = {"SHIM_CPU": "another"}
    job = forge.push(BASELINE)
    assert job.green, job.log


def test_self_hosted_from_nothing_through_the_warm_up_to_a_verdict(forge):
    first = forge.pull_request(AGAINST_IT, forge.change())
    assert not first.green
    assert (
        "error",
        "",
        "There is no baseline yet: run the workflow 'Performance baseline' first.",
    ) in first.annotations

    for _ in range(3):
        appended = forge.push(BASELINE)
        assert appended.green, appended.log
    warm = forge.pull_request(AGAINST_IT, forge.change())
    assert warm.green, warm.log
    assert "3 of 8 jobs are collected; until then only changes above 30 % fail" in above(warm)
    assert not forge.pull_request(AGAINST_IT, forge.change(compute=20.0, decode=15.0)).green
    assert forge.pull_request(AGAINST_IT, forge.change(decode=12.0)).green

    for _ in range(5):
        appended = forge.push(BASELINE)
        assert appended.green, appended.log
    same = forge.pull_request(AGAINST_IT, forge.change())
    assert same.green
    assert same.steps["gate"]["outputs.verdict"] == "unchanged"
    slower = forge.pull_request(AGAINST_IT, forge.change(decode=14.0))
    assert not slower.green
    assert slower.steps["gate"]["outputs.verdict"] == "regressed"
    assert "`decode`" in above(slower)
    assert "`train.py:3` (before: `train.py:2`)" in above(slower)
    assert "Performance of `train`" in above(slower)
    assert "compared with 64 stored repetitions" in above(slower)

    forge.env = {"SHIM_MINDSPORE": "3.0"}
    other = forge.pull_request(AGAINST_IT, forge.change())
    assert not other.green
    assert "different conditions (`mindspore`)" in above(other)
    renewed = forge.push(BASELINE)
    assert renewed.green
    assert "started over" in renewed.log
    assert "1 of 8 jobs are collected" in above(forge.pull_request(AGAINST_IT, forge.change()))


def test_a_fork_is_red_where_it_is_not_measured(forge):
    forge.is_fork = True
    job = forge.pull_request(AGAINST_IT, forge.change())
    assert not job.green
    assert any(level == "error" and "A fork's code does not run" in text for level, _, text in job.annotations)
    assert "gate" not in job.steps


PLANTED = {5: {"decode": 13.0}, 10: {"decode": 13.0, "compute": 12.0}, 15: {"decode": 16.0, "compute": 12.0}}


def grown(forge):
    """Twenty commits on main, each measured, three of them slower; gives those."""
    times, slow = {}, []
    for number in range(20):
        times = PLANTED.get(number, times)
        files = {"train.py": TRAINING.format(**{"compute": 10.0, "decode": 10.0} | times), f"docs/{number}.md": "new\n"}
        forge.main = forge.origin.commit(files, f"change {number}")
        slow += [forge.main] if number in PLANTED else []
        job = forge.push(BASELINE)
        assert job.green, job.log
    return slow


def test_three_planted_changes_are_three_issues_and_what_was_accepted_stays_silent(forge, github):
    forge.env = {"GITHUB_API_URL": github.url}
    forge.origin.commit({".github/CODEOWNERS": "/train.py @data-team\n"}, "owners")
    slow = grown(forge)
    job = forge.push(ALERTS)
    assert job.green, job.log
    found = {issue["body"].partition("commit ")[2][:10]: issue for issue in github.issues}
    assert sorted(found) == sorted(commit[:10] for commit in slow)
    for issue in found.values():
        assert "- file train.py" in issue["body"]
        assert "For @data-team" in issue["body"]
    assert job.summary.count("- new: ") == 3
    log = forge.origin.git("show", "performance-baselines:alerts-train.md")
    assert (log.count("- new: "), "- 3 open" in log) == (3, True)

    written = len(github.written())
    assert forge.push(ALERTS).green
    assert len(github.written()) == written
    decision = {"alert": f"train-{slow[1][:10]}", "state": "acknowledged", "by": "Ann", "why": "meant", "on": "2026-01-05",
                "places": [slow[1][:10]]}  # fmt: skip
    forge.main = forge.origin.commit({"pipeprof-alerts.jsonl": json.dumps(decision) + "\n"}, "accepted")
    assert forge.push(ALERTS).green
    assert [issue["state"] for _, issue in sorted(found.items(), key=lambda pair: pair[0] != slow[1][:10])] == [
        "closed", "open", "open",
    ]  # fmt: skip
    github.issues.clear()
    assert forge.push(ALERTS).green
    assert len(github.issues) == 2
    assert not any(slow[1][:10] in issue["body"] for issue in github.issues)
