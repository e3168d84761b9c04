"""The charts of a run's page: what is drawn from which facts, and what is said where there are none."""

import json
import re
import subprocess
import sys

import pytest
from chart_values import values
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.record.run import NotMeasured
from pipeprof.report import charts, html
from pipeprof.report.answer.since import since
from pipeprof.report.build import build
from pipeprof.report.charts import comparison, overtime, ranks, samples, script
from pipeprof.report.charts import steps as step_charts
from pipeprof.report.charts.chart import ticks
from pipeprof.report.words.training import origin_of
from pipeprof.units import byte_unit
from tests.unit.report.conftest import MS, trained

S = 1_000 * MS
NAMES = ["chart-time", "chart-step", "chart-pipeline", "chart-run", "chart-operators", "chart-flame", "chart-memory",
         "chart-ranks"]  # fmt: skip


def drawn(run):
    return {chart.name: chart for chart in charts.charts_of(run, build(run))}


@pytest.fixture
def chart(make_run):
    """`chart(name, tables)`: one of the charts of a run."""
    return lambda name, tables: drawn(make_run(tables))[f"chart-{name}"]


SHORT, LATE = trained(*[3000] * 5), trained(*[10 * MS] * 5, begin=900 * MS)
TRAINER = {"device": "process", "pid": 7, "name": "trainer", "rss_bytes": 1 << 20}


def panels(chart):
    return {panel["title"]: panel for panel in chart.spec["vconcat"] if "title" in panel}


def test_the_bars_of_a_step_stand_on_each_other_and_are_as_high_as_the_step():
    row = {f"{phase}_ns": 0.0 for phase in step_charts.PHASES} | {"start_ns": 0, "end_ns": 9 * MS}
    row |= {"data_wait_ns": 4.0 * MS, "compute_ns": 3.0 * MS, "tail_ns": 2.0 * MS}
    bars = list(step_charts.bars([row]))
    assert [(bar["low"], bar["high"]) for bar in bars] == [(0, 4), (4, 6), (6, 9)]
    assert {(bar["from"], bar["to"]) for bar in bars} == {(0.0, 0.009)}


def test_one_long_first_step_does_not_flatten_the_chart_of_all_of_it(chart, normal):
    found = chart("time", {"step": trained(2000 * MS, *[10 * MS] * 19)})
    lowest = found.spec["vconcat"][-1]
    area, cut = lowest["layer"]
    assert lowest["encoding"]["y"]["scale"]["domain"] == [0, 40]
    assert [row["ms"] for row in area["data"]["values"]] == [40, *[10] * 20]  # the last one ends
    assert [row["t"] for row in cut["data"]["values"]] == [1]
    assert area["mark"]["interpolate"] == "step-after"  # a step begins at its time
    assert "lowest chart is cut off at 40.0 ms" in found.caption
    even = drawn(normal)["chart-time"]
    assert len(even.spec["vconcat"][-1]["layer"]) == 1
    assert "lowest chart is cut off" not in even.caption


def test_each_part_of_an_imported_step_has_a_curve_on_an_axis_of_its_own(make_run):
    gaps = (200_000, 220_000, 9 * MS, 180_000, 200_000)
    rows = [
        row | {"fp_ns": row["start_ns"] + gap, "bp_ns": row["start_ns"] + 205 * MS}
        for row, gap in zip(trained(*[250 * MS] * 5), gaps, strict=True)
    ]
    ascend, collect = (
        panels(drawn(make_run({"step": rows}, source=source))["chart-time"]) for source in ("ascend", "collect")
    )
    assert {"Time before the forward pass", "Forward and backward pass", "Tail"} <= ascend.keys()
    assert "Forward and backward pass" not in collect
    gap = ascend["Time before the forward pass"]["encoding"]["y"]["scale"]["domain"]
    assert gap == [0, pytest.approx(0.84)]  # four times the median, and not as far as the one of 9 ms


def test_the_parts_of_the_run_are_in_the_order_of_time_and_keep_their_sum(chart):
    rows = [("training", 5, 2 * S), ("callback", 9, S), ("import", 0, S), ("callback", 7, S // 2)]
    assert step_charts.parts_of([{"part": part, "start_ns": at, "dur_ns": ns} for part, at, ns in rows]) == [
        {"part": "import of the framework", "ns": 1e9}, {"part": "training steps", "ns": 2e9},
        {"part": "callback", "ns": 1.5e9},
    ]  # fmt: skip
    short = {"part": "callback", "start_ns": 5, "dur_ns": 571_234}
    parts = [{"part": "training", "start_ns": 0, "dur_ns": 9 * S}, short]
    bars = values(chart("run", {"run_part": parts}).spec)
    assert {bar["label"] for bar in bars} == {"9.00 s", "571 us"}  # as in tables


def test_each_chart_is_drawn_or_says_what_was_not_measured(normal, ranks, empty, unfetched):
    found = {run.path: drawn(run) for run in (empty, unfetched, normal, ranks)}
    assert [name for name, chart in found[normal.path].items() if chart.drawn] == [
        "chart-time", "chart-step", "chart-operators",
    ]  # fmt: skip
    for made in found.values():
        assert list(made) == NAMES
        assert all(chart.caption.endswith(".") and (chart.said or not chart.drawn) for chart in made.values())
        assert all(chart.spec["description"] == chart.said for chart in made.values() if chart.drawn)
    assert "2 ranks; the longest step is 12.0 ms, of rank 1" in found[ranks.path]["chart-ranks"].said
    assert not any(chart.drawn for chart in found[empty.path].values())
    none = found[empty.path]["chart-time"].caption
    assert none.startswith("No step of a training was recorded: no training step was seen.")
    normal.manifest.not_measured = [NotMeasured(what="memory", why="switched off")]
    caption = drawn(normal)["chart-time"].caption
    assert "No memory was recorded: switched off." in caption
    assert "What the CPU time was used for was not recorded." in caption


def test_a_run_without_a_step_says_what_was_recorded_although_it_is_not_drawn(chart):
    memory = [TRAINER | {"t_ns": n} for n in range(3)]
    fetch = {"fetch": 0, "start_ns": 0, "wait_ns": 5, "side": "iterator"}
    said = chart("time", {"memory": memory, "fetch": [fetch]}).caption
    assert "Without a step there is nothing to draw over: Memory." in said
    assert "No wait for a batch was recorded" not in said


def test_without_the_extra_the_page_stays_as_it_is_and_says_how_to_get_charts(normal, monkeypatch):
    monkeypatch.setattr(html, "can_draw", lambda: False)
    text = html.of_run(normal, build(normal))
    assert "vegaEmbed" not in text
    assert f"<code>{charts.INSTALL}</code>" in text.replace("&#x27;", "'").replace("&#39;", "'")


def test_cells_of_the_heat_map_are_bounded_and_a_brush_is_over_steps_only():
    assert ranks.points_for(2) == 200
    assert all(ranks.points_for(count) * count <= ranks.MOST_CELLS for count in (8, 64, 1024))
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


PAGE = (
    "import sys; from pathlib import Path; from pipeprof.record.run import load; from pipeprof.report import html; "
    "from pipeprof.report.build import build; run = load(Path(sys.argv[1])); html.of_run(run, build(run)); "
    "assert 'altair' not in sys.modules"
)
# jsonschema loads the grammar when it is there, as in Jupyter's environments: seconds for a check that no chart needs.
PLOT = (
    "import sys, pipeprof; pipeprof.open(sys.argv[1]).plot.steps(); "
    "assert 'altair' in sys.modules; assert 'rfc3987_syntax' not in sys.modules"
)


@pytest.mark.parametrize("code", [PAGE, PLOT])
def test_a_page_is_drawn_without_altair_and_that_is_imported_without_the_grammar_of_addresses(normal, code):
    subprocess.run([sys.executable, "-c", code, str(normal.path)], check=True)


def test_queues_to_the_device_are_drawn_over_time():
    rows = [
        {"side": side, "t_ns": at * S, "mean_depth": depth, "low_depth": 0, "batches": 5}
        for side, depth in (("data_queue", 0.5), ("host_queue", 6.0)) for at in range(3)
    ]  # fmt: skip
    panel = samples.sink(rows)
    assert panel.said == (
        "the data queue on the device holds 0.5 batches on average; the host queue holds 6.0 batches on average"
    )
    assert panel.drawn["layer"][0]["encoding"]["y"]["field"] == "low"  # a moment in which it was empty is seen
    point = {"t": 0.0, "depth": 6.0, "of": "host queue", "low": 0, "high": 6.0}
    assert panel.drawn["data"]["values"][3] == point
    (note,) = panel.notes
    assert "reaches to the least" in note
    alone = samples.sink([{**row, "batches": 1} for row in rows])
    assert (alone.notes, "low" in alone.drawn["data"]["values"][0]) == ([], False)
    assert samples.sink([{**row, "t_ns": None} for row in rows]) is None


def test_steps_of_microseconds_have_a_width_and_a_height_and_sliders_that_end_with_them(chart):
    spec = chart("time", {"step": SHORT}).spec
    bars = [row for row in values(spec) if "high" in row]
    assert [(bar["from"], bar["to"]) for bar in bars[:2]] == [(0, 3e-6), (3e-6, 6e-6)]
    assert all(bar["high"] > bar["low"] for bar in bars)
    sliders = {one["name"]: one["value"] for one in spec["params"] if "value" in one}
    assert sliders["begin"] == 0
    assert 15e-6 <= sliders["end"] < 16e-6
    assert spec["vconcat"][-1]["encoding"]["x"]["title"] == "seconds since the launch"
    assert origin_of({"run": {"source": "import:megengine"}}) == "the beginning of the recording"


def test_samples_that_all_lie_before_the_steps_are_drawn_on_an_axis_of_their_own(chart):
    found = chart("time", {"step": LATE, "memory": [TRAINER | {"t_ns": n * MS} for n in range(1, 5)]})
    assert "Memory: samples are from before the first or after the last step" in found.caption
    assert list(panels(found)) == ["Steps", "Memory", "All of it: drag here"]
    assert "domainRaw" not in json.dumps(panels(found)["Memory"])
    # The host queue of a sink is filled before the first step, the device takes from its own within them.
    fetches = [
        {"fetch": n, "side": side, "depth": n, "capacity": 9, "start_ns": (n + at) * MS, "wait_ns": 0, "pipeline_id": 0}
        for side, at in (("host_queue", 0), ("data_queue", 900)) for n in range(4)
    ]  # fmt: skip
    found = panels(chart("time", {"step": LATE, "fetch": fetches}))
    assert "domainRaw" not in json.dumps(found["Queues to the device"])
    assert "domainRaw" in json.dumps(found["Steps"])


@pytest.mark.parametrize(("largest", "unit"), [(1023, "B"), (1024, "KiB"), (3 << 20, "MiB"), (5 << 30, "GiB")])
def test_an_axis_of_sizes_has_the_unit_of_its_largest(largest, unit, chart):
    assert byte_unit(largest)[0] == unit
    spec = chart("time", {"step": SHORT, "memory": [TRAINER | {"t_ns": 1, "rss_bytes": largest}]}).spec
    assert f'"title": "{unit}"' in json.dumps(spec["vconcat"][1])
    assert {row["level"] for row in values(spec) if "level" in row} == {largest / byte_unit(largest)[1]}


def test_colours_of_ranks_end_where_one_long_step_does_not_hide_a_late_rank():
    rows = [
        {"rank": rank, "first_step": n, "first_kind_step": n, "last_kind_step": n, "steps": 1, "dur_ns": 10 * MS,
         "data_wait_ns": None, "max_ns": 900 * MS if (rank, n) == (1, 3) else 10 * MS}
        for rank in range(2) for n in range(5)
    ]  # fmt: skip
    found = ranks.chart(rows)
    assert found.spec["encoding"]["color"]["scale"]["domainMax"] == {"expr": '({"longest step": 20.0})[shown]'}
    assert "Colours end at 2 times the median" in found.caption


@given(st.floats(-1e6, 0), st.floats(0, 1e6))
def test_the_labels_of_bars_have_half_of_the_chart_at_its_right(low, high):
    left, right = comparison._with_room(low, high)
    assert left == low
    assert right - high >= 0.5 * (right - left)


def test_where_no_batch_was_fetched_no_legend_speaks_of_a_wait_for_data(chart):
    parted = [
        row | {"fp_ns": row["start_ns"] + MS, "fp_source": "op", "data_wait_ns": MS} for row in trained(*[4 * MS] * 5)
    ]
    for rows, said in ((parted, ""), ([row | {"fetch_wait_ns": MS} for row in parted], ", mostly waiting for data")):
        spec = chart("time", {"step": rows}).spec
        assert f"time before the forward pass{said}" in {row.get("of") for row in values(spec) if row.get("low") == 0}


def test_one_sample_alone_is_a_point(chart):
    found = chart("time", {"step": trained(*[3 * MS] * 5), "memory": [TRAINER | {"t_ns": 7 * MS}]})
    memory = panels(found)["Memory"]
    assert [part["mark"]["type"] for part in memory["layer"]] == ["line", "point"]
    assert [row["t"] for row in memory["layer"][1]["data"]["values"]] == [0.007]


def test_what_is_alive_in_few_moments_of_a_long_run_is_not_drawn_as_alive_between_them(chart):
    """Of each part of the time the most is drawn, and then what is left of it until the next part with a change."""
    blocks = [
        {"bytes": 1 << 20, "produced_ns": start + n * 1000, "released_ns": start + n * 1000 + 500}
        for start in (0, S) for n in range(5)
    ]  # fmt: skip
    spec = chart("memory", {"step": trained(*[200 * MS] * 5), "allocation": blocks}).spec
    before = [row for row in spec["vconcat"][0]["layer"][0]["data"]["values"] if row["t"] < 0.5]
    assert (max(row["size"] for row in before), before[-1]["size"]) == (1, 0)


@pytest.mark.parametrize(("own", "unit", "bar"), [(500, "ns", 500), (6_000, "us", 6), (7 * MS, "ms", 7)])
def test_own_time_has_the_unit_of_its_largest(own, unit, bar, chart):
    op = {"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": own, "self_ns": own}
    tables = {"step": trained(*[9 * MS] * 5), "op_info": [{"op_id": 0, "name": "Add", "type": "Add"}], "op": [op]}
    bars = chart("operators", tables).spec["vconcat"][0]
    assert bars["encoding"]["x"]["title"] == f"own time, {unit}"
    assert [row["own"] for row in values(bars)] == [bar]


@pytest.mark.parametrize("last", [1, 2, 9, 10, 11, 100, 12_345])
def test_what_is_counted_has_ticks_at_whole_numbers_only(last):
    """Vega would put one between two measurements, and call it by the next one's number."""
    found = ticks(last)
    assert found[0] == 1
    assert found[-1] <= last
    assert len(found) <= 11
    assert all(isinstance(one, int) for one in found)


def test_steps_have_the_numbers_of_the_tables_and_not_those_among_evaluations(make_run):
    made = [
        {"rank": rank, "step": n, "kind": "eval" if n == 1 else "train", "kind_step": 0 if n == 1 else n - (n > 1),
         "start_ns": n * 10 * MS, "end_ns": n * 10 * MS + (9 if n == 3 else 2) * MS, "fetch_wait_ns": MS * (n == 3)}
        for rank in range(2) for n in range(5)
    ]  # fmt: skip
    found = drawn(make_run({"step": made}))
    assert "the longest of 9.00 ms at step 2," in found["chart-time"].caption
    assert "the longest is 1.00 ms, near step 2" in found["chart-time"].caption
    assert "near step 2;" in found["chart-ranks"].caption
    cells = [(row["first"], row["last"]) for row in values(found["chart-ranks"].spec)]
    assert cells == [(n, n + 1) for n in range(4)] * 2


def test_the_emptiest_queue_is_sought_among_all_and_drawn(chart):
    depths = [
        {"pipeline_id": 0, "op_id": n, "t_ns": at * MS, "depth": 1 if n == 11 else 5 + n % 2, "capacity": 10}
        for n in range(12) for at in range(1, 9)
    ]  # fmt: skip
    found = chart("time", {
        "step": trained(*[2 * MS] * 5), "pipeline": [{"pipeline_id": 0, "pipeline_key": "k", "role": "train"}],
        "queue": depths,
        "pipeline_op": [{"pipeline_id": 0, "op_id": n, "op_type": "MapOp", "capacity": 10} for n in range(12)],
    })  # fmt: skip
    assert "the emptiest on average is that behind `map (11)`, 10.0 % full" in found.caption
    assert "the 8 emptiest of 12 queues" in found.caption
    assert "queues are drawn from the start, in which they fill" in found.caption
    assert "map (11)" in {row.get("of") for row in values(found.spec)}


def test_the_least_memory_of_several_samples_is_drawn(chart):
    many = [
        {"t_ns": at * MS // 100, "device": "CPU", "name": "pool", "allocated_bytes": 4 << 20 if at % 2 else 1 << 20}
        for at in range(1, 1000)
    ]
    found = chart("time", {"step": trained(*[2 * MS] * 5), "memory": many})
    points = [row for row in values(found.spec) if "level" in row]
    assert {(row["low"], row["high"]) for row in points if "low" in row} == {(1.0, 4.0)}
    assert "the band below it reaches to the least" in found.caption


SLOWER = [10 * MS] * 120 + [20 * MS] * 120
SINCE = "the median step rises from 10.0 ms to 20.0 ms, mostly in what follows the fetch."


@pytest.mark.parametrize(("lengths", "begin", "said", "marks"), [
    (SLOWER, 0, f"Slower since about step 120, 1.20 s after the launch: {SINCE}", [1.2]),
    (SLOWER, 200_000 * S, f"Slower since about step 120: {SINCE}", [1.2]),  # a clock of the machine
    ([(10 + n // 10) * MS for n in range(240)], 0, "It grows over the whole training: the median step rises from", []),
    ([10 * MS] * 240, 0, "", []), ([10 * MS] * 5, 0, "", []), ([], 0, "", None),
])  # fmt: skip
def test_steps_that_become_slower_have_a_place_on_the_first_screen_and_a_mark(make_run, lengths, begin, said, marks):
    run = make_run({"step": trained(*lengths, begin=begin)})
    content = build(run)
    assert since(content).startswith(said)
    assert bool(since(content)) == bool(said)
    assert ("Slower" in said) == (since(content) == said != "")
    page = html.of_run(run, content)
    assert f"<dt>Since</dt><dd>{since(content)}" in page if said else "<dt>Since</dt>" not in page
    if marks is not None:
        layers = drawn(run)["chart-time"].spec["vconcat"][0]["layer"]
        found = [layer["data"]["values"][0]["at"] for layer in layers if layer["mark"].get("type") == "rule"]
        assert found == marks  # the vertical lines of the step chart, in s
