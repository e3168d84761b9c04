"""The picture beside the answer: what limits is marked, by its name in the user's code, and the numbers are the answer's."""

import io
import re
from html import unescape

import pytest
from rich.console import Console

from pipeprof.report import html, terminal
from pipeprof.report.answer import Answer
from pipeprof.report.build import build
from pipeprof.report.charts.script import javascript
from pipeprof.report.page import MOST_LETTERS, STYLE, digest, page, shortened
from pipeprof.report.pictures import picture_of
from pipeprof.report.pictures.flow import MOST_STAGES, Stage, busiest, stages_of
from pipeprof.report.pictures.panels import panels
from pipeprof.report.pictures.parts import LEAST, bar_of
from pipeprof.verdict.data_cause import CODES as DATA


@pytest.fixture
def late(normal):
    """A report whose verdict begins with the data pipeline."""
    content = build(normal)
    lead = next(cause for cause in content["verdict"]["causes"] if cause["code"] in DATA)
    content["verdict"]["causes"] = [lead, *content["verdict"]["causes"]]
    return content


def test_the_stage_that_the_verdict_names_is_the_one_that_is_marked(late):
    content = late
    stages = stages_of(content)
    assert [stage.name for stage in stages if stage.limits] == [content["diagnosis"]["op_name"]]
    assert stages[-1].name == "training"
    limiting = next(stage for stage in stages if stage.limits)
    assert limiting.busy == content["diagnosis"]["facts"]["utilisation"]
    assert limiting.work_ns == content["diagnosis"]["facts"]["work_ns"]


def test_the_place_of_a_stage_is_the_users_line_where_a_library_has_its_code(late):
    source = late["pipeline"]["load"][-1] | {"site": "train.py:5"}
    for code, place in (("train.py:9", "train.py:9"), ("lib/site-packages/mindspore/dataset/a.py:7", "train.py:5")):
        late["pipeline"]["load"] = [*late["pipeline"]["load"][:-1], source | {"code": code}]
        (stage,) = [stage for stage in stages_of(late) if stage.op_id == source["op_id"]]
        assert stage.place == place


def test_the_parts_of_a_step_add_up_and_the_wait_is_marked_where_data_is_late(late):
    bar = bar_of(late)
    assert abs(sum(part.share for part in bar.parts) - 1) < len(bar.parts) * LEAST
    assert [part.name for part in bar.parts if part.limits] == ["waiting for data"]


def test_what_interrupts_the_training_is_drawn_within_the_loop_that_its_gain_is_of(normal):
    content = build(normal)
    loop = {"rep": 0, "rank": 0, "detail": "", "cause": "", "site": "", "count": 1, "start_ns": 0, "share": None}
    rows = [loop | {"part": part, "dur_ns": ns} for part, ns in (("import", 900), ("training", 60), ("evaluation", 40))]
    leading = loop | {"part": "evaluation", "dur_ns": 40, "loop_share": 0.4, "loop_ns": 100}
    content["run_account"] |= {"parts": rows, "leading": leading}
    content["verdict"]["causes"] = [content["verdict"]["causes"][0] | {"code": "part", "detail": "evaluation"}]
    bar = bar_of(content)
    assert (bar.title, [part.name for part in bar.parts if part.limits]) == ("The training loop", ["evaluation"])
    assert {part.name: part.share for part in bar.parts} == {"training steps": 0.6, "evaluation": 0.4}
    assert not any(stage.limits for stage in stages_of(content))


def test_where_nothing_was_measured_there_is_no_picture(empty):
    assert picture_of(build(empty)) == []


def test_the_stage_that_limits_and_the_training_are_shown_of_however_many(normal):
    plain = Stage("s", "map", "", 1, 0.5, 1.0, None, None, limits=False)
    many = [
        *(plain._replace(name=str(n), busy=n / 100) for n in range(20)), plain._replace(name="slow", busy=0.0, limits=True),
        plain._replace(name="training", busy=None),
    ]  # fmt: skip
    shown = [stage.name for stage in busiest(many)]
    assert shown == [str(n) for n in range(20 - MOST_STAGES + 2, 20)] + ["slow", "training"]


def test_a_path_is_broken_behind_a_folder(normal, monkeypatch):
    monkeypatch.setattr(html, "answer_of", lambda _: Answer("Slow.", place="data/set.py:30", cause="`a/b` is slow"))
    text = html.text(build(normal))
    assert "<dd>data/<wbr>set.py:30</dd>" in text
    assert "<code>a/<wbr>b</code> is slow" in text


def test_what_mindspore_puts_behind_the_pipeline_is_no_stage_of_it(normal):
    content = build(normal)
    before = [(stage.name, stage.feeds) for stage in stages_of(content)]
    [pipeline] = content["pipeline"]["pipelines"]
    sink = {**pipeline["ops"][0], "op_id": 9, "op_type": "EpochCtrlOp", "name": None, "consumers": []}
    batch = {**pipeline["ops"][0], "consumers": [9]}
    pipeline["ops"] = [sink, batch, *pipeline["ops"][1:]]
    assert [(stage.name, stage.feeds) for stage in stages_of(content)] == before


def test_every_part_of_the_page_is_in_its_contents(normal):
    text = html.text(build(normal))
    assert re.findall(r'<a href="#([a-z-]+)">', text) == re.findall(r'<section id="([a-z-]+)">', text)


def test_a_page_allows_its_one_style_and_its_one_script_and_nothing_else(normal):
    policy = f"default-src 'none'; style-src {digest(STYLE)}; script-src {digest(javascript('page'))}"
    assert f'content="{policy}"' in html.text(build(normal))
    assert f"content=\"default-src 'none'; style-src {digest(STYLE)}\"" in page("a page without anything to do", [])


def test_a_long_name_is_cut_in_its_middle_and_whole_in_its_title():
    name = "Default/network-WithLossCell/<_backbone>/1-Dense/MatMul-op0"
    found = re.fullmatch(r'<span class="short" title="([^"]*)">(.*)</span>', shortened(name))
    assert found[1] == name.replace("<", "&lt;").replace(">", "&gt;")
    assert found[2].startswith("Default/")
    assert found[2].endswith("/1-Dense/MatMul-op0")
    assert len(unescape(found[2])) == MOST_LETTERS
    assert shortened("a sentence of many words that is long") == "a sentence of many words that is long"


def on_terminal(content, rows):
    """The lines that a terminal of so many rows shows."""
    console = Console(file=io.StringIO(), width=80, height=rows, force_terminal=True, no_color=True)
    terminal._first(console, content)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()


def test_a_terminal_with_room_shows_the_stages_as_bars(late):
    shown = on_terminal(late, rows=50)
    bars = [line for line in shown if re.match("[^ ].{27} [█▏▎▍▌▋▊▉░]{28} ", line)]
    assert [line.split()[0] for line in bars] == [stage.short.split()[0] for stage in stages_of(late)]
    assert [line.split()[0] for line in bars if line.endswith("limits")] == [late["diagnosis"]["op_name"]]
    assert max(map(len, bars)) <= 80


def test_the_first_screen_stays_one_screen(late):
    short = len(on_terminal(late, rows=10))
    heights = range(short, short + 12)
    shown = [len(on_terminal(late, rows=rows)) for rows in heights]
    assert all(lines <= max(short, rows - 2) for lines, rows in zip(shown, heights, strict=True))
    assert shown[-1] > short


def test_a_pipe_is_shown_no_bars(late):
    assert "░" not in terminal.text(late)


def depth(op_id, t_ns, mean, low, high):
    return {"op_id": op_id, "t_ns": t_ns, "mean_depth": mean, "low_depth": low, "high_depth": high, "capacity": 4}


def test_the_panel_of_a_stage_has_its_own_queue_over_time_and_how_full_it_was():
    stage = Stage("s", "map", "a.py:7", 2, 0.5, 2e6, 0.25, 4, limits=True, op_id=3, rate=20.0, pace=10.0)
    curve = [depth(3, 10**9, 1.0, 0, 2), depth(3, 2 * 10**9, 2.0, 1, 4), depth(9, 0, 4.0, 4, 4)]
    classes = [
        {"op_id": 3, "bin": 0, "share": 0.25},
        {"op_id": 3, "bin": 9, "share": 0.75},
        {"op_id": 9, "bin": 5, "share": 1},
    ]
    drawn = "".join(panels([stage], curve, classes, {"Do": "Set it."}, "the launch"))
    assert '<article class="panel limit" id="stage-3"' in drawn
    assert [said for said in ("a.py:7", "2 workers, busy 50.0 %", "up to 20.0 batches a second; the training takes 10.0",
                              "of capacity 4, 25.0 % full", "Set it.", "1.00 s</span><span>2.00 s since the launch",
                              "least 0, most 4", "90 to 100 % full in 75.0 %") if said not in drawn] == []  # fmt: skip
    assert re.findall('class="depth" points="([^"]*)"', drawn) == ["0,73.5 1000,50.0"]
    assert re.findall('class="reach" points="([^"]*)"', drawn) == ["0,50.0 1000,3.0 1000,73.5 0,97.0"]
    assert re.findall('height="([0-9.]+)"/>', drawn) == ["25.0", "75.0"]


def test_only_the_stage_that_limits_has_advice_and_one_without_samples_no_drawing():
    stage = Stage("s", "map", "", None, None, None, None, None, limits=False)
    drawn = "".join(panels([stage], [], [], {"Do": "Set it."}, "the launch"))
    assert 'id="stage-training"' in drawn
    assert "not timed" in drawn
    assert "Set it." not in drawn
    assert "<svg" not in drawn
