"""`pipeprof render`: every form from a saved comparison; what is damaged is refused."""

import errno
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from comparisons import comparison

from pipeprof.cli.render import forms, render
from pipeprof.errors import RunError, UsageError
from pipeprof.report.compare import content as compare_content


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "compare.json"
    path.write_text(json.dumps(comparison()))
    return path


def call(*words):
    return CliRunner().invoke(render, [str(word) for word in words], catch_exceptions=True)


@pytest.mark.parametrize("form", list(forms()))
def test_every_form_is_printed(saved, form):
    done = call(saved, "--to", form)
    assert done.exit_code == 0
    assert done.output == forms()[form][1](compare_content.read(saved.read_bytes(), "x"))


def test_folder_gets_every_form(saved, tmp_path):
    assert call(saved, "-o", tmp_path / "out").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "annotations.txt", "comment.md", "compare.html", "compare.md", "junit.xml", "summary.md",
    ]  # fmt: skip


def test_wrong_words_are_usage_errors(saved, tmp_path):
    for words in (
        (saved,), (saved, "--to", "pdf"), (saved, "--to", "html", "-o", tmp_path), (tmp_path / "no", "--to", "html"),
        (saved, "-o", saved / "inside"),
    ):  # fmt: skip
        assert isinstance(call(*words).exception, UsageError)


def test_a_full_disk_leaves_no_half_file(saved, tmp_path, monkeypatch):
    def full(path, text, **_more):
        path.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert isinstance(call(saved, "-o", tmp_path / "out").exception, UsageError)
    assert list((tmp_path / "out").iterdir()) == []


PLAN = {"looks": [[5, 0.002], [20, 0.006]], "finds": {"repetitions": 20, "change": 0.17, "spread": 0.12}}


def undecided(plan):
    session = {"seconds": 740.0, "discarded": [], "disturbed": [], "stopped": "looks", "plan": plan}
    return comparison("inconclusive", session=session)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "[" * 5000, json.dumps(comparison(verdict="fine")), json.dumps(comparison(metrics=[{"name": 1}])),
     json.dumps(comparison(exit_code=True)), json.dumps(comparison(headline=float("nan"))),
     json.dumps(comparison()).encode("utf-16").decode("latin-1"),
     *(json.dumps(undecided(plan)) for plan in
       (7, {"finds": {"spread": "<b>"}}, {"finds": {"repetitions": 1.5}}, {"finds": []}))],
)  # fmt: skip
def test_what_is_no_comparison_is_refused_by_name(tmp_path, text):
    path = tmp_path / "damaged.json"
    path.write_text(text, encoding="utf-8")
    error = call(path, "--to", "markdown").exception
    assert isinstance(error, RunError)
    assert "damaged.json" in error.message


def test_saved_content_comes_back_as_it_was_and_a_newer_version_is_refused_but_no_addition():
    content = comparison()
    assert compare_content.read(json.dumps(content).encode(), "x") == content
    with pytest.raises(RunError, match="schema_version 2"):
        compare_content.read(json.dumps(comparison(schema_version=2, verdict="brand new")).encode(), "x")
    assert compare_content.read(json.dumps(comparison(novelty=1)).encode(), "x")["verdict"] == "regressed"


@pytest.mark.parametrize("form", ["github-comment", "github-summary", "html"])
def test_how_far_an_undecided_session_saw_is_in_every_form(tmp_path, form):
    path = tmp_path / "compare.json"
    path.write_text(json.dumps(undecided(PLAN)))
    said = call(path, "--to", form).output
    assert "step time varies by 12.0 % between repetitions (standard deviation)" in said
