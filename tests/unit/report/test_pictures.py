"""Pictures beside the answer: what limits is marked, by its name in the user's code, and the numbers are the answer's.

Also code on a page: in colours, copied as it was; and the path of a tuning.
"""

import html as escaped
import io
import re

import pytest
from documents import FINAL, PATCH, trial, tuned
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeprof import escape
from pipeprof.report import document, html, terminal, tune_text
from pipeprof.report.answer import Answer
from pipeprof.report.build import build
from pipeprof.report.charts.script import javascript
from pipeprof.report.code_html import code_lines
from pipeprof.report.page import MOST_LETTERS, STYLE, digest, page, shortened
from pipeprof.report.pictures import picture_of
from pipeprof.report.pictures.flow import MOST_STAGES, Stage, busiest, stages_of
from pipeprof.report.pictures.panels import panels
from pipeprof.report.pictures.parts import LEAST, bar_of
from pipeprof.report.pictures.path import Step, path_of
from pipeprof.verdict.data_cause import CODES as DATA

LINES = st.lists(st.text(st.sampled_from("ab1 +-@=#\"'\\\t<&\x1b."), max_size=30), max_size=4)
STAGE = Stage("s", "map", "", 1, 0.5, 1.0, None, None, limits=False)


@pytest.fixture
def late(normal):
    """A report whose verdict begins with the data pipeline."""
    content = build(normal)
    lead = next(cause for cause in content["verdict"]["causes"] if cause["code"] in DATA)
    content["verdict"]["causes"] = [lead, *content["verdict"]["causes"]]
    return content


def test_the_stage_that_the_verdict_names_is_the_one_that_is_marked(late):
    stages, found = stages_of(late), late["diagnosis"]
    (limiting,) = [stage for stage in stages if stage.limits]
    assert (limiting.name, stages[-1].name) == (found["op_name"], "training")
    assert (limiting.busy, limiting.work_ns) == (found["facts"]["utilisation"], found["facts"]["work_ns"])
    bar = bar_of(late)
    assert abs(sum(part.share for part in bar.parts) - 1) < len(bar.parts) * LEAST
    assert [part.name for part in bar.parts if part.limits] == ["waiting for data"]


@pytest.mark.parametrize(("code", "place"), [
    ("train.py:9", "train.py:9"), ("lib/site-packages/mindspore/dataset/a.py:7", "train.py:5"),
])  # fmt: skip
def test_the_place_of_a_stage_is_the_users_line_where_a_library_has_its_code(late, code, place):
    *others, source = late["pipeline"]["load"]
    late["pipeline"]["load"] = [*others, source | {"site": "train.py:5", "code": code}]
    assert [stage.place for stage in stages_of(late) if stage.op_id == source["op_id"]] == [place]


def test_what_interrupts_the_training_is_drawn_within_the_loop_that_its_gain_is_of(normal):
    content = build(normal)
    loop = {"rep": 0, "rank": 0, "detail": "", "cause": "", "site": "", "count": 1, "start_ns": 0, "share": None}
    rows = [loop | {"part": part, "dur_ns": ns} for part, ns in (("import", 900), ("training", 60), ("evaluation", 40))]
    content["run_account"] |= {"parts": rows, "leading": rows[-1] | {"loop_share": 0.4, "loop_ns": 100}}
    content["verdict"]["causes"] = [content["verdict"]["causes"][0] | {"code": "part", "detail": "evaluation"}]
    bar = bar_of(content)
    assert (bar.title, [part.name for part in bar.parts if part.limits]) == ("The training loop", ["evaluation"])
    assert {part.name: part.share for part in bar.parts} == {"training steps": 0.6, "evaluation": 0.4}
    assert not any(stage.limits for stage in stages_of(content))


def test_where_nothing_was_measured_there_is_no_picture(empty):
    assert picture_of(build(empty)) == []


def test_the_stage_that_limits_and_the_training_are_shown_of_however_many():
    slow, training = STAGE._replace(name="slow", busy=0.0, limits=True), STAGE._replace(name="training", busy=None)
    many = [*(STAGE._replace(name=str(n), busy=n / 100) for n in range(20)), slow, training]
    shown = [stage.name for stage in busiest(many)]
    assert shown == [str(n) for n in range(20 - MOST_STAGES + 2, 20)] + ["slow", "training"]


def test_what_mindspore_puts_behind_the_pipeline_is_no_stage_of_it(normal):
    content = build(normal)
    before = [(stage.name, stage.feeds) for stage in stages_of(content)]
    [pipeline] = content["pipeline"]["pipelines"]
    first, *others = pipeline["ops"]
    sink = {**first, "op_id": 9, "op_type": "EpochCtrlOp", "name": None, "consumers": []}
    pipeline["ops"] = [sink, {**first, "consumers": [9]}, *others]
    assert [(stage.name, stage.feeds) for stage in stages_of(content)] == before


def test_every_part_of_a_page_is_in_its_contents_and_only_its_style_and_script_are_allowed(normal, monkeypatch):
    text = html.text(build(normal))
    assert re.findall(r'<a href="#([a-z-]+)">', text) == re.findall(r'<section id="([a-z-]+)">', text)
    policy = f"default-src 'none'; style-src {digest(STYLE)}; script-src {digest(javascript('page'))}"
    assert f'content="{policy}"' in text
    assert f"content=\"default-src 'none'; style-src {digest(STYLE)}\"" in page("a page without anything to do", [])
    monkeypatch.setattr(html, "answer_of", lambda _: Answer("Slow.", place="data/set.py:30", cause="`a/b` is slow"))
    text = html.text(build(normal))  # a path is broken behind a folder
    assert "<dd>data/<wbr>set.py:30</dd>" in text
    assert "<code>a/<wbr>b</code> is slow" in text


def test_a_long_name_is_cut_in_its_middle_and_whole_in_its_title():
    name = "Default/network-WithLossCell/<_backbone>/1-Dense/MatMul-op0"
    found = re.fullmatch(r'<span class="short" title="([^"]*)">(Default/.*/1-Dense/MatMul-op0)</span>', shortened(name))
    assert found[1] == name.replace("<", "&lt;").replace(">", "&gt;")
    assert len(escaped.unescape(found[2])) == MOST_LETTERS
    assert shortened("a sentence of many words that is long") == "a sentence of many words that is long"


def on_terminal(content, rows):
    """The lines that a terminal of so many rows shows."""
    console = Console(file=io.StringIO(), width=80, height=rows, force_terminal=True, no_color=True)
    terminal._first(console, content)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()


def test_a_terminal_with_room_shows_the_stages_as_bars_and_a_pipe_none(late):
    bars = [line for line in on_terminal(late, rows=50) if re.match("[^ ].{27} [█▏▎▍▌▋▊▉░]{28} ", line)]
    assert [line.split()[0] for line in bars] == [stage.short.split()[0] for stage in stages_of(late)]
    assert [line.split()[0] for line in bars if line.endswith("limits")] == [late["diagnosis"]["op_name"]]
    assert max(map(len, bars)) <= 80
    assert "░" not in terminal.text(late)


def test_the_first_screen_stays_one_screen(late):
    short = len(on_terminal(late, rows=10))
    heights = range(short, short + 12)
    shown = [len(on_terminal(late, rows=rows)) for rows in heights]
    assert all(lines <= max(short, rows - 2) for lines, rows in zip(shown, heights, strict=True))
    assert shown[-1] > short


def depth(op_id, t_ns, mean, low, high):
    return {"op_id": op_id, "t_ns": t_ns, "mean_depth": mean, "low_depth": low, "high_depth": high, "capacity": 4}


def test_the_panel_of_a_stage_has_its_own_queue_over_time_and_how_full_it_was():
    stage = Stage("s", "map", "a.py:7", 2, 0.5, 2e6, 0.25, 4, limits=True, op_id=3, rate=20.0, pace=10.0)
    curve = [depth(3, 10**9, 1.0, 0, 2), depth(3, 2 * 10**9, 2.0, 1, 4), depth(9, 0, 4.0, 4, 4)]
    shares = ((3, 0, 0.25), (3, 9, 0.75), (9, 5, 1))
    classes = [{"op_id": op_id, "bin": bin_, "share": share} for op_id, bin_, share in shares]
    drawn = "".join(panels([stage], curve, classes, {"Do": "Set it."}, "the launch"))
    assert '<article class="panel limit" id="stage-3"' in drawn
    told = ["a.py:7", "2 workers, busy 50.0 %", "up to 20.0 batches a second; the training takes 10.0", "Set it.",
            "of capacity 4, 25.0 % full", "1.00 s</span><span>2.00 s since the launch", "least 0, most 4",
            "90 to 100 % full in 75.0 %"]  # fmt: skip
    assert [said for said in told if said not in drawn] == []
    assert re.findall('class="depth" points="([^"]*)"', drawn) == ["0,73.5 1000,50.0"]
    assert re.findall('class="reach" points="([^"]*)"', drawn) == ["0,50.0 1000,3.0 1000,73.5 0,97.0"]
    assert re.findall('height="([0-9.]+)"/>', drawn) == ["25.0", "75.0"]


def test_only_the_stage_that_limits_has_advice_and_one_without_samples_no_drawing():
    stage = Stage("s", "map", "", None, None, None, None, None, limits=False)
    drawn = "".join(panels([stage], [], [], {"Do": "Set it."}, "the launch"))
    assert [said in drawn for said in ('id="stage-training"', "not timed", "Set it.", "<svg")] == [True] * 2 + [
        False
    ] * 2


@pytest.mark.parametrize("language", ["python", "diff", "text"])
@given(code=LINES)
def test_what_is_copied_is_what_was_there(language, code):
    keep = "\n" if language == "text" else "\t"  # a patch needs its tabs
    shown = [keep.join(map(escape.line, line.split(keep))) for line in code]
    copied = escaped.unescape(re.sub("<[^>]*>", "", "".join(code_lines(code, language))))
    assert copied == "\n".join(shown)


@pytest.mark.parametrize(("line", "language", "kinds"), [
    ("return f(2, size='2 # no', at=True)  # why", "python", "keyword figure argument text argument keyword comment"),
    ("returned = in_2 == 3", "python", "figure"), ("+a = 1", "diff", "added figure"), ("-a", "diff", "removed"),
    ("--- a/train 1.py", "diff", "place"), ("@@ -1 +1 @@ def f():", "diff", "place"), ("return 2", "text", ""),
])  # fmt: skip
def test_the_parts_of_python_and_of_a_patch_have_their_colours(line, language, kinds):
    assert re.findall('<span class="([a-z]+)">', "".join(code_lines([line], language))) == kinds.split()


def at(attribute, text):
    return [float(value) for value in re.findall(f'{attribute}="([0-9.]+)%"', text)]


def test_each_step_of_the_path_stands_on_one_scale_or_at_its_end():
    one = Step("one", "", "good", "", (2.0, 3.0), (2.0, 1.0, 3.0))
    drawn = "".join(path_of([one, Step("two", "", "low", "", None, None)]))
    assert (at(" x", drawn), at("width", drawn)[1], at("cx", drawn)) == ([50.0], 45.0, [50.0])
    assert at("x1", drawn) == [5.0, 5.0, 5.0]  # the speed before, the low end of what was measured, the speed before
    assert drawn.count("<circle") == drawn.count(">measured x2.00<") == drawn.count(">not measured<") == 1
    assert path_of([]) == []
    beyond = "".join(path_of([Step("one", "", "good", "", None, (50.0, 40.0, 60.0))]))
    assert at("cx", beyond) == [95.0]
    assert ">measured x50.00<" in beyond


def tuning(patch, *trials):
    return document.text(tune_text.document(tuned("proven", FINAL, [trial("accepted"), *trials], patch=patch)), "html")


def test_the_page_has_the_path_and_the_patch_beside_the_answer():
    found = tuning(PATCH, trial("failed", ratio=None, interval=None))
    first = found.partition('<section class="first">')[2].partition("</section>")[0]
    assert first.count('<li class="stage good">') == 2  # the accepted one, and the proof
    assert first.count('<li class="stage bad">') == 1
    assert '<span class="added">' in first
    assert "<th" not in first


@pytest.mark.slow
def test_a_button_copies_the_patch(opened):
    patch = PATCH | {"diff": PATCH["diff"].replace("a = a", "\ta = 'é' + a")}
    page = opened(tuning(patch))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").press("Enter")
    page.wait_for_function("() => document.querySelector('.copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == patch["diff"].removesuffix("\n")
