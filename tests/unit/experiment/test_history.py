"""What a history is made of: its measurements, the conditions they had, the commits between them, who owns a file."""

import os
import shutil
from pathlib import PurePosixPath

import pytest
from git_repository import GitRepository

from pipeprof.errors import RunError
from pipeprof.experiment import history
from pipeprof.experiment.alerts import author_of, files_of, fits, owners_of, writer_of
from pipeprof.record.git import Repository
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


def conditions(entries):
    return [(one["machine"], one["before"], one["after"]) for one in history._conditions(entries)]


def test_a_change_of_versions_is_told_of_each_machine_and_workload_and_one_by_turns_is_none():
    entries = [entry(at, f"of-{'ab'[at % 2]}", machine="ab"[at % 2]) for at in range(20)]
    assert conditions(entries) == [("b", "of-a", "of-b")]
    entries = [entry(at, f"{'ab'[at % 2]}{at // 10}", machine="ab"[at % 2]) for at in range(20)]
    other = [entry(at, "c", workload="other") for at in range(20)]
    mixed = [one for pair in zip(entries, other, strict=True) for one in pair]
    assert conditions(mixed) == [("b", "a0", "b0"), ("a", "a0", "a1"), ("b", "b0", "b1")]


def test_a_metric_that_the_anchor_lacks_has_its_own_unit():
    medians, ratios = {"step_time_median": 4e7, "peak_memory": 2e9}, {"step_time_median": 1.1}
    entries = [entry(at, medians=medians, anchor="base", ratios=ratios) for at in range(3)]
    for metric, found in (("step_time_median", [("base", "")]), ("peak_memory", [(None, "bytes")])):
        assert [(one["anchor"], one["unit"]) for one in history._all_series("net", metric, entries)] == found


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


def said(metric, entries, span, ratio, form):
    """The text of a history in which a metric changed by that ratio between the two entries."""
    change = {"at": "2026-11-02", "before": 4e7, "after": ratio * 4e7, "ratio": ratio, "because": "", "range": span}
    (series,) = history._all_series("net", metric, entries)
    content = {"source": "net", "measurements": 2, "conditions": [], "left_out": []}
    return text(document(content | {"series": [series | {"changes": [change]}]}), form)


@pytest.mark.parametrize("dirty", [(True, False), (False, True), (None, False)])
@pytest.mark.parametrize("revisions", ["aa", "ab"])
def test_code_that_was_not_committed_may_be_the_cause(dirty, revisions):
    both = [entry(at, revision=revisions[at] * 40, dirty=one) for at, one in enumerate(dirty)]
    between = history._commits(*both)
    assert between["uncommitted"] == any(dirty)
    assert ("uncommitted" in said("step_time_median", both, between, 1.25, "markdown")) == any(dirty)


@pytest.mark.parametrize(
    ("metric", "ratio", "options"),  # it refuses what became faster, and does not run benchmarks
    [("step_time_median", 1.25, " "), ("peak_memory", 1.25, " --metric peak_memory "), ("step_time_median", 0.75, None),
     ("benchmark/load", 1.25, None)],
)  # fmt: skip
def test_a_bisection_is_proposed_where_it_would_find_the_change(metric, ratio, options):
    span = {"good": "a" * 40, "bad": "b" * 40, "uncommitted": False, "same_revision": False, "count": 2}
    span["commits"] = [{"revision": letter * 40, "subject": "change"} for letter in "bc"]
    told = said(metric, [entry(at, medians={metric: 4e7}) for at in range(2)], span, ratio, "terminal")
    assert "2 commits after aaaaaaaaaa" in told
    assert ("pipeprof bisect" in told) == (options is not None)
    assert options is None or f"pipeprof bisect aaaaaaaaaa bbbbbbbbbb{options}-- COMMAND" in told


@pytest.fixture
def run(make_run):
    """A run of three steps of 10 ns."""
    times = [{"start_ns": at * 10, "end_ns": at * 10 + 10} for at in range(3)]
    made = make_run({"step": [{"step": at, "kind": "train", "kind_step": at, **one} for at, one in enumerate(times)]})
    made.manifest.reps = [Rep(rep=0, zero_realtime_ns=1, zero_monotonic_ns=0, exit_code=0)]
    made.manifest.state = "complete"
    made.save()
    return made


def history_of(folder):
    return history.history_of(str(folder), "", lambda _text: None)


@pytest.mark.usefixtures("own_cache")
def test_a_run_is_measured_once_and_again_when_a_file_changes(run, monkeypatch):
    asked, real = [], history.measure
    monkeypatch.setattr(history, "measure", lambda one: asked.append(one.path) or real(one))
    first, again = (history_of(run.path) for _ in range(2))
    assert (first, len(asked)) == (again, 1)
    [series] = [one for one in first["series"] if one["metric"] == "step_time_median"]
    assert series["median"] == 10
    table = run.files("step")[0]
    os.utime(table, ns=(0, 0))
    assert history_of(run.path) == first
    assert len(asked) == 2
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(RunError, match=f"damaged file `{table}`"):
        history_of(run.path)


def test_a_run_that_was_copied_is_one_measurement(run, tmp_path):
    folder = tmp_path / "all"
    for name in ("one", "two"):
        shutil.copytree(run.path, folder / name)
    content = history_of(folder)
    assert (content["measurements"], len(content["left_out"])) == (1, 1)
    assert "twice" in content["left_out"][0]["problem"]


def test_a_url_is_shown_without_its_secrets(monkeypatch):
    monkeypatch.setattr(history, "stored_entries", lambda _url, _say: ([entry(0)], []))
    content = history_of("s3://me:hush-hush@bucket/runs?region=x")
    assert content["source"] == "s3://bucket/runs"
    assert "hush-hush" not in text(document(content), "html")


@pytest.mark.parametrize(
    ("pattern", "path", "fit"),
    [
        ("*", "a/b.py", True), ("*.py", "a/b.py", True), ("*.py", "b.pyc", False), ("/*.py", "a/b.py", False),
        ("/*.py", "b.py", True), ("docs/*", "docs/a.md", True), ("docs/*", "docs/a/b.md", False),
        ("docs/", "x/docs/a/b.md", True), ("/docs/", "x/docs/a.md", False), ("/docs/", "docs/a/b.md", True),
        ("data", "data/x.py", True), ("data/x.py", "data/x.py", True), ("data/x.py", "a/data/x.py", False),
        ("**/logs", "a/b/logs/x", True), ("/a/**/c.py", "a/b/b/c.py", True), ("/a/**/c.py", "a/c.py", True),
        ("a?c.py", "abc.py", True), ("a.c", "abc", False), ("(", "(", True),
    ],
)  # fmt: skip
def test_a_rule_fits_as_it_does_on_github(pattern, path, fit):
    assert fits(pattern, path) == fit


def test_the_last_rule_counts_and_the_revision_decides(tmp_path):
    git = GitRepository(tmp_path)
    rules = "# who\n* @all\n/data/ @data-team team@example.org not-one # more\n/data/free.py\n"
    base = git.commit({".github/CODEOWNERS": rules, "data/map.py": "1\n2\n", "CODEOWNERS": "* @nobody\n"})
    later = git.commit({".github/CODEOWNERS": "* @me\n", "data/map.py": "1\n3\n"})
    here = Repository(tmp_path.resolve())
    owned = {path: owners_of(here, base, PurePosixPath(path)) for path in ("data/map.py", "data/free.py", "x.py")}
    assert owned == {"data/map.py": ["@data-team", "team@example.org"], "data/free.py": [], "x.py": ["@all"]}
    assert owners_of(here, later, PurePosixPath("data/map.py")) == ["@me"]
    name = git.git("log", "-1", "--format=%an")
    assert writer_of(here, later, PurePosixPath("data/map.py"), 2) == author_of(here, later) == name
    assert writer_of(here, later, PurePosixPath("gone.py"), 2) is None
    assert files_of(here, later) == [".github/CODEOWNERS", "data/map.py"]
    assert (author_of(here, "-x"), files_of(here, "-x")) == (None, [])
