"""The forms of a comparison for people and for CI: the same numbers, and no text that turns into markup."""

import re
import xml.etree.ElementTree as ET
from functools import partial
from html.parser import HTMLParser

import pytest
from comparisons import EXIT, HEADLINE, HOSTILE, comparison, hostile, metric
from hostile import check_markdown, without_scripts

from pipeprof.report.compare import comment as compare_comment
from pipeprof.report.compare import github as compare_github
from pipeprof.report.compare import junit as compare_junit
from pipeprof.report.compare import rows as compare_rows
from pipeprof.report.compare import sections as compare_sections

FORMS = {
    **{form: partial(compare_sections.text, form=form) for form in ("markdown", "html")}, "junit": compare_junit.text,
    "summary": compare_github.summary, "comment": compare_github.comment,
}  # fmt: skip
MARK = r"<!-- pipeprof-gate:[A-Za-z0-9._-]* -->"
exact = partial(metric, family="deterministic")
changed = [exact(f"count/{n}", "regressed") for n in range(12)]


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.words += data


def cases(*args, **other):
    root = ET.fromstring(compare_junit.text(comparison(*args, **other)))  # noqa: S314 - our own text
    return root, {case.get("name"): case for case in root.iter("testcase")}


@pytest.mark.parametrize("form", FORMS)
def test_headline_numbers_and_sides_are_there_whatever_the_order_and_however_little_is_known(form):
    text = FORMS[form](comparison())
    words = Page(text).words if form == "html" else text.replace("\\", "")
    plain = words.replace("`", "")
    told = ["demo", "12.0 ms", "+8.3 %", "[+6.9, +9.8]"]
    if form != "junit":
        told += [HEADLINE.replace("`", ""), "the wait for map decode grew to 2.1x", "1.00 ms", "2.10 ms", "90 %"]
        told += ["of the step's change", "(run, 8 repetitions), workload demo, revision 0123456789, measured 2026-01"]
    assert [said for said in told if said not in plain] == []
    metrics = [metric("b"), metric("a"), metric("c", "regressed")]
    assert FORMS[form](comparison(metrics=metrics)) == FORMS[form](comparison(metrics=metrics[::-1]))
    bare = comparison("incomparable", metrics=[], explanation=[], notes=[], base={}, new={}, headline="")
    assert "incomparable" in FORMS[form](bare)


def test_worst_metric_comes_first_and_one_of_an_unknown_family_is_not_lost():
    verdicts = ["unchanged", "improved", "inconclusive", "missing", "regressed"]
    ((_, rows),) = compare_rows.families(comparison(metrics=[metric(f"m{n}", one) for n, one in enumerate(verdicts)]))
    assert [one["verdict"] for one in rows] == ["regressed", "missing", "inconclusive", "improved", "unchanged"]
    ((title, rows),) = compare_rows.families(comparison(metrics=[metric(family="tertiary")]))
    assert (title, len(rows)) == ("Other metrics", 1)


@pytest.mark.parametrize(("base", "new", "unit", "shown"), [
    (1_500_000, 2_000_000, "ns", ("1.50 ms", "2.00 ms")), (0.0015, 2, "s", ("1.50 ms", "2.00 s")),
    (1.9982278665619941, 1.999759291157268, "s", ("1,998,227,867 ns", "1,999,759,291 ns")),
    (1536, 2048, "bytes", ("1.50 KiB", "2.00 KiB")), (41, 1234567, "", ("41", "1,234,567")),
    (0.123456, 0.5, "", ("0.1235", "0.5")), (1_000_000_000, 1_000_000_001, "bytes", ("954 MiB", "954 MiB + 1 B")),
    (472_103_249.4635412, 472_248_266.2352728, "bytes", ("450.2 MiB", "450.4 MiB")),
    (10_000_000.2, 10_000_000.4, "ns", ("10.0 ms", "10.0 ms")), (None, 5, "ns", ("-", "5 ns")),
    ("Conv2D", None, "", ("Conv2D", "-")), (3, 4, "rows", ("3 rows", "4 rows")),
])  # fmt: skip
def test_values_are_readable_and_never_hide_a_difference(base, new, unit, shown):
    assert compare_rows.values({"base": base, "new": new, "unit": unit}) == shown


def operator(number, share, **more):
    what = f"operator `o{number}`"
    return {"what": what, "kind": "operator", "name": f"o{number}", "change": "grew", "base": 1e6, "new": 2e6,
            "unit": "ns", "ratio": 2.0, "share": share, "text": f"{what} grew to 2.0x"} | more  # fmt: skip


def came(*numbers, change="appeared", share=None):
    return [
        {"what": f"operator `k{number}` {change}", "kind": "structure", "name": f"op k{number}", "change": change,
         "base": None, "new": "", "unit": "", "ratio": None, "share": share, "text": f"operator `k{number}` {change}"}
        for number in numbers
    ]  # fmt: skip


def sentences(*entries):
    return [line.text for line in compare_rows.lines(comparison(explanation=list(entries)))]


GREW = {"what": "operator Conv2D", "change": "appeared", "base": None, "new": 2e6, "unit": "ns", "share": 0.25}


@pytest.mark.parametrize(("entries", "count", "last"), [
    ([GREW], 1, "operator Conv2D appeared: - -> 2.00 ms, 25 % of the step's change"),  # without a text
    ([operator(number, 0.5) for number in range(92)], 10, "and 83 more: --format json"),
    ([operator(number, 0.5) for number in range(10)], 10, ("operator `o9` grew to 2.0x: 1.00 ms -> 2.00 ms, 50 % of the "
     "step's change")),
    ([operator(1, 0.9), *came(*range(47)), *came(*range(47, 93), change="vanished")], 2,
     "93 operators have other names: another library version?"),
    (came(*range(5)), 1, "5 operators appeared"),
    (came(0, 2) + came(1, change="vanished"), 3, "operator `k1` vanished"),
    (came(*range(5), change="changed"), 1, "5 operators have other types or shapes: another batch size?"),
])  # fmt: skip
def test_ten_lines_are_shown_and_operators_of_other_names_are_one(entries, count, last):
    found = sentences(*entries)
    assert (len(found), found[-1]) == (count, last)


def test_an_operator_that_came_with_a_large_share_is_not_folded():
    found = sentences(*came(0, share=0.4), *came(*range(1, 6), share=0.01))
    assert found == ["operator `k0` appeared, 40 % of the step's change", "5 operators appeared"]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_decided_has_no_cause_in_any_form(form):
    may = operator(1, 0.9, text="operator `o1` may have grown to 2.0x", proven=False)
    content = comparison("inconclusive", explanation=[may], headline="Inconclusive: step time +2.0 %")
    text = Page(without_scripts(FORMS[form](content))).words if form == "html" else FORMS[form](content)
    assert [said for said in ("Why", "because") if said in text] == []
    assert [said in text for said in ("Possible causes", "may have grown")] == [form != "junit"] * 2


def test_repetitions_needed_stand_beside_their_own_metric_only():
    noisy = metric("a", "inconclusive", reps_needed=12, reps_find=0.05, reason="too noisy")
    content = comparison("inconclusive", metrics=[noisy, metric("b", "inconclusive", reason="shaky")])
    text = compare_sections.text(content)
    assert "a: too noisy; about 12 repetitions per side would probably show a change of 5 %\n" in text
    assert "b: shaky\n" in text
    assert text.count("12 repetitions") == 1


@pytest.mark.parametrize(("ratio", "shown"), [
    (1.0, "0.0 %"), (0.9999, "0.0 %"), (1.0004, "0.0 %"), (0.95, "-5.0 %"), (1.083, "+8.3 %"), (None, "-"),
])  # fmt: skip
def test_no_change_has_no_sign_and_a_change_may_have_no_interval(ratio, shown):
    assert compare_rows.change(metric(ratio=ratio, ci_low=None)) == shown
    if ratio is not None:
        entry = {"ratio": ratio, "ci_low": ratio, "ci_high": ratio}
        assert compare_rows.change_and_interval(entry) == (shown, f"[{shown[:-2]}, {shown[:-2]}]")
        assert "-0 %" not in sentences(operator(1, ratio - 1, ratio=ratio))[0]


@pytest.mark.parametrize("verdict", sorted(EXIT))
def test_junit_fails_when_and_only_when_the_comparison_does(verdict):
    root, found = cases(verdict, metrics=[metric("a", verdict), metric("s", "regressed", family="secondary")])
    failed = EXIT[verdict] in (1, 3)
    assert [(found[name].find("failure") is not None) for name in ("comparison", "s")] == [failed] * 2
    assert int(root.get("failures")) == (3 if failed else 0)


def test_junit_skips_what_is_inconclusive_and_says_why():
    root, found = cases("inconclusive", metrics=[metric("a", "inconclusive", reason="needs 31")])
    assert found["a"].find("skipped").get("message") == "inconclusive: needs 31"
    assert root.get("skipped") == "2"


def test_html_fetches_nothing_and_runs_nothing():
    page = Page(without_scripts(FORMS["html"](hostile())))
    assert not {"script", "link", "img", "iframe", "object", "form", "a"} & set(page.tags)
    assert not [one for one in page.attributes if one[1].startswith("on") or one[1] in ("src", "href", "style")]
    assert "octocat" in page.words


def test_a_page_has_verdicts_in_their_colours():
    page = FORMS["html"](comparison(metrics=[metric(verdict="regressed"), metric("peak_memory", "improved")]))
    assert '<h1 class="bold red">Regressed' in page
    assert '<td class="bold red" data-of="verdict">regressed</td>' in page
    assert '<td class="green" data-of="verdict">improved</td>' in page


@pytest.mark.parametrize("form", ["markdown", "comment"])
def test_markdown_keeps_hostile_text_as_text(form):
    text = FORMS[form](hostile())
    outside = re.sub("`[^`\n]*`", "", text)
    markup = (r"(?<!\\)<(?!!-- pipeprof-gate|/?details>|/?summary>)", "@octocat", "#1", r"(?<!\\)\*\*b")
    assert [sign for sign in markup if re.search(sign, outside)] == []
    check_markdown(text)
    linked = compare_comment.plain("see https://evil.example or www.evil.example")
    assert [sign for sign in ("://", "www.e") if sign in linked] == []


def test_cut_keeps_whole_lines_says_so_and_leaves_nothing_folded_open():
    text = "".join(f"line {number}\n" for number in range(100))
    cut = compare_github.cut(text, 200, "cut here")
    assert len(cut.encode()) <= 200
    assert cut.endswith("\n\ncut here\n")
    assert text.startswith(cut.removesuffix("\ncut here\n"))
    assert compare_github.cut(text, 10_000, "cut here") == text
    folded = FORMS["markdown"](comparison(metrics=[metric(f"op/{n}", family="secondary") for n in range(100)]))
    cut = compare_github.cut(folded, 3000, "cut here")
    assert cut.endswith("\n</details>\n\ncut here\n")
    assert len(cut.encode()) <= 3000


def test_what_counts_is_never_folded_away():
    fine, fold = exact("count/a"), "<details><summary>Counts and sizes: 1 unchanged<"
    assert fold in FORMS["markdown"](comparison(metrics=[fine]))
    shown, _, folded = FORMS["markdown"](comparison(metrics=[fine, exact("count/b", "regressed")])).partition(fold)
    assert "Exact counts and sizes that changed" in shown
    assert ("of `b`" in shown, "of `a`" in shown, "of `a`" in folded) == (True, False, True)


def test_counts_that_changed_are_on_the_terminal_and_those_that_did_not_are_not():
    def text(*counts):
        return compare_sections.text(comparison(metrics=[metric("step_time_median"), *counts]))

    found = text(exact("count/same"), *changed)
    assert "Exact counts and sizes that changed, 10 of 12, not part of the verdict" in found
    assert "executions of `7` per step" in found
    assert "`same`" not in found
    assert "Exact counts" not in text(exact("count/same"))
    assert "Exact counts" not in text(exact("count/equal", "incomparable", base=1, new=1, ratio=1.0))


def test_annotations_are_few_escaped_lines_only_about_what_matters():
    line = compare_github.command("error", "a: b, c%", "x%\r\n::error::y")
    assert line == "::error title=a%3A b%2C c%25::x%25 :\\x3aerror::y"
    for content, count in (
        (comparison(metrics=[metric(f"m{n}", "regressed") for n in range(20)]), 10),
        (comparison("unchanged"), 0),
        (comparison(metrics=[metric("s", "regressed", family="secondary")]), 2),
    ):
        assert len(compare_github.annotation_lines(content)) == count
    assert all("\n" not in line for line in compare_github.annotation_lines(hostile()))


@pytest.mark.parametrize("verdict", ["inconclusive", "improved", "regressed"])
def test_what_does_not_decide_is_no_error_and_hides_no_reason(verdict):
    lines = compare_github.annotation_lines(comparison(verdict, metrics=[metric(verdict=verdict), *changed]))
    assert not any("count/" in line for line in lines)
    assert "the wait for map `decode` grew to 2.1x" in lines[-1]
    deciding = comparison("regressed", metrics=[metric("count/0", "regressed"), *changed])
    assert [line.startswith("::error") for line in compare_github.annotation_lines(deciding)] == [True, True, False]


def test_a_comment_is_found_again_and_each_workload_has_its_own():
    assert compare_github.comment(comparison()).startswith("<!-- pipeprof-gate:demo -->\n")
    assert compare_github.marker(comparison()) == compare_github.marker(comparison("improved"))
    evil = comparison()
    evil["new"]["workload"] = f"a--> {HOSTILE}"
    assert re.fullmatch(MARK, compare_github.marker(evil))
    names = ("\u8bad\u7ec3", "\u8bc4\u4f30", "a b", "a-b", "a--b", "x" * 81, "x" * 82, "")
    marks = [compare_github.marker(comparison() | {"workload": name, "new": {}, "base": {}}) for name in names]
    assert len(set(marks)) == len(names)
    assert [mark for mark in marks if not re.fullmatch(MARK, mark) or "--" in mark[4:-3]] == []


def test_secondary_metrics_of_a_comment_are_cut_to_the_worst():
    many = [metric(f"op/{n}", family="secondary") for n in range(100)]
    text = compare_github.comment(comparison(metrics=[metric(), *many]))
    assert text.count("own time of") == compare_github.COMMENT_ROWS
    assert "70 more are in the full report" in text


def test_a_number_of_repetitions_that_is_none_is_left_out():
    content = comparison()
    content["base"] |= {"reps": "/dev/zero"}
    assert "/dev/zero" not in compare_rows.sides(content)[0]
