"""The charts of a run's page: what is drawn from which facts, and what is said where there are none."""

import re
import subprocess
import sys

import pytest

from pipeprof.record.run import NotMeasured
from pipeprof.report import charts, html
from pipeprof.report.build import build
from pipeprof.report.charts import overtime, ranks, samples, script, steps

MB = 1_000_000
NAMES = ["chart-time", "chart-step", "chart-pipeline", "chart-run", "chart-operators", "chart-flame", "chart-memory",
         "chart-ranks"]  # fmt: skip


def drawn(run):
    return {chart.name: chart for chart in charts.charts_of(run, build(run))}


def test_the_bars_of_a_step_stand_on_each_other_and_are_as_high_as_the_step():
    lengths = {f"{phase}_ns": 0.0 for phase in steps.PHASES}
    row = {
        **lengths,
        "start_ns": 0,
        "end_ns": 9 * MB,
        "data_wait_ns": 4.0 * MB,
        "compute_ns": 3.0 * MB,
        "tail_ns": 2.0 * MB,
    }
    bars = list(steps.bars([row]))
    assert [(bar["low"], bar["high"]) for bar in bars] == [(0, 4), (4, 6), (6, 9)]
    assert {(bar["from"], bar["to"]) for bar in bars} == {(0.0, 0.009)}


def test_one_long_first_step_does_not_flatten_the_chart_of_all_of_it(make_run):
    lengths = [2000, *[10] * 19]
    rows = [
        {"step": n, "kind": "train", "start_ns": sum(lengths[:n]) * MB, "end_ns": sum(lengths[: n + 1]) * MB}
        for n in range(20)
    ]
    chart = drawn(make_run({"step": rows}))["chart-time"]
    lowest = chart.spec["vconcat"][-1]
    area, cut = lowest["layer"]
    assert lowest["encoding"]["y"]["scale"]["domain"] == [0, 40]
    assert [row["ms"] for row in area["data"]["values"]] == [40, *[10] * 20]  # the last one ends
    assert [row["t"] for row in cut["data"]["values"]] == [1]
    assert area["mark"]["interpolate"] == "step-after"  # a step begins at its time
    assert "lowest chart is cut off at 40.0 ms" in chart.caption


def test_each_part_of_an_imported_step_has_a_curve_on_an_axis_of_its_own(make_run):
    rows = [
        {"step": number, "kind_step": number, "kind": "train", "start_ns": 250 * MB * number,
         "fp_ns": 250 * MB * number + gap, "bp_ns": 250 * MB * number + 205 * MB, "end_ns": 250 * (number + 1) * MB}
        for number, gap in enumerate((200_000, 220_000, 9 * MB, 180_000, 200_000))
    ]  # fmt: skip
    panels = {}
    for source in ("ascend", "collect"):
        run = make_run({"step": rows})
        run.manifest.source = source
        panels[source] = {
            panel["title"]: panel for panel in drawn(run)["chart-time"].spec["vconcat"] if "title" in panel
        }
    assert {"Time before the forward pass", "Forward and backward pass", "Tail"} <= panels["ascend"].keys()
    assert "Forward and backward pass" not in panels["collect"]
    gap = panels["ascend"]["Time before the forward pass"]["encoding"]["y"]["scale"]["domain"]
    assert gap == [0, pytest.approx(0.84)]  # four times the median, and not as far as the one of 9 ms


def test_steps_of_one_length_are_not_cut_off(normal):
    chart = drawn(normal)["chart-time"]
    assert len(chart.spec["vconcat"][-1]["layer"]) == 1
    assert "lowest chart is cut off" not in chart.caption


def test_the_parts_of_the_run_are_in_the_order_of_time_and_keep_their_sum():
    rows = [
        {"part": "training", "start_ns": 5, "dur_ns": 2_000_000_000},
        {"part": "callback", "start_ns": 9, "dur_ns": 1_000_000_000},
        {"part": "import", "start_ns": 0, "dur_ns": 1_000_000_000},
        {"part": "callback", "start_ns": 7, "dur_ns": 500_000_000},
    ]
    assert steps.parts_of(rows) == [
        {"part": "import of the framework", "ns": 1e9}, {"part": "training steps", "ns": 2e9}, {"part": "callback", "ns": 1.5e9},
    ]  # fmt: skip


def test_each_chart_is_drawn_or_says_what_was_not_measured(normal, ranks, empty, unfetched):
    assert [name for name, chart in drawn(normal).items() if chart.drawn] == [
        "chart-time",
        "chart-step",
        "chart-operators",
    ]
    assert drawn(ranks)["chart-ranks"].drawn
    for run in (empty, unfetched, normal, ranks):
        found = drawn(run)
        assert list(found) == NAMES
        assert all(chart.caption.endswith(".") and (chart.said or not chart.drawn) for chart in found.values())
    assert not any(chart.drawn for chart in drawn(empty).values())


def test_why_a_panel_is_missing_is_said(normal):
    normal.manifest.not_measured = [NotMeasured(what="memory", why="switched off")]
    caption = drawn(normal)["chart-time"].caption
    assert "No memory was recorded: switched off." in caption
    assert "What the CPU time was used for was not recorded." in caption


def test_the_slowest_rank_is_named(ranks):
    assert "2 ranks; the longest step is 12.0 ms, of rank 1" in drawn(ranks)["chart-ranks"].said


def test_without_the_extra_the_page_stays_as_it_is_and_says_how_to_get_charts(normal, monkeypatch):
    monkeypatch.setattr(html, "can_draw", lambda: False)
    text = html.of_run(normal, build(normal))
    assert "vegaEmbed" not in text
    assert f"<code>{charts.INSTALL}</code>" in text.replace("&#x27;", "'").replace("&#39;", "'")


def test_charts_have_text_for_those_who_do_not_see_them(normal):
    for chart in drawn(normal).values():
        if chart.drawn:
            assert chart.spec["description"] == chart.said


@pytest.mark.parametrize(("ranks_", "count"), [(1, 30_000), (64, 150)])
def test_a_long_run_or_many_ranks_make_no_large_page_and_keep_the_longest_step(make_run, ranks_, count):
    rows = [
        {"rank": rank, "step": n, "kind": "train", "start_ns": n * MB, "fp_ns": n * MB + 9, "end_ns": (n + 1) * MB}
        for rank in range(ranks_)
        for n in range(count)
    ]
    rows[count // 2]["end_ns"] += 7 * MB
    run = make_run({"step": rows})
    text = html.of_run(run, build(run))
    assert len(text) < 3_000_000
    assert f"the longest of 8.00 ms at step {count // 2}" in text or ranks_ > 1
    assert ranks_ == 1 or f"the longest step is 8.00 ms, of rank 0 near step {count // 2}" in text


def test_cells_of_the_heat_map_are_bounded():
    assert ranks.points_for(2) == 200
    assert all(ranks.points_for(count) * count <= ranks.MOST_CELLS for count in (8, 64, 1024))


def test_a_brush_is_over_steps_only():
    assert overtime.chart({"Steps": None}, [], ["No memory was recorded."]).drawn is None


def test_data_of_charts_cannot_end_the_element_that_holds_it(odd):
    text = html.of_run(odd, build(odd))
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        assert not re.search("[<>&]", data)


def test_the_script_is_put_together_once_and_kept(tmp_path, monkeypatch):
    import vl_convert

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = script.bundle.__wrapped__()
    (kept,) = tmp_path.rglob("*.json")
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _own: pytest.fail("put together again"))
    assert script.bundle.__wrapped__() == made
    kept.write_bytes(kept.read_bytes()[:1000])
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _own: "made anew")
    assert script.bundle.__wrapped__() == "made anew"


def test_a_page_is_drawn_without_altair_which_takes_longer_to_import_than_a_report(normal):
    code = (
        "import sys; from pathlib import Path; from pipeprof.record.run import load; from pipeprof.report import html; "
        "from pipeprof.report.build import build; run = load(Path(sys.argv[1])); html.of_run(run, build(run)); "
        "assert 'altair' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(normal.path)], check=True)


def test_altair_is_imported_without_the_grammar_of_addresses(normal):
    """jsonschema loads it when it is there, as in Jupyter's environments: seconds for a check that no chart needs."""
    code = (
        "import sys, pipeprof; pipeprof.open(sys.argv[1]).plot.steps(); "
        "assert 'altair' in sys.modules; assert 'rfc3987_syntax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(normal.path)], check=True)


def test_queues_to_the_device_are_drawn_over_time():
    rows = [
        {"side": side, "t_ns": at * 1_000_000_000, "mean_depth": depth, "low_depth": 0, "batches": 5}
        for side, depth in (("data_queue", 0.5), ("host_queue", 6.0)) for at in range(3)
    ]  # fmt: skip
    panel = samples.sink(rows)
    assert panel.said == (
        "the data queue on the device holds 0.5 batches on average; the host queue holds 6.0 batches on average"
    )
    made = panel.drawn
    assert made["layer"][0]["encoding"]["y"]["field"] == "low"  # a moment in which it was empty is seen
    point = {"t": 0.0, "depth": 6.0, "of": "host queue", "low": 0, "high": 6.0}
    assert made["data"]["values"][3] == point
    (note,) = panel.notes
    assert "reaches to the least" in note
    alone = samples.sink([{**row, "batches": 1} for row in rows])
    assert (alone.notes, "low" in alone.drawn["data"]["values"][0]) == ([], False)
    assert samples.sink([{**row, "t_ns": None} for row in rows]) is None
