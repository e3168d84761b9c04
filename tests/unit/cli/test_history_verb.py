"""`pipeprof history`: a change is dated to commits, has its cause from the record, and no change of machine makes one."""

import json
import re

import numpy as np
import pytest
from git_repository import GitRepository
from histories import FINGERPRINT, MS, of_commit
from in_process import ended

from pipeprof.record.baseline import save
from pipeprof.report import section_html

SLOWER_FROM = 14
MANY = 26


def measured(number, revision, slower, **fingerprint):
    """When slower, the wait for data is longer because the map works longer."""
    noise = np.random.default_rng(100 + number)
    wait = 12 * MS if slower else 4 * MS
    drawn = [(1 + noise.normal(0, 0.01), 1e9 * (1 + noise.normal(0, 0.001))) for _ in range(3)]
    near, memory = zip(*drawn, strict=True)
    work = {"phase/data_wait": wait, "phase/compute": 36 * MS, "pipeline/decode": wait + 30 * MS}
    values = {name: [ns * one for one in near] for name, ns in (work | {"step_time_median": wait + 36 * MS}).items()}
    values["peak_memory"] = memory
    return of_commit(number, revision, values, fingerprint=FINGERPRINT | {"mindspore": "2.9"} | fingerprint)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    found = GitRepository(tmp_path / "code")
    monkeypatch.chdir(found.root)
    return found


@pytest.fixture
def call(repository):
    def run(*words):
        code, out, said = ended("history", *words, COLUMNS="80")
        return code, out or said

    return run


@pytest.fixture
def as_json(call):
    def run(*words):
        code, text = call(*words, "--format", "json")
        assert code == 0, text
        return json.loads(text)

    return run


def written(repository, slower_from=SLOWER_FROM, upgraded_at=None):
    """A history of one measurement per second commit; the slow commit is one of those that were not measured."""
    revisions = []
    for number in range(MANY):
        repository.commit({"a.py": f"{number} a"}, f"part {number}")
        revisions.append(repository.commit({"a.py": f"{number} b"}, f"whole {number}"))
        more = {"mindspore": "2.10"} if upgraded_at is not None and number >= upgraded_at else {}
        fresh = measured(number, revisions[-1], number >= slower_from, **more)
        save(fresh, "baselines", "net", append=number > 0 and number != upgraded_at, replace=True)
    return revisions


def test_a_change_is_dated_to_the_commits_between_two_measurements_with_its_cause(repository, call, as_json):
    revisions = written(repository)
    good, bad = revisions[SLOWER_FROM - 1 : SLOWER_FROM + 1]
    content = as_json("net")
    assert (content["schema_version"], content["measurements"]) == (1, MANY)
    series = {one["metric"]: one for one in content["series"]}
    assert series["peak_memory"]["changes"] == []
    (change,) = series["step_time_median"]["changes"]
    assert change["ratio"] == pytest.approx(48 / 40, rel=0.02)
    assert (change["range"]["good"], change["range"]["bad"]) == (good, bad)
    subjects = [commit["subject"] for commit in change["range"]["commits"]]
    assert subjects == [f"whole {SLOWER_FROM}", f"part {SLOWER_FROM}"]
    assert (change["cause"]["kind"], change["cause"]["name"]) == ("pipeline_op", "decode")
    assert change["because"].startswith("because work of `decode` per batch grew by 2")
    code, text = call("net")
    assert code == 0
    assert max(map(len, text.splitlines())) <= 80
    plain = " ".join(text.split())
    assert "History of net: 26 measurements" in plain
    assert "because work of `decode` per batch grew" in plain
    assert f"2 commits after {good[:10]} up to {bad[:10]}:" in plain
    assert f"whole {SLOWER_FROM}" in text
    shown = as_json("net", "--metric", "peak_memory")["series"]
    assert {one["metric"] for one in shown} == {"peak_memory"}
    assert call("net", "--metric", "peak_memori") == (2, "no metric `peak_memori` was measured")


def test_another_version_splits_the_series_and_makes_no_change(repository, call, as_json):
    written(repository, slower_from=13, upgraded_at=13)
    content = as_json("net")
    steps = [one for one in content["series"] if one["metric"] == "step_time_median"]
    assert [len(one["points"]) for one in steps] == [13, 13]
    assert [one["changes"] for one in steps] == [[], []]
    (split,) = content["conditions"]
    assert split["differences"] == [{"name": "mindspore", "base": "2.9", "new": "2.10"}]
    assert "mindspore (2.9, now 2.10)" in " ".join(call("net")[1].split())


def test_the_page_has_a_chart_of_each_series(repository, call, tmp_path, monkeypatch):
    written(repository)
    code, _ = call("net", "--format", "html", "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert code == 0
    specs = [json.loads(text) for text in re.findall(r"<script type=.application/json.[^>]*>(.*?)</script>", page)]
    assert len(specs) == 2
    for spec in specs:
        points, levels = (layer["data"]["values"] for layer in spec["layer"][:2])
        assert len(points) == MANY
        assert {level["from"] for level in levels} <= set(range(MANY))
    assert "work of <code>decode</code> per batch grew" in page
    monkeypatch.setattr(section_html, "can_draw", lambda: False)
    assert call("net", "--format", "html", "-o", str(tmp_path / "plain.html"))[0] == 0
    plain = (tmp_path / "plain.html").read_text()
    assert "<script" not in plain
    assert "pipeprof[charts]" in plain


def test_nothing_measured_is_an_error_and_a_short_history_says_that_it_is_too_short(repository, call):
    assert call("net") == (3, "nothing was measured in `net`")
    for number in range(3):
        save(measured(number, f"{number:040x}", slower=False), "baselines", "net", append=number > 0)
    code, text = call("net")
    assert code == 0
    assert "changes are looked for in series of 10 measurements and more" in " ".join(text.split())


def test_a_folder_of_the_workloads_name_is_never_read_in_its_place(repository, call, as_json, make_run):
    written(repository)
    repository.write({"net/model.py": "", "net/parts/layer.py": ""})
    content = as_json("net")
    assert (content["measurements"], content["left_out"]) == (MANY, [])
    make_run({}).path.rename(repository.root / "net" / "nightly")
    content = as_json("net")
    assert (content["measurements"], [one["path"] for one in content["left_out"]]) == (MANY, ["net"])
    assert "./net is the folder" in " ".join(call("net")[1].split())
    assert "in `net/nightly`" in call("./net")[1]  # which holds nothing, but is a run
    assert call("net/parts")[1] == "nothing was measured in `net/parts`"


def test_a_root_that_is_given_is_read_and_no_folder_here(repository, call, as_json, make_run):
    written(repository)
    make_run({}).path.rename(repository.root / "nightly")
    assert call("nightly", "--root", "baselines") == (3, "no baseline of a workload `nightly` below `baselines`")
    for words in (("nightly",), ("./nightly", "--root", "baselines")):
        assert "in `nightly`" in call(*words)[1]
    repository.root.joinpath("baselines").rename(repository.root / "kept")
    assert call("net", "--root", "baselines")[0] == 3
    assert as_json("net", "--root", "kept")["measurements"] == MANY
