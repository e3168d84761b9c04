"""ci/alerts.py: one issue for each alert, changed and closed as the alert is; against a GitHub of our own."""

import json
import os
import subprocess
import sys

import pytest
from action_steps import ROOT
from fake_github import BOT, REPOSITORY

from pipeprof.report.alerts import with_issues

COMMIT = "c" * 40


def alert(state="new", commit=COMMIT, subject="larger pictures", **other):
    return {
        "name": f"net-{commit[:10]}", "workload": "net", "state": state, "metric": "step_time_median", "unit": "ns",
        "anchor": None, "ratio": 1.2, "before": 4e7, "after": 4.8e7, "at": "2026-10-11T10:00:00+00:00",
        "commits": [commit[:10]], "because": "because work of `decode` per batch grew by 23.5 %", "also": [],
        "decided": {"by": "Ann", "why": "worth it", "on": "2026-10-20"} if state != "new" else None,
        "over_since": None, "commit": {"revision": commit, "subject": subject, "author": "Bo", "certain": True},
        "file": "data/maps.py", "place": "data/maps.py:2", "owners": ["@data-team"], "owner_by": "codeowners",
    } | other  # fmt: skip


@pytest.fixture
def tell(github, tmp_path):
    def run(*alerts, words=("tell",), **env):
        path = tmp_path / "alerts.json"
        path.write_text(json.dumps(with_issues({"schema_version": 1, "alerts": list(alerts)})))
        whole = {"PATH": os.environ["PATH"], "GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": REPOSITORY,
                 "GITHUB_TOKEN": "t0ken", **env}  # fmt: skip
        last = tmp_path / "told.md" if words == ("told",) else path
        command = [sys.executable, "-I", str(ROOT / "ci" / "alerts.py"), *words, str(last)]
        done = subprocess.run(command, env=whole, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr

    return run


def test_an_alert_has_one_issue_however_often_it_is_told_which_changes_with_it(tell, github):
    for _ in range(2):
        assert tell(alert(), alert(commit="d" * 40))[0] == 0
    assert [issue["title"] for issue in github.issues] == [
        "net: step time +20.0 % since cccccccccc", "net: step time +20.0 % since dddddddddd",
    ]  # fmt: skip
    body = github.issues[0]["body"]
    assert body.startswith("<!-- pipeprof-alert:net-cccccccccc cccccccccc -->\n")
    ratio = "step time +20.0 % (40.0 ms -\\> 48.0 ms), because work of"
    assert [said for said in (ratio, "data/maps.py:2", "For @data-team", "by Bo") if said not in body] == []
    assert github.written() == [("POST", f"/repos/{REPOSITORY}/issues")] * 2
    tell(alert(ratio=1.3, after=5.2e7))
    assert "+30.0 %" in github.issues[0]["title"]
    assert "+30.0 %" in github.issues[0]["body"]
    assert len(github.issues) == 2


@pytest.mark.parametrize(("state", "reason"), [("acknowledged", "not_planned"), ("wrong", "not_planned"), ("fixed", "completed")])  # fmt: skip
def test_a_settled_alert_closes_its_issue_and_opens_none(tell, github, state, reason):
    tell(alert(state))
    assert github.issues == []
    tell(alert())
    tell(alert(state))
    (issue,) = github.issues
    assert (issue["state"], issue["state_reason"]) == ("closed", reason)
    assert "by Ann on 2026-10-20: worth it" in issue["body"]
    written = len(github.written())
    tell(alert())  # opened again by a decision: a person sees it in the history, nobody is told twice
    assert len(github.written()) == written


def test_only_issues_of_the_bot_are_read(tell, github, tmp_path):
    tell(alert())
    github.issues.append(dict(github.issues[0], number=99, user={"login": "mallory"}, title="x"))
    github.issues.append(dict(github.issues[0], number=98, pull_request={}, title="x"))
    github.issues.reverse()
    assert tell(words=("told",))[0] == 0
    assert (tmp_path / "told.md").read_text() == "<!-- pipeprof-alert:net-cccccccccc cccccccccc -->\n"
    tell(alert("fixed"))
    assert github.written()[-1] == ("PATCH", f"/repos/{REPOSITORY}/issues/{github.issues[-1]['number']}")
    github.issues = [one for one in github.issues if one["user"]["login"] == "mallory"]
    tell(alert())
    assert [one["user"]["login"] for one in github.issues] == ["mallory", BOT]


def test_words_of_commits_and_authors_are_text(tell, github):
    wild = "x --> <!-- pipeprof-alert:net-0 --> @octocat ![p](//evil.example) <img src=x>"
    tell(alert(subject=wild, commit="e" * 40, place=None, file=wild, owners=[wild], owner_by="blame"))
    body = github.issues[0]["body"]
    assert body.count("<!--") - body.count("\\<!--") - body.count("&lt;!--") == 1 or body.count("<!-- p") == 1
    assert "For " not in body
    assert "](//evil" not in body.replace("\\](", "").replace("]\\(", "")
    assert "<img" not in body.replace("\\<img", "")


def test_a_dry_run_and_a_refusal_write_nothing_and_a_flood_of_new_alerts_is_no_flood_of_issues(tell, github):
    code, log = tell(alert(), PIPEPROF_DRY_RUN="1")
    assert (code, github.written()) == (0, [])
    assert "net-cccccccccc (new): would open" in log
    github.refuse = {"POST"}
    code, log = tell(alert())
    assert (code, "GitHub answered 403" in log) == (1, True)
    github.refuse = set()
    code, log = tell(*(alert(commit=f"{number:040x}") for number in range(11)))
    assert (code, "more than 10 new alerts" in log) == (1, True)
    assert len(github.issues) == 10


@pytest.mark.parametrize(
    "content", ['{"schema_version": 2, "alerts": []}', "[]", "no", '{"schema_version": 1, "alerts": [{}]}']
)
def test_what_holds_no_alerts_is_refused(tell, github, tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    code, log = tell(words=("tell", str(path)))
    assert (code, github.written()) == (1, [])
    assert "::error" in log
