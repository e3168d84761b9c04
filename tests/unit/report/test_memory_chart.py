"""The charts of blocks, of stacks, and communication in the stack of steps: what is drawn from which rows."""

import pytest

from pipeprof.report import charts, html
from pipeprof.report.build import build
from pipeprof.report.charts import flame, operators, steps
from pipeprof.report.stacks.folded import Stack
from pipeprof.units import format_ns, format_ratio
from tests.unit.report.conftest import MS, trained

MIB = 1 << 20
INFOS = [{"op_id": n, "name": name, "type": name, "phase": "forward"} for n, name in enumerate(("net", "conv", "relu"))]
TABLES = {
    "step": trained(100 * MS), "op_info": INFOS,
    "op": [
        {"op_id": n, "exec_id": n, "parent_id": 0 if n else None, "step": 0, "start_ns": start * MS, "dur_ns": dur * MS,
         "self_ns": own * MS} for n, start, dur, own in ((0, 0, 90, 20), (1, 0, 60, 60), (2, 60, 10, 10))
    ],
    "allocation": [
        {"address": 0, "bytes": 4 * MIB, "produced_ns": 0, "released_ns": 30 * MS, "op_id": 1},
        {"address": 1 << 40, "bytes": 2 * MIB, "produced_ns": 20 * MS, "op_id": 2},
        {"address": 0, "bytes": MIB, "produced_ns": 50 * MS, "released_ns": 60 * MS, "op_id": 1},
    ],
}  # fmt: skip


@pytest.fixture
def drawn(make_run):
    """`drawn(name, **tables)`: a chart of the run, some of whose tables are others."""

    def made(name, **tables):
        tables = TABLES | tables
        run = make_run(tables)
        run.manifest.tables = {table: len(rows) for table, rows in tables.items()}
        (chart,) = (chart for chart in charts.charts_of(run, build(run)) if chart.name == f"chart-{name}")
        return chart

    return made


def test_blocks_without_addresses_are_placed_by_first_fit_and_the_page_says_how_they_are_known(drawn):
    blocks = [row | {"address": None, "evidence": "matched"} for row in TABLES["allocation"]]
    chart = drawn("memory", allocation=[*blocks, {"bytes": MIB, "produced_ns": 0, "evidence": "unseen"}])
    assert "placed by first fit" in chart.caption
    assert "Lifetimes are reconstructed from the changes of MindSpore's pool" in chart.caption
    assert "(before the op window)" in str(chart.spec)


def test_blocks_are_drawn_where_they_lay_and_those_of_the_peak_are_marked(drawn):
    chart = drawn("memory")
    assert "6.00 MiB in 2 blocks at most" in chart.caption
    assert "conv holds most of it: 4.00 MiB" in chart.caption
    assert "without an address" not in chart.caption
    _, holders, lives = chart.spec["vconcat"]
    assert [row["name"] for row in holders["data"]["values"]] == ["conv", "relu"]
    blocks = lives["layer"][0]["data"]["values"]
    assert [(one["kind"], one["high"] - one["low"]) for one in blocks] == [
        ("alive at the peak", 4), ("alive at the peak", 2), ("not alive then", 1),
    ]  # fmt: skip
    assert blocks[1]["low"] < 5  # 1 TiB of nothing between them is not drawn
    assert [one["to"] for one in blocks] == [0.03, 0.06, 0.06]  # what was still held ends with the chart
    lost = drawn("memory", allocation=[*TABLES["allocation"], {"bytes": MIB, "produced_ns": 0}])
    assert lost.caption.endswith("Not drawn, without an address: 1.")


def test_frames_are_as_wide_as_what_is_below_them():
    frames, common = flame.frames_of([Stack(("main", "a"), 1), Stack(("main", "a", "b"), 2), Stack(("main", "c"), 5)])
    placed = {row.name: (row.depth, row.left, row.right, row.own) for row in frames}
    assert placed == {"c": (0, 0, 0.625, 5), "a": (0, 0.625, 1, 1), "b": (1, 0.625, 0.875, 2)}
    assert common == 1


def test_what_took_the_time_has_its_callers_below():
    profile = [Stack(("net", "conv", "pad"), 3), Stack(("net", "pad"), 1), Stack(("net", "conv"), 2)]
    turned, _ = flame.frames_of([Stack(one.frames[::-1], one.weight) for one in profile])
    assert [(one.depth, one.name, one.total) for one in sorted(turned, key=lambda one: (one.depth, one.left))] == [
        (0, "pad", 4), (0, "conv", 2), (1, "conv", 3), (1, "net", 1), (1, "net", 2), (2, "net", 3),
    ]  # fmt: skip


def test_frames_that_are_all_too_narrow_to_be_seen_are_drawn_all_the_same(make_run, monkeypatch):
    found = [Stack((f"root {number}", "leaf"), 1) for number in range(1500)]
    monkeypatch.setattr(flame, "_profile_of", lambda *_: ("stack", found, "host"))
    assert flame.chart(make_run({"step": []}), 0, 0).spec is not None


@pytest.fixture
def page(make_run, opened):
    run = make_run(TABLES)
    return opened(html.of_run(run, build(run)))


@pytest.fixture
def boxes(page):
    return page.locator("#chart-flame g.mark-rect.role-mark path")


WIDTH = "document.querySelectorAll('#chart-flame g.mark-rect.role-mark path')[1].getBoundingClientRect().width"
FOCUSED = "document.activeElement.ariaLabel"


def test_a_click_on_a_frame_shows_it_alone(page, boxes):
    whole = page.locator("#chart-flame svg").bounding_box()["width"]
    assert [round(box.bounding_box()["width"] / whole, 1) for box in boxes.all()] == [1.0, 0.7, 0.1]
    boxes.nth(1).click(position={"x": 40, "y": 4})
    page.wait_for_function(f"(wide) => {WIDTH} > wide", arg=whole * 0.8)
    assert "own time has conv" in page.locator("#chart-flame").evaluate("one => one.closest('figure').innerText")


def test_frames_that_are_not_searched_for_pale(page, boxes):
    page.locator("#chart-flame").get_by_label("find a frame").fill("CONV")
    pale = "(all) => document.querySelectorAll('#chart-flame g.mark-rect path[opacity=\"0.2\"]').length === all"
    found = ["conv" in box.get_attribute("aria-label") for box in boxes.all()]
    assert True in found
    page.wait_for_function(pale, arg=found.count(False))


def test_frames_are_reached_by_keyboard(page, boxes):
    seen = [box.bounding_box()["width"] for box in boxes.all()]
    boxes.nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED).startswith("conv: 60")
    page.keyboard.press("Enter")
    page.wait_for_function(f"(wide) => {WIDTH} > wide", arg=seen[0] * 0.8)
    page.keyboard.press("ArrowRight")  # the next frame is beside what is shown
    assert page.evaluate(FOCUSED).startswith("conv: 60")
    page.keyboard.press("Escape")
    page.wait_for_function(f"(wide) => {WIDTH} < wide", arg=seen[0] * 0.8)


def test_a_switch_turns_the_flame_graph_round_and_keys_reach_it_there_too(page, boxes):
    whole = boxes.nth(0).bounding_box()["width"]
    page.locator("#chart-flame").get_by_label("turned round").check()
    page.wait_for_function("document.querySelectorAll('#chart-flame g.mark-rect [role=button]').length === 5")
    shown = [(box.get_attribute("aria-label"), box.bounding_box()["width"] / whole) for box in boxes.all()]
    assert {(label.partition(":")[0], round(wide, 1)) for label, wide in shown} == {
        ("conv", 0.7), ("net", 0.7), ("net", 0.2), ("relu", 0.1), ("net", 0.1),
    }  # fmt: skip
    boxes.nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) == shown[1][0]


def test_communication_is_taken_out_of_the_phases_so_that_a_step_keeps_its_height():
    row = {f"{phase}_ns": 0.0 for phase in steps.PHASES} | {"point": 0, "start_ns": 0, "end_ns": 10 * MS}
    row |= {"data_wait_ns": 1.0 * MS, "forward_backward_ns": 6.0 * MS, "tail_ns": 3.0 * MS}
    found = [{"point": 0, "overlapped_ns": 2.0 * MS, "exposed_ns": 5.0 * MS, "unknown_ns": 0.0}]
    bars = {bar["of"]: bar["high"] - bar["low"] for bar in steps.bars([row], found)}
    assert list(bars.values()) == [1, 2, 2, 5]  # waiting, behind the backward pass, both kinds of communication
    assert list(bars)[2:] == [name for name, _ in list(steps.COMMUNICATION.values())[:2]]


@pytest.mark.parametrize(("recorded", "whose"), [([3, 3], "of a mean step"), ([2, 1], "mean of 3 recorded steps")])
def test_communication_of_a_mean_step_is_that_of_the_recorded_ones(recorded, whose):
    none = {"overlapped_ns": 0.0, "unknown_ns": 0.0}
    found = [{"steps": number, "exposed_ns": 5.0 * MS} | none for number in recorded]
    said = steps._communication([*found, {"steps": 0, "exposed_ns": 0.0} | none], 6)
    assert said == f"communication, {whose}: {format_ns(5.0 * MS)} of exposed communication"


def test_the_ring_has_the_share_of_each_type_and_one_part_for_the_rest():
    rows = [{"type": f"T{place}", "self_ns": 100 - place} for place in range(operators.SLICES + 2)]
    whole = sum(row["self_ns"] for row in rows)
    ring = operators.slices(rows)
    assert [part["label"].partition(" ")[0] for part in ring] == [*(f"T{n}" for n in range(operators.SLICES)), "2"]
    assert ring[0]["label"] == f"T0 {format_ratio(100 / whole)}"
    assert ring[-1]["share"] == pytest.approx((rows[-1]["self_ns"] + rows[-2]["self_ns"]) / whole, abs=1e-6)
    assert sum(part["share"] for part in ring) == pytest.approx(1, abs=1e-5)
    assert operators.slices([{"type": "Add", "self_ns": 0}]) == []


@pytest.mark.parametrize(("first", "said"), [(0, "time of 1 type is not"), (1, "time of no operator is")])
def test_an_operator_without_a_time_is_no_bar_and_no_failure(drawn, first, said):
    execs = [{"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": 5, "self_ns": 5}, {"op_id": 1, "step": 0, "start_ns": 5}]
    chart = drawn("operators", op_info=INFOS[:2], op=execs[first:])
    assert f"The {said} known." in chart.caption
