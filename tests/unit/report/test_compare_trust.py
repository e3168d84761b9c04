"""Every form of a comparison says what it was judged by, and what the change does to that."""

import html
import json
import re
from functools import partial

import pytest
from comparisons import comparison, edit, setting, trust

from pipeprof.report.compare import content as compare_content
from pipeprof.report.compare import github as compare_github
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.compare import trust as compare_trust

FORMS = {
    **{form: partial(compare_sections.text, form=form) for form in ("terminal", "markdown", "html")},
    "summary": compare_github.summary, "comment": compare_github.comment,
}  # fmt: skip
ACCEPTED = {"metric": "data_wait", "max_ratio": 1.5, "reason": "planned", "expires": "2030-01-01", "workload": "resnet"}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_edits_and_departures(form):
    edits = [
        edit(settings=[setting(), setting("acknowledge", None, ACCEPTED)]),
        edit("baseline", "baselines/demo/m", "removed"), edit("ci", ".github/workflows/x.yml", "added"),
        edit("workload", "train.py"),
    ]  # fmt: skip
    content = comparison("unchanged", trust=trust(edits, [setting("least_jobs", 8, 2, "stricter")]))
    words = html.unescape(re.sub("</?code>|[`\\\\]", "", FORMS[form](content)))
    for said in (
        "this change edits the policy pipeprof.toml (alpha is 0.0001 instead of 0.008 (looser); accepts data_wait of",
        "resnet up to 1.5 times as large until 2030-01-01: planned (looser)): that counts once it is merged",
        "this change removes the baseline in baselines/demo/m: that counts once it is merged",
        "this change adds .github/workflows/x.yml, which may say what is measured and how",
        "this change edits train.py, which the measured command names",
        "policy: pipeprof.toml of the base revision bbbbbbbbbb",
        "baseline: baselines/demo of the base revision bbbbbbbbbb",
        "departs from the defaults: least_jobs is 2 instead of 8 (stricter)",
    ):
        assert said in words
    old = comparison()  # of before
    del old["trust"]
    assert "policy" not in FORMS[form](old)
    assert FORMS[form](comparison(trust=None)) == FORMS[form](old)


TREE = "policy: `pipeprof.toml` of the working tree"


@pytest.mark.parametrize(("origin", "more", "said"), [
    ("defaults", {"path": None}, "policy: the defaults; the base revision bbbbbbbbbb has no settings"),
    ("file", {"path": "/etc/gate.toml"}, "policy: `/etc/gate.toml`; the base revision is bbbbbbbbbb"),
    ("given", {}, "policy: given by the program; the base revision is bbbbbbbbbb"),
    ("working_tree", {}, f"{TREE} at revision bbbbbbbbbb"),
    ("working_tree", {"changed": True}, f"{TREE} at revision bbbbbbbbbb, not as committed"),
    ("working_tree", {"revision": None, "changed": True}, f"{TREE}, not as committed"),
])  # fmt: skip
def test_where_the_settings_are_from_is_one_line(origin, more, said):
    assert compare_trust.basis({"trust": trust(origin=origin, **more)})[0] == said


def test_long_lists_are_counted():
    many = [edit("ci", f".github/{number}") for number in range(20)]
    assert compare_trust.edits({"trust": trust(many)})[-1] == "and 8 more files"
    harmless = [setting(f"k{n}", effect="stricter") for n in range(12)]
    (line,) = compare_trust.edits({"trust": trust([edit(settings=[*harmless, setting("alpha")])])})
    assert "(`alpha` is 0.0001 instead of 0.008 (looser); `k0` is" in line
    assert "; and 1 more setting)" in line
    assert len(compare_trust.basis({"trust": trust(departures=harmless * 9)})) == 2 + 108


@pytest.mark.parametrize(("verdict", "edits", "kinds"), [
    ("unchanged", [edit(), edit("baseline", "b/w/m")], ["::warning", "::warning"]),
    ("regressed", [edit()], ["::error", "::warning"]), ("unchanged", [edit("workload", "train.py")], []),
])  # fmt: skip
def test_an_edit_of_the_rules_is_annotated_even_when_nothing_changed(verdict, edits, kinds):
    lines = compare_github.annotation_lines(comparison(verdict, trust=trust(edits)))
    assert [line.partition(" ")[0] for line in lines][: len(kinds) or None] == kinds
    assert verdict == "regressed" or not lines or "the policy" in lines[0]
    assert verdict == "regressed" or len(lines) == len(kinds)


def test_it_survives_being_saved_and_read():
    content = comparison(trust=trust([edit(settings=[setting()])], [setting("looks", [5, 8], [3])]))
    found = compare_content.read(json.dumps(content).encode(), "x")
    assert found["trust"] == content["trust"]
    del content["trust"]
    assert compare_content.read(json.dumps(content).encode(), "x")["trust"] is None
