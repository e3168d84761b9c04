"""`pipeprof history --alerts`: the right commit and file, its owner, and nobody is told twice."""

import json

import numpy as np
import pytest
from git_repository import GitRepository
from histories import MS, of_commit
from in_process import ended

from pipeprof.record.baseline import save

SLOWER, LARGER = 10, 20  # the commits that make it slower, and its memory larger
MANY = 30


def measured(number, revision, wait, memory):
    noise = np.random.default_rng(100 + number)
    near = [1 + noise.normal(0, 0.005) for _ in range(3)]
    times = {"phase/data_wait": wait, "phase/compute": 36, "pipeline/decode": wait + 30, "step_time_median": wait + 36,
             "data_wait": wait, "step_time_p90": wait + 40, "peak_memory": memory / MS}  # fmt: skip
    values = {name: [ms * MS * one for one in near] for name, ms in times.items()}
    return of_commit(number, revision, values, month=10, places={"stage decode": "data/maps.py:2"})


@pytest.fixture
def repository(tmp_path, monkeypatch):
    found = GitRepository(tmp_path / "code")
    monkeypatch.chdir(found.root)
    found.commit({".github/CODEOWNERS": "/data/ @data-team\n", "data/maps.py": "a\nb\n", "model.py": "a\n"})
    return found


@pytest.fixture
def call(repository):
    def run(*words):
        code, out, said = ended("history", "net", "--alerts", *words, COLUMNS="100")
        return code, out or said

    return run


def grown(repository, wait=lambda number: 12 if number >= SLOWER else 4, start=0, end=MANY):
    """A measurement of each commit; gives the commits."""
    revisions = []
    for number in range(start, end):
        files = {"data/maps.py": f"a\nb {number}\n"} if number == SLOWER else {"notes.md": f"{number}\n"}
        if number == LARGER:
            files = {"model.py": "larger\n", "docs/new.md": "x\n"}
        revisions.append(repository.commit(files, f"change {number}"))
        memory = 1.2e9 if number >= LARGER else 1e9
        save(measured(number, revisions[-1], wait(number), memory), "baselines", "net", append=number > 0, replace=True)
    return revisions


def listed(call, *words):
    code, text = call("--format", "json", *words)
    assert code == 0, text
    return json.loads(text)["alerts"]


def test_an_alert_has_commit_file_and_owner_and_stands_for_all_metrics(repository, call):
    revisions = grown(repository)
    larger, slower = listed(call)
    assert (slower["commit"]["revision"], slower["commit"]["subject"]) == (revisions[SLOWER], f"change {SLOWER}")
    assert revisions[LARGER][:10] in larger["commits"]
    assert (slower["file"], slower["place"]) == ("data/maps.py", "data/maps.py:2")
    assert (slower["owners"], slower["owner_by"]) == (["@data-team"], "codeowners")
    assert {slower["metric"], *(one["metric"] for one in slower["also"])} == {"step_time_median", "data_wait"}
    assert slower["ratio"] == pytest.approx(1.2, rel=0.01) or slower["metric"] == "data_wait"
    assert (larger["metric"], larger["commit"]["revision"]) == ("peak_memory", revisions[LARGER])
    assert (larger["file"], larger["owner_by"]) == ("model.py", "commit")
    assert [one["state"] for one in (larger, slower)] == ["new", "new"]
    assert slower["name"] == f"net-{revisions[SLOWER][:10]}"
    text = " ".join(call()[1].split())
    assert "2 open, 0 settled" in text
    assert "owner @data-team (by CODEOWNERS)" in text


def test_what_was_decided_is_kept_with_who_and_why_and_counts_as_the_base_has_it(repository, call):
    grown(repository)
    name = listed(call)[1]["name"]
    code, _ = call("--decide", f"{name}=acknowledged", "--why", "worth it", "--by", "Ann")
    assert code == 0
    kept = json.loads((repository.root / "pipeprof-alerts.jsonl").read_text())
    assert (kept["alert"], kept["state"], kept["by"], kept["why"]) == (name, "acknowledged", "Ann", "worth it")
    assert [one["state"] for one in listed(call)] == ["new", "acknowledged"]
    assert [one["state"] for one in listed(call, "--base-ref", "HEAD")] == ["new", "new"]  # not committed
    repository.git("add", "pipeprof-alerts.jsonl")
    repository.git("commit", "--quiet", "-m", "decided")
    (_, decided) = listed(call, "--base-ref", "HEAD")
    assert (decided["state"], decided["decided"]["why"]) == ("acknowledged", "worth it")
    assert call("--decide", f"{name}=new", "--why", "no", "--by", "Bo")[0] == 0
    assert [one["state"] for one in listed(call)] == ["new", "new"]


def test_a_decision_that_cannot_be_is_refused(repository, call):
    grown(repository, end=16)
    name = listed(call)[0]["name"]
    for words, said in (
        (["--decide", f"{name}=perfect", "--why", "x"], "`perfect` is no state"),
        (["--decide", "net-0000000000=wrong", "--why", "x"], "there is no alert `net-0000000000`"),
        (["--decide", f"{name}=wrong"], "a decision needs --why"),
        (["--base-ref", "gone"], "git knows no revision `gone`"),
    ):
        code, message = call("--by", "Ann", *words)
        assert (code, said in message) == (2, True), message
    assert not (repository.root / "pipeprof-alerts.jsonl").exists()


def test_a_damaged_line_is_named_and_options_of_alerts_need_it(repository, call):
    grown(repository, end=3)
    repository.write({"pipeprof-alerts.jsonl": '\n{"alert": "net-1"}\n'})
    code, message = call()
    assert (code, "pipeprof-alerts.jsonl` line 2" in message) == (2, True)
    code, _, message = ended("history", "net", "--decide", "a=wrong")
    assert (code, "--decide is an option of alerts" in message) == (2, True)


def test_a_change_that_was_taken_back_is_fixed(repository, call):
    grown(repository, wait=lambda number: 12 if SLOWER <= number < 22 else 4)
    (slower,) = [one for one in listed(call) if one["metric"] != "peak_memory"]
    assert slower["state"] == "fixed"
    assert slower["over_since"]["at"].startswith("2026-10-23")


def test_the_log_tells_each_alert_in_one_week_only(repository, call):
    grown(repository)
    log = repository.root / "log.md"
    assert call("--weekly", str(log))[0] == 0
    first = log.read_text()
    assert first.count("<!-- pipeprof-alert:") == 2
    assert "- 2 open" in first
    assert call("--weekly", str(log))[0] == 0
    assert log.read_text() == first
    older = first.replace(first[first.index("## ") :][:11], "## 2026-W01")
    log.write_text(older)
    assert call("--weekly", str(log))[0] == 0
    whole = log.read_text()
    assert whole.startswith(older.rstrip())
    assert whole.count("<!-- pipeprof-alert:") == 2
    assert whole.rstrip().endswith("- nothing new\n- 2 open")
