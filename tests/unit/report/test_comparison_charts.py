"""The charts of a comparison's page: their data are the comparison's, and a browser draws them."""

import json
import re
from functools import partial

import pytest
from chart_values import values
from comparisons import comparison, hostile, metric
from hostile import NAMES, check_html

from pipeprof.experiment.compare import compare_places, compare_sides
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.run import Rep
from pipeprof.report import json_text, section_html
from pipeprof.report.charts import comparison as charts
from pipeprof.report.compare import sections as compare_sections
from pipeprof.report.compare.content import read
from pipeprof.report.pictures.compared import pairs_of
from pipeprof.report.words.comparison import METRICS

MS = 1_000_000
page_of = partial(compare_sections.text, form="html")


@pytest.fixture
def compared(make_run):
    """A comparison of two runs of three repetitions with twelve steps, the first a warm-up: 10 ms and 20 ms."""

    def make(ms):
        rows = [
            {"rep": rep, "step": n, "kind": "train" if n else "warmup", "kind_step": n, "start_ns": n * 40 * MS,
             "end_ns": n * 40 * MS + (ms + rep) * MS}
            for rep in range(3) for n in range(12)
        ]  # fmt: skip
        run = make_run({"step": rows})
        run.manifest.state, run.manifest.job, run.manifest.command = "complete", "boot:1", ["python", "train.py"]
        run.manifest.fingerprint = {"cpu_model": "A", "cpu_cores": 2}
        run.manifest.reps = [
            Rep(rep=rep, zero_realtime_ns=ms * 100 + rep, zero_monotonic_ns=0, exit_code=0) for rep in range(3)
        ]
        run.save()
        return str(run.path)

    return compare_places(make(10), make(20))


def drawn(content, name):
    (found,) = (chart for chart in charts.charts_of(content) if chart.name == name)
    return found


def test_every_repetition_is_a_point_at_its_place_in_time(compared):
    (measured,) = (one for one in compared["repetitions"] if one["name"] == "step_time_median")
    assert measured["base"] == [[0, 10e6], [1, 11e6], [2, 12e6]]
    assert measured["new"] == [[3, 20e6], [4, 21e6], [5, 22e6]]
    panels = drawn(compared, "chart-repetitions").spec["vconcat"]
    points = [row for row in values(panels[0]) if "at" in row]
    assert [(row["at"], row["value"], row["side"]) for row in points] == [
        (1, 10.0, "base"), (2, 11.0, "base"), (3, 12.0, "base"), (4, 20.0, "new"), (5, 21.0, "new"), (6, 22.0, "new"),
    ]  # fmt: skip


def test_interval_and_least_change_are_those_of_the_metric(compared):
    one = next(one for one in compared["metrics"] if one["name"] == "step_time_median")
    rows = values(drawn(compared, "chart-repetitions").spec["vconcat"][0])
    (band,) = (row for row in rows if "low" in row)
    assert (band["low"], band["high"]) == pytest.approx(
        (one["base"] * one["ci_low"] / MS, one["base"] * one["ci_high"] / MS)
    )
    assert [row["edge"] for row in rows if "edge" in row] == pytest.approx(
        [one["base"] / 1.02 / MS, one["base"] * 1.02 / MS]
    )


def test_the_steps_of_the_middle_repetition_are_drawn_without_warm_up(compared):
    assert compared["curves"] == {"base": [11e6] * 11, "new": [21e6] * 11}
    assert "of its lowest rank" in drawn(compared, "chart-curves").caption
    rows = values(drawn(compared, "chart-curves").spec)
    assert [row["ms"] for row in rows] == [11.0] * 11 + [21.0] * 11
    alone = drawn({**compared, "curves": {"base": [], "new": [5e6, 6e6]}}, "chart-curves")
    assert alone.caption.endswith("Those of base are not known.")


def test_differences_are_sorted_by_their_size_and_named_by_what_they_are():
    found = [
        metric("op/Default/net/Conv2D", family="secondary", base=1e6, new=3e6),
        metric("pipeline/rotate", family="secondary", base=9e6, new=4e6),
        metric("phase/data_wait", family="secondary", base=1e6, new=8e6),
        metric("op/same", family="secondary", base=1e6, new=1e6),
        metric("count/net", family="deterministic", unit="", base=1, new=2),
        metric("op/gone", family="secondary", base=1e6, new=None),
    ]
    rows = values(drawn(comparison(metrics=found), "chart-changes").spec)
    assert [(row["name"], row["ms"], row["label"]) for row in rows] == [
        ("time before the forward pass", 7.0, "+7.00 ms"), ("rotate", -5.0, "-5.00 ms"), ("Conv2D", 2.0, "+2.00 ms"),
    ]  # fmt: skip


def side(step_ms, wait_ms, label):
    """A side whose steps are a wait and the rest, of five repetitions."""
    noise = (0.0, 0.01, -0.01, 0.02, -0.02)
    levels = {"step_time_median": step_ms, "phase/data_wait": wait_ms, "phase/compute": step_ms - wait_ms}
    return Measures(
        label=label, kind="run", workload="demo", command=["python"],
        values={name: {rep: (level + off) * MS for rep, off in enumerate(noise)} for name, level in levels.items()},
        reps={rep: Repetition(order=rep, job="j") for rep in range(5)}, fingerprint={"cpu_model": "A"}, run_ids=[label],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("new", "labels"), [((14, 4), ["+3.00 ms (75.0 %)", "+1.00 ms (25.0 %)"]), ((10.01, 2), ["+1.00 ms", "-990 us"])]
)
def test_the_share_of_a_change_is_that_of_the_mean_step_where_it_changed(new, labels):
    content = compare_sides(side(10, 1, "base"), side(*new, "new"))
    rows = values(drawn(content, "chart-changes").spec)
    assert [row["label"] for row in rows] == labels


def test_where_nothing_differs_the_page_does_not_say_that_nothing_was_measured():
    same = [metric("phase/data_wait", family="secondary", base=1e6, new=1e6)]
    caption = drawn(comparison(metrics=same), "chart-changes").caption
    assert caption == "Everything inside a step took as long on both sides."


def stage(op_id, name, workers=1, work_ns=None, fill=None, pipeline="a"):
    return {"pipeline": pipeline, "op_id": op_id, "name": name, "label": name, "op_type": "MapOp", "workers": workers,
            "consumer_id": op_id - 1 if op_id else None, "work_ns": work_ns, "fill_ratio": fill, "place": "train.py:7"}  # fmt: skip


BASE = [
    stage(0, "batch", fill=0.9),
    stage(1, "decode", 2, 4e6, 0.5),
    stage(2, "crop", 1, 1e6),
    stage(3, "read", 1, 2e6),
]
NEW = [
    stage(0, "batch", fill=0.2),
    stage(1, "decode", 4, 9e6, 0.55),
    stage(2, "flip", 1, 1e6),
    stage(3, "read", 1, 2.1e6),
]


def shown(pairs):
    return [(pair.any.name, pair.change, (pair.base is not None) + (pair.new is not None)) for pair in pairs]


def test_both_pipelines_are_one_flow_in_which_what_changed_is_marked():
    pairs = pairs_of({"base": BASE, "new": NEW})
    assert shown(pairs) == [
        ("read", "", 2), ("crop", "only in the base", 1), ("flip", "only in the new run", 1), ("decode", "changed", 2),
        ("batch", "changed", 2),
    ]  # fmt: skip
    assert pairs_of({"base": BASE, "new": []}) == []
    page = page_of(comparison(pipelines={"base": BASE, "new": NEW}))
    first = page.partition('<section class="first">')[2].partition("</section>")[0]
    assert "4 stages changed" in first
    assert "4.00 ms -&gt; 9.00 ms a batch" in first
    assert "2 workers -&gt; 4 workers, queue 50.0 % -&gt; 55.0 % full, train.py:7" in first
    assert first.count('class="stage limit"') == 4


def test_a_stage_that_moved_is_one_stage():
    moved = [row | {"op_id": 3 - row["op_id"]} for row in BASE]
    assert {name for name, change, sides in shown(pairs_of({"base": BASE, "new": moved})) if sides == 2} == {
        "batch", "decode", "crop", "read",
    }  # fmt: skip


def test_of_several_pipelines_that_with_the_most_work_is_shown():
    other = [stage(0, "small", 1, 1e3, pipeline="z")]
    assert shown(pairs_of({"base": [*other, *BASE], "new": [*BASE, *other]})) == [
        ("read", "", 2), ("crop", "", 2), ("decode", "", 2), ("batch", "", 2),
    ]  # fmt: skip


def test_a_pipeline_of_a_run_is_that_of_its_repetitions(make_run):
    def side(workers):
        return make_run({
            "step": [{"rep": rep, "step": n, "kind": "train", "kind_step": n, "start_ns": n * MS, "end_ns": n * MS + workers}
                     for rep in range(2) for n in range(9)],
            "pipeline": [{"rep": rep, "pipeline_id": 0, "pipeline_key": "k", "role": "train"} for rep in range(2)],
            "pipeline_op": [{"rep": rep, "pipeline_id": 0, "op_id": 0, "op_type": "MapOp", "name": "decode", "workers": workers,
                             "capacity": 4, "site": "/w/train.py:3"} for rep in range(2)],
            "queue": [{"rep": rep, "pipeline_id": 0, "op_id": 0, "t_ns": n * MS, "depth": 1 + rep, "capacity": 4}
                      for rep in range(2) for n in range(1, 9)],
        })  # fmt: skip

    runs = [side(2), side(3)]
    for run in runs:
        run.manifest.state, run.manifest.command = "complete", ["python", "train.py"]
        run.manifest.reps = [Rep(rep=rep, zero_realtime_ns=rep, zero_monotonic_ns=0, exit_code=0) for rep in range(2)]
        run.save()
    content = compare_places(*(str(run.path) for run in runs))
    (base,), (new,) = content["pipelines"]["base"], content["pipelines"]["new"]
    assert (base["name"], base["workers"], new["workers"], base["place"]) == ("decode", 2, 3, "train.py:3")
    assert base["fill_ratio"] == pytest.approx(0.375)  # the median of 1 and 2 of 4
    assert "2 workers -&gt; 3 workers" in page_of(content)


def test_metrics_are_worded_on_the_page_and_keep_their_names_in_json(compared):
    compared["metrics"] += [
        metric(name, family="secondary")
        for name in (
            "phase/data_wait",
            "pipeline/decode",
            "op/net/MatMul",
            "count/MatMul",
            "count/compilations",
            "bytes/batch",
            "count/rows/Rows",
            "bytes/row/Rows",
        )
    ]
    page = page_of(compared)
    tables = re.findall(r"<tr><td>(.*?)</td>", page)
    assert {"step time", "step time p90", "time to first step", "time before the forward pass"} <= set(tables)
    assert "work of <code>decode</code> per batch" in tables
    assert "own time of <code>net/MatMul</code> per step" in tables
    assert "executions of <code>MatMul</code> per step" in tables
    assert {"compiled graphs", "size of a batch", "rows of <code>Rows</code>"} <= set(tables)
    assert "size of a row of <code>Rows</code>" in tables
    heads = [one["title"][0] for one in drawn(compared, "chart-repetitions").spec["vconcat"]]
    assert f"step time: {compared['verdict']}" in heads
    assert not set(METRICS) & set(tables)
    assert '"step_time_median"' in json_text.text(compared)


def test_what_is_not_known_is_said():
    said = [chart.caption for chart in charts.charts_of(comparison(metrics=[metric()]))]
    assert said == [
        "The values of single repetitions are not known.",
        "Nothing inside a step was measured on both sides.",
        "The steps of single repetitions are not known: baselines do not keep them.",
    ]


def test_a_saved_comparison_gives_the_same_page(compared):
    saved = read(json_text.text(compared).encode(), "compare.json")
    assert page_of(saved) == page_of(json.loads(json_text.text(compared)))


def test_without_the_extra_the_page_has_the_same_tables(compared, monkeypatch):
    whole = page_of(compared)
    monkeypatch.setattr(section_html, "can_draw", lambda: False)
    still = page_of(compared)
    assert "pip install" in still
    assert re.findall("<td.*?</td>", still) == re.findall("<td.*?</td>", whole.partition("<script>")[0])
    assert "vegaEmbed" not in still


def test_hostile_names_are_inert():
    content = hostile()
    content["metrics"] += [metric(f"op/{name}", family="secondary", new=n * 1e6) for n, name in enumerate(NAMES)]
    content["repetitions"] = [
        {"name": one["name"], "base": [[0, 1.0]], "new": [[1, 2.0]]} for one in content["metrics"][:40]
    ]
    content["pipelines"] = {side: [stage(n, name) for n, name in enumerate(NAMES[:12])] for side in ("base", "new")}
    check_html(page_of(content))


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_in_a_browser_the_charts_are_drawn_and_tables_are_searched(compared, opened, width, scheme):
    many = [
        metric(f"op/net/Op{n}", "regressed" if n == 7 else "unchanged", family="secondary", new=30e6 + n)
        for n in range(30)
    ]
    compared["metrics"] += many
    compared["pipelines"] = {"base": BASE, "new": NEW}
    page = opened(page_of(compared), width, scheme)

    def marks(chart, kind):
        return page.locator(f"#{chart} g.mark-{kind}.role-mark path, #{chart} g.mark-{kind}.role-mark line").count()

    shown = sum(1 for one in compared["repetitions"] if one["base"])
    assert marks("chart-repetitions", "symbol") == 6 * shown
    assert marks("chart-changes", "rect") == 20
    assert marks("chart-curves", "line") == 2
    assert page.locator(".flow .stage").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in page.locator(".chart svg").all():
        assert chart.bounding_box()["width"] <= width
    page.get_by_text("Secondary metrics: ").click()
    secondary = page.locator("table.sortable").last
    page.get_by_role("searchbox").last.fill("Op29")
    assert secondary.locator("tbody tr:visible").count() == 1
    page.get_by_role("searchbox").last.fill("")
    secondary.get_by_role("button", name="new").click()
    assert "Op29" in secondary.locator("tbody tr").first.inner_text()


def test_a_name_with_a_bracket_is_whole_beside_its_bar(opened):
    names = ("add (fused) b", "add (fused)", "add")
    found = [metric(f"op/{name}", family="secondary", base=1e6, new=n * 3e6) for n, name in enumerate(names, 1)]
    page = opened(page_of(comparison(metrics=found)))
    told = page.eval_on_selector_all(
        "#chart-changes g.role-axis-label text", "all => all.map((one) => one.textContent)"
    )
    assert set(names) <= set(told)
