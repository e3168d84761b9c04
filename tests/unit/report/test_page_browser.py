"""The page of a run in a real browser: Chromium, of the system."""

import contextlib
import re
import zlib
from itertools import pairwise

import pytest

from pipeprof.report import html
from pipeprof.report.build import build
from tests.unit.report.conftest import MS, trained

pytestmark = pytest.mark.slow  # starts a browser

KINDS = ["empty", "normal", "ranks", "odd", "unfetched"]


@pytest.fixture
def show(opened):
    """`show(run, width, scheme)` opens the page of a run."""
    return lambda run, *how: opened(html.of_run(run, build(run)), *how)


def each(page, selector, what):
    """That of each element."""
    return page.eval_on_selector_all(selector, f"all => all.map((one) => {what})")


def marks(page, chart, kind):
    """How many marks each group of a kind has."""
    return each(page, f"#{chart} g.mark-{kind}.role-mark", "one.children.length")


def labels(page):
    """The labels of each axis of the charts over time, as text."""
    return each(page, "#chart-time g.role-axis g.role-axis-label", "one.textContent")


def wait_for_another(page, label):
    """Until the first axis no longer has that label."""
    shown = "document.querySelector('#chart-time g.role-axis-label').textContent"
    page.wait_for_function(f"(old) => {shown} !== old", arg=label)


def operators(names, durs, owns, end_ns):
    return {
        "step": trained(end_ns),
        "op_info": [{"op_id": n, "name": f"net/{name}", "type": name, "phase": "forward"}
                    for n, name in enumerate(names)],
        "op": [{"op_id": n, "step": 0, "start_ns": 0, "dur_ns": dur, "self_ns": own, "track": "CPU"}
               for n, (dur, own) in enumerate(zip(durs, owns, strict=True))],
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_whole_on_a_narrow_screen_and_readable_in_the_dark(kind, show, barriers, request):
    page = show(request.getfixturevalue(kind), 400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("h1").count() == 1
    assert all(after - before <= 1 for before, after in pairwise(each(page, "h1, h2, h3", "Number(one.tagName[1])")))
    for chart in page.locator(".chart svg").all():
        assert chart.bounding_box()["width"] <= 400
        assert chart.bounding_box()["height"] > 50
    page.emulate_media(color_scheme="dark")
    assert barriers(page) == []


def test_every_phase_of_every_step_is_a_mark_and_every_stage_of_the_pipeline_a_panel(normal, show):
    page = show(normal)
    assert 8 * 2 + 2 * 3 in marks(page, "chart-time", "rect")
    assert page.locator(".panel").count() == 3 + 1
    assert page.locator(".chart svg").count() == 3  # of all steps, the pipeline and a usual step
    assert page.locator(".chart[role=graphics-document][aria-label]").count() == 3


@pytest.mark.parametrize("width", [400, 720, 1400])
def test_long_names_of_operators_have_room_and_stay_apart(make_run, show, width):
    names = [f"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<Functor{n}>>" for n in range(4)]
    page = show(make_run(operators(names, [500] * 4, [500] * 4, 9000)), width)
    wide = each(page, "table.sortable th", "one.getBoundingClientRect().width")
    assert wide[0] == max(wide) or width == 400  # where there is no room for columns titles are a list
    hidden = page.eval_on_selector("table.sortable", "one => one.scrollWidth - one.parentElement.clientWidth")
    assert hidden <= 0 or width < 1400
    colours = each(page, "#chart-operators g.mark-arc.role-mark path", "one.getAttribute('fill')")
    assert len(set(colours)) == len(names)


def test_types_of_operators_are_bars_and_parts_of_a_ring_that_are_read_out(normal, show):
    page = show(normal)
    said = each(page, "#chart-operators g.mark-arc.role-mark path", "one.ariaLabel")
    assert len(said) == marks(page, "chart-operators", "rect")[0] > 0
    assert set(said) <= set(each(page, "#chart-operators g.role-legend-label text", "one.textContent"))
    assert all(text.endswith("%") for text in said)


def painted(pdf):
    """How many areas and lines are painted in a PDF, letters left out."""
    count = 0
    for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        with contextlib.suppress(zlib.error):  # such as a font
            count += len(re.findall(rb"(?m)(?:^| )(?:f\*?|S|B)$", zlib.decompress(part)))
    return count


def test_on_paper_are_all_charts_also_those_that_still_wait_for_their_turn(normal, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html.of_run(normal, build(normal)), encoding="utf-8")
    found = []
    for waits in (False, True):
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        if waits:
            page.add_init_script("window.requestIdleCallback = () => {}")  # their turn never comes
        page.goto(path.as_uri())
        page.wait_for_selector(".chart[data-drawn]")
        drawn, places = page.locator(".chart[data-drawn]"), page.locator(".chart").count()
        if waits:
            assert drawn.count() == 1 < places
        else:
            page.wait_for_function(f"() => document.querySelectorAll('.chart[data-drawn]').length === {places}")
        found.append(painted(page.pdf()))
        page.close()
    bare = browser.new_context(java_script_enabled=False)
    page = bare.new_page()
    page.goto(path.as_uri())
    without = painted(page.pdf())
    bare.close()
    assert found[0] == found[1] > 1.5 * without


def test_on_paper_a_chart_is_as_wide_as_the_sheet_and_nothing_is_left_to_scroll_to(normal, show):
    page = show(normal, 1400)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 900})  # a sheet; charts stay as they were drawn for the window
    for chart in page.locator(".chart").all():
        assert chart.locator("svg").bounding_box()["width"] <= chart.bounding_box()["width"] <= 720
    assert set(each(page, ".wide", "getComputedStyle(one).overflowX")) == {"visible"}


def test_one_cell_for_each_step_of_each_rank(ranks, show):
    page = show(ranks)
    assert marks(page, "chart-ranks", "rect") == [20]
    page.locator("#chart-ranks select").select_option("time before the forward pass")
    assert marks(page, "chart-ranks", "rect") == [20]


def brush(page, label):
    """Drag over the chart of the whole time until the first axis no longer has that label; where that chart is."""
    area = page.locator("#chart-time svg .mark-area").last
    area.scroll_into_view_if_needed()
    place = area.bounding_box()
    middle = place["y"] + place["height"] - 3
    page.mouse.move(place["x"] + place["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.6, middle, steps=5)
    page.mouse.up()
    wait_for_another(page, label)
    return place


def test_a_brush_narrows_every_chart_over_time(normal, show):
    page = show(normal)
    before = labels(page)
    brush(page, before[0])
    changed = [new != old for new, old in zip(labels(page), before, strict=True)]
    assert changed.count(True) == 3  # steps, waits and queues; not the chart that the brush is on


def test_a_long_first_step_is_cut_marked_and_can_be_brushed_over(make_run, show):
    page = show(make_run({"step": trained(2000 * MS, *[10 * MS] * 19)}))
    before = labels(page)
    assert marks(page, "chart-time", "rect")[-1] == 1  # the tick: one step is cut off
    assert brush(page, before[0])["height"] > 30


def test_the_steps_have_the_scale_of_those_behind_the_warmup_unless_a_switch_is_on(make_run, show):
    page = show(make_run({"step": trained(2000 * MS, *[10 * MS] * 19, warm=1)}))

    def highest():
        found = each(page, "#chart-time g.role-axis g.role-axis-label", "[...one.children].map((t) => t.textContent)")
        return max(float(label) for label in found[1])

    before = highest()
    assert before <= 11
    page.get_by_label("scale to the warm-up").check()
    page.wait_for_function("() => true")
    assert highest() > 2 * before


def test_the_keyboard_narrows_them_too(normal, show):
    page = show(normal)
    before = labels(page)
    page.get_by_label("to, s").focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    wait_for_another(page, before[0])


def test_a_stage_of_the_picture_leads_to_its_panel_with_the_keyboard_alone(normal, show):
    page = show(normal)
    stages = page.locator(".flow a")
    assert stages.count() == 4
    stages.nth(1).focus()
    page.keyboard.press("Enter")
    panel = page.locator(".panel:target")
    assert panel.locator("h3").inner_text().startswith(stages.nth(1).inner_text())
    assert panel.locator("svg.plot").count() == 2
    page.wait_for_function("() => document.querySelector('.panel:target').getBoundingClientRect().top < innerHeight")


def test_the_operators_can_be_sorted_and_searched(make_run, show):
    durs = [9_000, 10 * MS, 200_000, 5]
    page = show(make_run(operators(("Ab", "Bc", "Cd", "De"), durs, [*durs[:3], None], 20 * MS)))
    rows = page.locator("table.sortable tbody tr")

    def first_cells():
        return [row.split("\t")[0] for row in rows.all_inner_texts()]

    own = page.get_by_role("button", name="own time")
    assert first_cells() == ["net/Bc", "net/Cd", "net/Ab", "net/De"]
    own.press("Enter")
    assert first_cells() == ["net/Bc", "net/Cd", "net/Ab", "net/De"]
    own.press("Enter")
    assert first_cells() == ["net/Ab", "net/Cd", "net/Bc", "net/De"]  # what is not known is the last both ways
    assert page.locator("table.sortable th[aria-sort=ascending]").inner_text() == "own time"
    page.get_by_role("button", name="operator").click()
    assert first_cells() == ["net/Ab", "net/Bc", "net/Cd", "net/De"]
    page.get_by_label("search").fill("CD")
    assert [row.is_visible() for row in rows.all()] == [False, False, True, False]
    assert page.get_by_role("status").inner_text().strip() == "1 of 4 rows"


def test_names_are_text_and_nothing_else(odd, show):
    page = show(odd)
    assert page.locator("body b, body img").count() == 0
    assert "<b>a|b*_[red]\\x</b>" in page.locator("body").inner_text()
