"""What charts looked wrong of: steps of microseconds, samples beside the steps, sizes, counts, and one value far out."""

import json

import pytest
from chart_values import values
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.report import charts
from pipeprof.report.build import build
from pipeprof.report.charts import comparison, ranks
from pipeprof.report.charts.chart import ticks
from pipeprof.report.words.training import origin_of
from pipeprof.units import byte_unit

MS = 1_000_000


@pytest.fixture
def drawn(make_run):
    """`drawn(tables)`: the charts of a run, by name."""

    def made(tables):
        run = make_run(tables)
        return {chart.name: chart for chart in charts.charts_of(run, build(run))}

    return made


def steps(length, count=5):
    return [
        {"step": n, "kind_step": n, "kind": "train", "start_ns": n * length, "end_ns": (n + 1) * length}
        for n in range(count)
    ]


def test_steps_of_microseconds_have_a_width_and_a_height(drawn):
    bars = [row for row in values(drawn({"step": steps(3000)})["chart-time"].spec) if "high" in row]
    assert [(bar["from"], bar["to"]) for bar in bars[:2]] == [(0, 3e-6), (3e-6, 6e-6)]
    assert all(bar["high"] > bar["low"] for bar in bars)


def test_the_sliders_of_a_short_run_reach_to_its_ends_and_not_far_beyond(drawn):
    values = {
        one["name"]: one["value"] for one in drawn({"step": steps(3000)})["chart-time"].spec["params"] if "value" in one
    }
    assert values["begin"] == 0
    assert 15e-6 <= values["end"] < 16e-6


def test_samples_that_all_lie_before_the_steps_are_drawn_on_an_axis_of_their_own(drawn):
    late = [
        row | {"start_ns": row["start_ns"] + 900 * MS, "end_ns": row["end_ns"] + 900 * MS} for row in steps(10 * MS)
    ]
    memory = [
        {"t_ns": n * MS, "device": "process", "pid": 7, "name": "trainer", "rss_bytes": 1 << 20} for n in range(1, 5)
    ]
    chart = drawn({"step": late, "memory": memory})["chart-time"]
    assert "Memory: samples are from before the first or after the last step" in chart.caption
    panels = {panel["title"]: panel for panel in chart.spec["vconcat"]}
    assert list(panels) == ["Steps", "Memory", "All of it: drag here"]
    assert "domainRaw" not in json.dumps(panels["Memory"])


def test_a_line_of_a_queue_that_no_step_overlaps_is_not_lost(drawn):
    """The host queue of a sink is filled before the first step, the device takes from its own within them."""
    fetches = [
        {"fetch": n, "side": side, "depth": n, "capacity": 9, "start_ns": (n + at) * MS, "wait_ns": 0, "pipeline_id": 0}
        for side, at in (("host_queue", 0), ("data_queue", 900)) for n in range(4)
    ]  # fmt: skip
    late = [
        row | {"start_ns": row["start_ns"] + 900 * MS, "end_ns": row["end_ns"] + 900 * MS} for row in steps(10 * MS)
    ]
    panels = {panel["title"]: panel for panel in drawn({"step": late, "fetch": fetches})["chart-time"].spec["vconcat"]}
    assert "domainRaw" not in json.dumps(panels["Queues to the device"])
    assert "domainRaw" in json.dumps(panels["Steps"])


def test_the_axis_of_time_says_what_it_counts_from(drawn):
    lowest = drawn({"step": steps(10 * MS)})["chart-time"].spec["vconcat"][-1]
    assert lowest["encoding"]["x"]["title"] == "seconds since the launch"
    assert origin_of({"run": {"source": "import:megengine"}}) == "the beginning of the recording"


@pytest.mark.parametrize(("largest", "unit"), [(1023, "B"), (1024, "KiB"), (3 << 20, "MiB"), (5 << 30, "GiB")])
def test_an_axis_of_sizes_has_the_unit_of_its_largest(largest, unit, drawn):
    assert byte_unit(largest)[0] == unit
    memory = [{"t_ns": 1, "device": "process", "pid": 7, "name": "trainer", "rss_bytes": largest}]
    spec = drawn({"step": steps(10 * MS), "memory": memory})["chart-time"].spec
    assert f'"title": "{unit}"' in json.dumps(spec["vconcat"][1])
    assert {row["level"] for row in values(spec) if "level" in row} == {largest / byte_unit(largest)[1]}


def test_colours_of_ranks_end_where_one_long_step_does_not_hide_a_late_rank():
    rows = [
        {"rank": rank, "first_step": n, "first_kind_step": n, "last_kind_step": n, "steps": 1, "dur_ns": 10 * MS, "data_wait_ns": None,
         "max_ns": 900 * MS if (rank, n) == (1, 3) else 10 * MS}
        for rank in range(2) for n in range(5)
    ]  # fmt: skip
    chart = ranks.chart(rows)
    assert chart.spec["encoding"]["color"]["scale"]["domainMax"] == {"expr": '({"longest step": 20.0})[shown]'}
    assert "Colours end at 2 times the median" in chart.caption


@given(st.floats(-1e6, 0), st.floats(0, 1e6))
def test_the_labels_of_bars_have_half_of_the_chart_at_its_right(low, high):
    left, right = comparison._with_room(low, high)
    assert left == low
    assert right - high >= 0.5 * (right - left)


def test_a_run_without_a_step_says_why_where_the_chart_would_be(empty):
    first = charts.charts_of(empty, build(empty))[0]
    assert first.drawn is None
    assert first.caption.startswith("No step of a training was recorded: no training step was seen.")


def test_a_run_without_a_step_says_what_was_recorded_although_it_is_not_drawn(make_run):
    run = make_run({
        "memory": [{"t_ns": n, "device": "process", "pid": 7, "name": "trainer", "rss_bytes": 1} for n in range(3)],
        "fetch": [{"fetch": 0, "start_ns": 0, "wait_ns": 5, "side": "iterator"}],
    })  # fmt: skip
    said = charts.charts_of(run, build(run))[0].caption
    assert "Without a step there is nothing to draw over: Memory." in said
    assert "No wait for a batch was recorded" not in said


def test_where_no_batch_was_fetched_no_legend_speaks_of_a_wait_for_data(drawn):
    parted = [row | {"fp_ns": row["start_ns"] + MS, "fp_source": "op", "data_wait_ns": MS} for row in steps(4 * MS)]
    alone = drawn({"step": parted})["chart-time"].spec
    fetched = drawn({"step": [row | {"fetch_wait_ns": MS} for row in parted]})["chart-time"].spec
    kinds = [{row["of"] for row in values(spec) if row.get("low") == 0 and "of" in row} for spec in (alone, fetched)]
    assert "time before the forward pass" in kinds[0]
    assert "time before the forward pass, mostly waiting for data" in kinds[1]


def test_one_sample_alone_is_a_point(drawn):
    one = {"t_ns": 7 * MS, "device": "process", "pid": 7, "name": "trainer", "rss_bytes": MS}
    spec = drawn({"step": steps(3 * MS), "memory": [one]})["chart-time"].spec
    (memory,) = (part for part in spec["vconcat"] if part["title"] == "Memory")
    assert [part["mark"]["type"] for part in memory["layer"]] == ["line", "point"]
    assert [row["t"] for row in memory["layer"][1]["data"]["values"]] == [0.007]


def test_what_is_alive_in_few_moments_of_a_long_run_is_not_drawn_as_alive_between_them(drawn):
    """Of each part of the time the most is drawn, and then what is left of it until the next part with a change."""
    blocks = [
        {"bytes": 1 << 20, "produced_ns": start + n * 1000, "released_ns": start + n * 1000 + 500}
        for start in (0, 1000 * MS) for n in range(5)
    ]  # fmt: skip
    spec = drawn({"step": steps(200 * MS), "allocation": blocks})["chart-memory"].spec
    curve = spec["vconcat"][0]["layer"][0]["data"]["values"]
    before = [row for row in curve if row["t"] < 0.5]
    assert max(row["size"] for row in before) == 1
    assert before[-1]["size"] == 0


def test_a_short_part_of_the_run_is_labelled_as_in_the_table(drawn):
    parts = [
        {"part": "training", "start_ns": 0, "dur_ns": 9000 * MS},
        {"part": "callback", "start_ns": 5, "dur_ns": 571_234},
    ]
    bars = values(drawn({"run_part": parts})["chart-run"].spec)
    assert {bar["label"] for bar in bars} == {"9.00 s", "571 us"}


@pytest.mark.parametrize(("own", "unit", "bar"), [(500, "ns", 500), (6_000, "us", 6), (7 * MS, "ms", 7)])
def test_own_time_has_the_unit_of_its_largest(own, unit, bar, drawn):
    op = {"op_id": 0, "step": 0, "start_ns": 0, "dur_ns": own, "self_ns": own}
    infos = [{"op_id": 0, "name": "Add", "type": "Add"}]
    bars = drawn({"step": steps(9 * MS), "op_info": infos, "op": [op]})["chart-operators"].spec["vconcat"][0]
    assert bars["encoding"]["x"]["title"] == f"own time, {unit}"
    assert [row["own"] for row in values(bars)] == [bar]


@pytest.mark.parametrize("last", [1, 2, 9, 10, 11, 100, 12_345])
def test_what_is_counted_has_ticks_at_whole_numbers_only(last):
    """Vega would put one between two measurements, and call it by the next one's number."""
    values = ticks(last)
    assert values[0] == 1
    assert values[-1] <= last
    assert len(values) <= 11
    assert all(isinstance(one, int) for one in values)


def test_steps_have_the_numbers_of_the_tables_and_not_those_among_evaluations(drawn):
    made = [
        {"rank": rank, "step": n, "kind": "eval" if n == 1 else "train", "kind_step": 0 if n == 1 else n - (n > 1),
         "start_ns": n * 10 * MS, "end_ns": n * 10 * MS + (9 if n == 3 else 2) * MS, "fetch_wait_ns": MS if n == 3 else 0}
        for rank in range(2) for n in range(5)
    ]  # fmt: skip
    found = drawn({"step": made})
    assert "the longest of 9.00 ms at step 2," in found["chart-time"].caption
    assert "the longest is 1.00 ms, near step 2" in found["chart-time"].caption
    assert "near step 2;" in found["chart-ranks"].caption
    cells = [(row["first"], row["last"]) for row in values(found["chart-ranks"].spec)]
    assert cells == [(n, n + 1) for n in range(4)] * 2


def test_the_emptiest_queue_is_sought_among_all_and_drawn(drawn):
    ops = [{"pipeline_id": 0, "op_id": n, "op_type": "MapOp", "capacity": 10} for n in range(12)]
    depths = [
        {"pipeline_id": 0, "op_id": n, "t_ns": at * MS, "depth": 1 if n == 11 else 5 + n % 2, "capacity": 10}
        for n in range(12) for at in range(1, 9)
    ]  # fmt: skip
    found = drawn({
        "step": steps(2 * MS), "pipeline": [{"pipeline_id": 0, "pipeline_key": "k", "role": "train"}],
        "pipeline_op": ops, "queue": depths,
    })["chart-time"]  # fmt: skip
    assert "the emptiest on average is that behind `map (11)`, 10.0 % full" in found.caption
    assert "the 8 emptiest of 12 queues" in found.caption
    assert "queues are drawn from the start, in which they fill" in found.caption
    assert "map (11)" in {row.get("of") for row in values(found.spec)}


def test_the_least_memory_of_several_samples_is_drawn(drawn):
    many = [
        {"t_ns": at * MS // 100, "device": "CPU", "name": "pool", "allocated_bytes": 4 << 20 if at % 2 else 1 << 20}
        for at in range(1, 1000)
    ]
    found = drawn({"step": steps(2 * MS), "memory": many})["chart-time"]
    points = [row for row in values(found.spec) if "level" in row]
    assert {(row["low"], row["high"]) for row in points if "low" in row} == {(1.0, 4.0)}
    assert "the band below it reaches to the least" in found.caption
