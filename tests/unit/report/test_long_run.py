"""The page of a long run on several ranks: what is thinned keeps its extremes, and the page says that it is thinned."""

import page_cost
import pytest
from chart_values import values

from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.record.run import load
from pipeprof.report import charts, html
from pipeprof.report.build import build
from pipeprof.report.charts import samples, steps
from pipeprof.report.charts.facts import facts_of
from pipeprof.report.charts.overtime import edges
from pipeprof.report.sections.block import focus_of

STEPS, RANKS = 6000, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A recording with one long step, of the slow rank, and one peak of memory; its report and its charts."""
    path = tmp_path_factory.mktemp("long") / "run"
    page_cost.SLOW_RANK = 1
    page_cost.make_run(path, STEPS, RANKS)
    run = load(path)
    content = build(run)
    return run, content, {chart.name: chart for chart in charts.charts_of(run, content)}


def test_the_longest_step_the_peak_of_the_memory_and_the_ends_of_queues_are_drawn_and_named(made):
    run, content, drawn = made
    chart = drawn["chart-time"]
    assert f"the longest of 900 ms at step {int(STEPS * page_cost.LONG_STEP)}" in chart.caption
    assert f"the mean of up to {STEPS // steps.POINTS} steps in a row" in chart.caption
    assert "a diamond is a step of more than 2 times the usual length" in chart.caption
    assert len(values(chart.spec["vconcat"][0])) <= 3 * steps.POINTS
    levels = [row["level"] for row in values(chart.spec) if "level" in row]
    assert max(levels) == page_cost.PEAK / (1 << 30)
    assert len(levels) <= samples.POINTS
    assert "the highest level is 3.00 GiB" in chart.caption
    fills = [row for row in values(chart.spec) if "fill" in row]
    assert {row["low"] for row in fills} >= {0.0}
    assert {row["high"] for row in fills} >= {1.0}
    assert "from the least to the most" in chart.caption
    assert len(html.of_run(run, content)) < 3_000_000


def test_very_many_bars_are_an_area_for_each_kind_with_the_same_heights(made):
    _, content, drawn = made
    stacked = drawn["chart-time"].spec["vconcat"][0]["layer"][0]
    assert stacked["mark"]["type"] == "area"
    points = values(stacked)
    bars = list(steps.bars(facts_of(made[0], content).steps))
    assert {(bar["from"], bar["low"], bar["high"], bar["of"]) for bar in bars} <= {
        (point["t"], point["low"], point["high"], point["of"]) for point in points
    }


def test_an_area_has_no_height_where_its_kind_has_no_bar():
    found = [
        {"from": 0, "to": 1, "low": 0, "high": 2, "of": "a"}, {"from": 1, "to": 2, "low": 0, "high": 3, "of": "a"},
        {"from": 5, "to": 6, "low": 1, "high": 4, "of": "a"}, {"from": 5, "to": 6, "low": 0, "high": 1, "of": "b"},
    ]  # fmt: skip
    assert [(point["of"], point["t"], point["high"] - point["low"]) for point in edges(found)] == [
        ("a", 0, 2), ("a", 1, 3), ("a", 2, 0), ("a", 5, 3), ("a", 6, 0), ("b", 5, 1), ("b", 6, 0),
    ]  # fmt: skip


def test_a_cell_of_the_heat_map_has_the_longest_of_its_steps(made):
    _, _, drawn = made
    cells = values(drawn["chart-ranks"].spec)
    longest = max(cells, key=lambda cell: cell["longest step"])
    assert (longest["rank"], longest["longest step"]) == (1, 900)
    assert longest["first"] <= int(STEPS * page_cost.LONG_STEP) < longest["last"]
    assert "A cell stands for up to 30 steps in a row." in drawn["chart-ranks"].caption


def test_of_other_ranks_only_what_is_drawn_of_all_is_read(made, monkeypatch):
    run, content, drawn = made
    whole, asked = Engine.open, []
    monkeypatch.setattr(
        Engine, "open", lambda *args, **how: asked.append((how.get("part"), engine := whole(*args, **how))) or engine
    )
    again = charts.charts_of(run, content)
    assert [chart.spec for chart in again if chart.drawn] == [chart.spec for chart in drawn.values() if chart.drawn]
    assert [part for part, _ in asked].count(None) == 1
    assert {part for part, _ in asked} == {None, Part.of_rank(*focus_of(content))}
