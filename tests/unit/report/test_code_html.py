"""Code on a page: in colours, copied as it was; and the path of a tuning as a picture."""

import html
import re

import pytest
from documents import FINAL, PATCH, trial, tuned
from hypothesis import given
from hypothesis import strategies as st

from pipeprof import escape
from pipeprof.report import document, tune_text
from pipeprof.report.code_html import code_lines
from pipeprof.report.pictures.path import Step, path_of

LINES = st.lists(st.text(st.sampled_from("ab1 +-@=#\"'\\\t<&\x1b."), max_size=30), max_size=4)


def bare(lines):
    return html.unescape(re.sub("<[^>]*>", "", "".join(lines)))


@pytest.mark.parametrize("language", ["python", "diff", "text"])
@given(code=LINES)
def test_what_is_copied_is_what_was_there(language, code):
    keep = "\n" if language == "text" else "\t"  # a patch needs its tabs
    shown = [keep.join(map(escape.line, line.split(keep))) for line in code]
    assert bare(code_lines(code, language)) == "\n".join(shown)


def kinds(line, language):
    return re.findall('<span class="([a-z]+)">', "".join(code_lines([line], language)))


def test_the_parts_of_python_and_of_a_patch_have_their_colours():
    assert kinds("return f(2, size='2 # no', at=True)  # why", "python") == ["keyword", "figure", "argument", "text", "argument", "keyword", "comment"]  # fmt: skip
    assert kinds("returned = in_2 == 3", "python") == ["figure"]
    assert kinds("+a = 1", "diff") == ["added", "figure"]
    assert kinds("-a", "diff") == ["removed"]
    assert kinds("--- a/train 1.py", "diff") == kinds("@@ -1 +1 @@ def f():", "diff") == ["place"]
    assert kinds("return 2", "text") == []


def at(attribute, text):
    return [float(value) for value in re.findall(f'{attribute}="([0-9.]+)%"', text)]


def test_each_step_of_the_path_stands_on_one_scale():
    drawn = "".join(path_of([
        Step("one", "", "good", "", (2.0, 3.0), (2.0, 1.0, 3.0)), Step("two", "", "low", "", None, None),
    ]))  # fmt: skip
    assert at(" x", drawn) == [50.0]
    assert at("width", drawn)[1] == 45.0
    assert at("cx", drawn) == [50.0]
    assert at("x1", drawn) == [5.0, 5.0, 5.0]  # the speed before, the low end of what was measured, the speed before
    assert drawn.count("<circle") == drawn.count(">measured x2.00<") == drawn.count(">not measured<") == 1
    assert path_of([]) == []


def test_a_step_beyond_the_scale_stands_at_its_end():
    drawn = "".join(path_of([Step("one", "", "good", "", None, (50.0, 40.0, 60.0))]))
    assert at("cx", drawn) == [95.0]
    assert ">measured x50.00<" in drawn


def test_the_page_has_the_path_and_the_patch_beside_the_answer():
    trials = [trial("accepted"), trial("failed", ratio=None, interval=None)]
    found = document.text(tune_text.document(tuned("proven", FINAL, trials, patch=PATCH)), "html")
    first = found.partition('<section class="first">')[2].partition("</section>")[0]
    assert first.count('<li class="stage good">') == 2  # the accepted one, and the proof
    assert first.count('<li class="stage bad">') == 1
    assert '<span class="added">' in first
    assert "<th" not in first


@pytest.mark.slow
def test_a_button_copies_the_patch(opened, browser):
    patch = PATCH | {"diff": PATCH["diff"].replace("a = a", "\ta = 'é' + a")}
    page = opened(document.text(tune_text.document(tuned("proven", FINAL, [trial("accepted")], patch=patch)), "html"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy")
    button.press("Enter")
    page.wait_for_function("() => document.querySelector('.copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == patch["diff"].removesuffix("\n")
