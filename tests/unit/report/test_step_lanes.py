"""The timeline of single steps: which lanes there are, what stands in them, and when the slowest step has one."""

from __future__ import annotations

import pytest
from chart_values import values

from pipeprof.errors import MeasureError
from pipeprof.query.rows import QueueDepth, ShownStep, StepPart, TimelineEvent
from pipeprof.report import charts
from pipeprof.report.build import build
from pipeprof.report.charts import lanes
from pipeprof.report.charts.plots import Plots
from pipeprof.report.sections.operators import MOST_LETTERS, operators_section
from tests.unit.report.conftest import MS, tables, trained


def event(start, length, kind="op", track="CPU", **more):
    values = {"place": 1, "kind": kind, "track": track, "name": "conv", "phase": "forward", "start_ns": start * MS}
    return TimelineEvent(**(values | {"dur_ns": round(length * MS)} | more))


def part(phase, start, until):
    others = dict.fromkeys(StepPart.__struct_fields__)
    return StepPart(**(others | {"phase": phase, "from_ns": start * MS, "until_ns": until * MS}))


def shown(kind="usual", length=20, number=3, **more):
    step = ShownStep(
        shown=kind, step=number, kind_step=number, pipeline_id=0, position=number, in_window=False, operators=True,
        start_ns=100 * MS, dur_ns=length * MS, middle_ns=10.0 * MS,
    )  # fmt: skip
    return lanes.Shown(step, [part("data_wait", 0, 4), part("compute", 4, 20)], **more)


def drawn(*steps):
    return lanes.charts(list(steps), {("abc", 1): "halve"})


def bars(chart):
    titles = [one["name"] for one in values(chart.drawn) if "told" not in one]
    return titles, {one["told"]: one for one in values(chart.drawn) if "told" in one}


def test_a_step_has_its_parts_and_a_lane_for_each_track():
    fetch, log = event(101, 3, "fetch", "iterator", name=None), event(95, 8, "span", "callback", name="log")
    [chart] = drawn(shown(events=[event(104, 10), event(105, 4, name="mul"), fetch, log]))
    titles, found = bars(chart)
    assert titles == ["parts of the step", "batches that the loop waited for", "operators: CPU", "spans: callback"]
    assert [(found[told]["left"], found[told]["right"]) for told in ("waiting for data: 4.00 ms", "log: 8.00 ms")] == [
        (0, 4), (0, 3),  # it began before the step
    ]  # fmt: skip
    assert found["mul: 4.00 ms"]["top"] == found["conv: 10.0 ms"]["top"] + 1  # within it


def test_a_queue_is_as_high_as_it_is_full_from_one_sample_to_the_next():
    samples = [
        QueueDepth(op_id=1, pipeline_key="abc", capacity=8, t_ns=at * MS, depth=depth, fill_ratio=depth / 8)
        for at, depth in ((90, 8), (110, 2))
    ]
    titles, found = bars(drawn(shown(queues=samples))[0])
    assert titles[1] == "queue behind halve"
    full, low = (next(one for told, one in found.items() if told.startswith(said)) for said in ("8 of 8", "2 of 8"))
    assert [(one["left"], one["right"]) for one in (full, low)] == [(0, 10), (10, 20)]
    assert low["bottom"] - low["top"] == pytest.approx((full["bottom"] - full["top"]) / 4, abs=0.01)


def test_the_slowest_step_has_a_timeline_where_it_is_much_longer():
    slow = shown("slowest", length=30, number=7)
    assert [chart.name for chart in drawn(slow, shown())] == ["chart-step", "chart-slowest"]
    [chart] = drawn(shown("slowest", length=12, number=7), shown())
    assert "The slowest was step 7, 12.0 ms." in chart.caption


def test_what_is_too_short_to_be_seen_is_counted_and_a_run_without_steps_says_so(empty):
    short = event(105, 1e-5)
    [chart] = drawn(shown(events=[event(104, 1), short, short]))
    assert "Not drawn: 2 events" in chart.caption
    [chart] = [one for one in charts.charts_of(empty, build(empty)) if one.name == "chart-step"]
    assert (chart.drawn, chart.caption) == (None, lanes.NONE)


def test_a_notebook_is_told_that_no_step_was_slow(normal):
    assert Plots(normal).step()
    with pytest.raises(MeasureError, match="no step took much longer"):
        Plots(normal).slowest_step()


def test_kernels_have_their_occupancy_and_names_that_a_table_has_room_for(make_run):
    kernel = {"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": 5, "self_ns": 5, "track": "GPU 0", "side": "device"}
    info = {"op_id": 0, "name": "void f<int>" + "x" * 900, "type": "kernel", "phase": "forward", "category": "kernel"}
    run = make_run({
        "step": trained(9), "op_info": [info], "op": [kernel | {"occupancy_ratio": 0.25}],
    })  # fmt: skip
    section = operators_section(build(run), (0, 0))
    block = section.blocks[-1]
    assert block.rows[0][list(block.head).index("occupancy")] == "25.0 %"
    assert len(block.rows[0][0]) == MOST_LETTERS
    assert any(note.startswith("occupancy:") for note in section.notes)


@pytest.mark.slow
def test_a_bar_widens_and_keys_reach_it(make_run, opened):
    from pipeprof.report import html

    run = make_run(tables(windowed=(2, 3)))
    page = opened(html.of_run(run, build(run)), 400)
    bar = "#chart-step g.mark-rect.role-mark path"
    boxes = page.locator(bar)
    before = boxes.nth(0).bounding_box()["width"]
    boxes.nth(0).focus()
    page.keyboard.press("Enter")
    widens = f"(wide) => document.querySelector('{bar}').getBoundingClientRect().width > wide"
    page.wait_for_function(widens, arg=before + 9)
