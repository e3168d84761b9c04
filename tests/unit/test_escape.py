"""The one door for text that is not ours, one kind of output at a time."""

import json
import shlex
import subprocess

import hostile
import pytest
from every import every

from pipeprof import escape

every_name = every(hostile.NAMES, ascii)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"), ("größer", "größer"), ("\x1b[31m", "\\x1b[31m"), ("\x9b31m", "\\x9b31m"), ("a\r\nb\tc", "a b c"),
        ("rtl\u202e", "rtl\\u202e"), ("byte \udcff", "byte \\xff"), ("half \ud800", "half \\ud800"), ("a\u200db", "a\\u200db"),
        ("👩\u200d👩", "👩\u200d👩"), ("::error::x", ":\\x3aerror::x"), ("a ::group::x", "a :\\x3agroup::x"),
        ("at::native::add", "at::native::add"), ("test_x.py::test_y", "test_x.py::test_y"), ("x::warning::y", "x:\\x3awarning::y"),
        ("##[error]x", "#\\x23[error]x"), ("## heading", "## heading"), ("\\x1b", "\\x1b"), ("  indented", "  indented"),
    ],
)  # fmt: skip
def test_a_line_shows_every_character_and_commands_nothing(text, shown):
    assert escape.line(text) == shown
    assert escape.line(shown) == shown


def test_a_text_of_several_lines_keeps_them():
    assert escape.terminal("a\r\n\x1bb\n::error::c") == "a\n\\x1bb\n:\\x3aerror::c"


@every_name
def test_every_name_is_inert_in_every_kind_of_output(name):
    hostile.check_log(escape.line(name))
    hostile.check_log(escape.terminal(name))
    hostile.check_csv(f"{escape.csv_cell(name)}\n" if not set(str(name)) & set(',"') else "x\n")
    hostile.check_markdown(f"- {escape.markdown(name)}\n")
    hostile.check_markdown(
        "| a | b |\n|---|---|\n" + f"| {escape.markdown(name)} | {escape.markdown_code(name, in_table=True)} |\n"
    )
    hostile.check_markdown("\n".join(escape.markdown_block([name, name])) + "\n")
    hostile.check_html(
        f"<p>{escape.html(name)}</p><p>{escape.html_words(name)}</p><td class='{escape.html(name)}'>x</td>"
    )
    hostile.check_xml(f"<a b={escape.xml_attribute(name)}>{escape.xml(name)}</a>")
    hostile.check_annotations(f"::error title={escape.log_property(name)}::{escape.log_data(name)}")
    hostile.check_shown_json(escape.json_string(name))
    hostile.check_log(escape.shell_word(name))


@every_name
def test_json_keeps_the_true_name(name):
    if "\ud800" in name or "\udcff" in name:  # no JSON can hold it: see pipeprof.record.text
        return
    text = escape.json(json.dumps([name], ensure_ascii=False, indent=2))
    hostile.check_log(text)
    assert json.loads(text) == [name]


@every_name
def test_a_shell_reads_the_true_word(name):
    if "\x00" in name or "\ud800" in name or len(name) > 4000:
        return
    script = f"printf %s {escape.shell_word(name)}"
    found = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert found == name.encode("utf-8", "surrogateescape")


def test_plain_words_are_quoted_as_ever():
    assert escape.command(["python", "a b.py", "--x=1"]) == shlex.join(["python", "a b.py", "--x=1"])


@pytest.mark.parametrize("number", [1, -1, 2.5, None, True, "-5", "+1.5e-3", "12"])
def test_numbers_stay_numbers_in_a_table(number):
    assert escape.csv_cell(number) == number


def test_a_formula_is_text_in_a_table():
    assert [escape.csv_cell(text) for text in ("=1", "+a", "-a", "@x", " =1", "a=1")] == [
        "'=1",
        "'+a",
        "'-a",
        "'@x",
        "' =1",
        "a=1",
    ]


def test_code_in_a_sentence_stays_code_and_names_stay_readable():
    assert (
        escape.markdown("the wait for map `a_b*` grew: step_time_median")
        == "the wait for map `a_b*` grew: step_time_median"
    )
    assert escape.markdown("_x_ a|b") == "\\_x\\_ a\\|b"
    assert escape.html_words("a `<b>` c") == "a <code>&lt;b&gt;</code> c"


def test_a_fence_is_longer_than_what_it_holds():
    assert escape.markdown_block(["````", "x"], "sh") == ["`````sh", "````", "x", "`````"]


def test_a_summary_is_text_that_mentions_nobody():
    assert escape.markdown_summary("<b>@octocat & #1") == "&lt;b&gt;@\u200boctocat &amp; #\u200b1"
