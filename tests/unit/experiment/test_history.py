"""What a history is made of: its measurements, the conditions they had, and the commits between them."""

import os
import shutil

import pytest
from git_repository import GitRepository

from pipeprof.errors import RunError
from pipeprof.experiment import history
from pipeprof.record.history import Entry
from pipeprof.record.run import Rep
from pipeprof.report.document import text
from pipeprof.report.history import document


def entry(number, fingerprint="one", machine="box", **facts):
    of = {
        "created_at": f"2026-11-{number + 1:02}T10:00:00+00:00", "workload": "net", "machine": machine, "tag": None,
        "fingerprint_hash": fingerprint, "revision": None, "dirty": False, "label": "run", "reps": 1,
        "medians": {"step_time_median": 4e7}, "conditions": {"mindspore": fingerprint},
    }  # fmt: skip
    return Entry(**of | facts)


def told(conditions):
    return [(one["machine"], one["before"], one["after"]) for one in conditions]


def test_machines_that_measure_by_turns_are_no_change_of_conditions():
    entries = [entry(at, f"of-{'ab'[at % 2]}", machine="ab"[at % 2]) for at in range(20)]
    assert told(history._conditions(entries)) == [("b", "of-a", "of-b")]


def test_a_change_of_versions_is_told_of_each_machine_and_workload_by_turns():
    entries = [entry(at, f"{'ab'[at % 2]}{at // 10}", machine="ab"[at % 2]) for at in range(20)]
    other = [entry(at, "c", workload="other") for at in range(20)]
    mixed = [one for pair in zip(entries, other, strict=True) for one in pair]
    assert told(history._conditions(mixed)) == [("b", "a0", "b0"), ("a", "a0", "a1"), ("b", "b0", "b1")]


def test_a_metric_that_the_anchor_lacks_has_its_own_unit():
    anchored = {"anchor": "base", "ratios": {"step_time_median": 1.1}}
    entries = [entry(at, medians={"step_time_median": 4e7, "peak_memory": 2e9}, **anchored) for at in range(3)]
    found = {
        metric: [(one["anchor"], one["unit"]) for one in history._all_series("net", metric, entries)]
        for metric in ("step_time_median", "peak_memory")
    }
    assert found == {"step_time_median": [("base", "")], "peak_memory": [(None, "bytes")]}


def test_the_cause_of_more_instructions_is_the_stage_that_executes_them():
    entries = [
        entry(
            at, medians={"step_time_median": 4e7, "instructions": 3_000.0 + grown},
            parts={"instructions/decode": 1_000.0 + grown, "instructions/crop": 2_000.0},
            facts={"stage decode": "MapOp, workers 1", "stage crop": "MapOp, workers 1"},
            places={"stage decode": f"data.py:{2 + (grown > 0)}", "stage crop": "data.py:9"},
        )
        for at, grown in enumerate([0] * 6 + [60] * 6)
    ]  # fmt: skip
    (found,) = history._all_series("net", "instructions", entries)
    (change,) = found["changes"]
    assert (change["position"], change["cause"]["name"], change["cause"]["place_new"]) == (6, "decode", "data.py:3")
    assert "instructions of `decode`" in change["because"]


def test_subjects_may_be_empty_and_hold_any_line_separator(tmp_path, monkeypatch):
    repository = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    good = repository.commit()
    repository.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", "")
    bad = repository.commit(message="one\u2028two\ttabs")
    between = history._commits(entry(0, revision=good), entry(1, revision=bad))
    assert [commit["subject"] for commit in between["commits"]] == ["one\u2028two\ttabs", ""]


@pytest.mark.parametrize("dirty", [(True, False), (False, True), (None, False)])
@pytest.mark.parametrize("same", [True, False])
def test_code_that_was_not_committed_may_be_the_cause(dirty, same):
    good, bad = (
        entry(at, revision=("ab" if same else ["ab", "cd"][at]) * 20, dirty=one) for at, one in enumerate(dirty)
    )
    between = history._commits(good, bad)
    change = {"at": "2026-11-02", "before": 4e7, "after": 5e7, "ratio": 1.25, "because": "", "range": between}
    (series,) = history._all_series("net", "step_time_median", [good, bad])
    content = {
        "source": "net",
        "measurements": 2,
        "series": [series | {"changes": [change]}],
        "conditions": [],
        "left_out": [],
    }
    assert between["uncommitted"] == any(dirty)
    assert ("uncommitted" in text(document(content), "markdown")) == any(dirty)


@pytest.mark.parametrize(
    ("metric", "ratio", "hint"),
    [
        ("step_time_median", 1.25, "pipeprof bisect aaaaaaaaaa bbbbbbbbbb -- COMMAND"),
        ("peak_memory", 1.25, "pipeprof bisect aaaaaaaaaa bbbbbbbbbb --metric peak_memory -- COMMAND"),
        ("step_time_median", 0.75, ""),  # it refuses what became faster
        ("benchmark/load", 1.25, ""),  # which it does not run
    ],
)
def test_a_bisection_is_proposed_where_it_would_find_the_change(metric, ratio, hint):
    commits = [{"revision": letter * 40, "subject": "change"} for letter in "bc"]
    span = {"good": "a" * 40, "bad": "b" * 40, "uncommitted": False, "same_revision": False, "count": 2}
    span["commits"] = commits
    change = {"at": "2026-11-02", "before": 4e7, "after": ratio * 4e7, "ratio": ratio, "because": "", "range": span}
    both = [entry(at, medians={metric: 4e7}) for at in range(2)]
    (series,) = history._all_series("net", metric, both)
    content = {"source": "net", "measurements": 2, "conditions": [], "left_out": []}
    said = text(document(content | {"series": [series | {"changes": [change]}]}), "terminal")
    assert "2 commits after aaaaaaaaaa" in said
    assert ("pipeprof bisect" in said) == bool(hint)
    assert hint in said


@pytest.fixture
def run(make_run):
    """A run of three steps of 10 ns."""
    made = make_run({"step": [
        {"step": at, "kind": "train", "kind_step": at, "start_ns": at * 10, "end_ns": at * 10 + 10} for at in range(3)
    ]})  # fmt: skip
    made.manifest.reps = [Rep(rep=0, zero_realtime_ns=1, zero_monotonic_ns=0, exit_code=0)]
    made.manifest.state = "complete"
    made.save()
    return made


@pytest.mark.usefixtures("own_cache")
def test_a_run_is_measured_once_and_again_when_a_file_changes(run, monkeypatch):
    asked, real = [], history.measure
    monkeypatch.setattr(history, "measure", lambda one: asked.append(one.path) or real(one))
    first, again = (history.history_of(str(run.path), "", lambda _text: None) for _ in range(2))
    assert (first, len(asked)) == (again, 1)
    [series] = [one for one in first["series"] if one["metric"] == "step_time_median"]
    assert series["median"] == 10
    table = run.files("step")[0]
    os.utime(table, ns=(0, 0))
    assert history.history_of(str(run.path), "", lambda _text: None) == first
    assert len(asked) == 2
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(RunError, match=f"damaged file `{table}`"):
        history.history_of(str(run.path), "", lambda _text: None)


def test_a_run_that_was_copied_is_one_measurement(run, tmp_path):
    folder = tmp_path / "all"
    for name in ("one", "two"):
        shutil.copytree(run.path, folder / name)
    content = history.history_of(str(folder), "", lambda _text: None)
    assert content["measurements"] == 1
    assert [one["problem"] for one in content["left_out"]] == ["the same run is there twice, and counts once"]


def test_a_url_is_shown_without_its_secrets(monkeypatch):
    monkeypatch.setattr(history, "stored_entries", lambda _url, _say: ([entry(0)], []))
    content = history.history_of("s3://me:hush-hush@bucket/runs?region=x", "", lambda _text: None)
    assert content["source"] == "s3://bucket/runs"
    assert "hush-hush" not in text(document(content), "html")
