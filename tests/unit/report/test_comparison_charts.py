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
from tests.unit.report.conftest import MS

page_of = partial(compare_sections.text, form="html")
second = partial(metric, family="secondary")


def recorded(make_run, tables, count, first=0, **facts):
    """The path of a run of so many repetitions."""
    reps = [Rep(rep=n, zero_realtime_ns=first + n, zero_monotonic_ns=0, exit_code=0) for n in range(count)]
    return str(make_run(tables, state="complete", command=["python", "train.py"], reps=reps, **facts).path)


@pytest.fixture
def compared(make_run):
    """A comparison of two runs of three repetitions with twelve steps, the first a warm-up: 10 ms and 20 ms."""

    def make(ms):
        rows = [
            {"rep": rep, "step": n, "kind": "train" if n else "warmup", "kind_step": n, "start_ns": n * 40 * MS,
             "end_ns": n * 40 * MS + (ms + rep) * MS}
            for rep in range(3) for n in range(12)
        ]  # fmt: skip
        facts = {"job": "boot:1", "fingerprint": {"cpu_model": "A", "cpu_cores": 2}}
        return recorded(make_run, {"step": rows}, 3, ms * 100, **facts)

    return compare_places(make(10), make(20))


def drawn(content, name):
    (found,) = (chart for chart in charts.charts_of(content) if chart.name == name)
    return found


def test_every_repetition_is_a_point_at_its_place_in_time(compared):
    (measured,) = (one for one in compared["repetitions"] if one["name"] == "step_time_median")
    assert measured["base"] == [[0, 10e6], [1, 11e6], [2, 12e6]]
    assert measured["new"] == [[3, 20e6], [4, 21e6], [5, 22e6]]
    rows = values(drawn(compared, "chart-repetitions").spec["vconcat"][0])
    assert [(row["at"], row["value"], row["side"]) for row in rows if "at" in row] == [
        (1, 10.0, "base"), (2, 11.0, "base"), (3, 12.0, "base"), (4, 20.0, "new"), (5, 21.0, "new"), (6, 22.0, "new"),
    ]  # fmt: skip
    one = next(one for one in compared["metrics"] if one["name"] == "step_time_median")
    base = one["base"] / MS
    (band,) = (row for row in rows if "low" in row)
    assert (band["low"], band["high"]) == pytest.approx((base * one["ci_low"], base * one["ci_high"]))
    assert [row["edge"] for row in rows if "edge" in row] == pytest.approx([base / 1.02, base * 1.02])


def test_the_steps_of_the_middle_repetition_are_drawn_without_warm_up(compared):
    assert compared["curves"] == {"base": [11e6] * 11, "new": [21e6] * 11}
    curves = drawn(compared, "chart-curves")
    assert "of its lowest rank" in curves.caption
    assert [row["ms"] for row in values(curves.spec)] == [11.0] * 11 + [21.0] * 11
    alone = drawn({**compared, "curves": {"base": [], "new": [5e6, 6e6]}}, "chart-curves")
    assert alone.caption.endswith("Those of base are not known.")


def test_differences_are_sorted_by_their_size_and_named_by_what_they_are():
    found = [
        second("op/Default/net/Conv2D", base=1e6, new=3e6), second("pipeline/rotate", base=9e6, new=4e6),
        second("phase/data_wait", base=1e6, new=8e6), second("op/same", base=1e6, new=1e6),
        metric("count/net", family="deterministic", unit="", base=1, new=2), second("op/gone", base=1e6, new=None),
    ]  # fmt: skip
    rows = values(drawn(comparison(metrics=found), "chart-changes").spec)
    assert [(row["name"], row["ms"], row["label"]) for row in rows] == [
        ("time before the forward pass", 7.0, "+7.00 ms"), ("rotate", -5.0, "-5.00 ms"), ("Conv2D", 2.0, "+2.00 ms"),
    ]  # fmt: skip
    same = drawn(comparison(metrics=[second("phase/data_wait", base=1e6, new=1e6)]), "chart-changes")
    assert same.caption == "Everything inside a step took as long on both sides."


def side(step_ms, wait_ms, label):
    """A side whose steps are a wait and the rest, of five repetitions."""
    noise = (0.0, 0.01, -0.01, 0.02, -0.02)
    levels = {"step_time_median": step_ms, "phase/data_wait": wait_ms, "phase/compute": step_ms - wait_ms}
    return Measures(
        label=label, kind="run", workload="demo", command=["python"],
        values={name: {rep: (level + off) * MS for rep, off in enumerate(noise)} for name, level in levels.items()},
        reps={rep: Repetition(order=rep, job="j") for rep in range(5)}, fingerprint={"cpu_model": "A"}, run_ids=[label],
    )  # fmt: skip


@pytest.mark.parametrize(("new", "labels"), [
    ((14, 4), ["+3.00 ms (75.0 %)", "+1.00 ms (25.0 %)"]), ((10.01, 2), ["+1.00 ms", "-990 us"]),
])  # fmt: skip
def test_the_share_of_a_change_is_that_of_the_mean_step_where_it_changed(new, labels):
    content = compare_sides(side(10, 1, "base"), side(*new, "new"))
    assert [row["label"] for row in values(drawn(content, "chart-changes").spec)] == labels


def stage(op_id, name, workers=1, work_ns=None, fill=None, pipeline="a"):
    return {"pipeline": pipeline, "op_id": op_id, "name": name, "label": name, "op_type": "MapOp", "workers": workers,
            "consumer_id": op_id - 1 if op_id else None, "work_ns": work_ns, "fill_ratio": fill,
            "place": "train.py:7"}  # fmt: skip


BASE = [stage(0, "batch", fill=0.9), stage(1, "decode", 2, 4e6, 0.5), stage(2, "crop", 1, 1e6),
        stage(3, "read", 1, 2e6)]  # fmt: skip
NEW = [stage(0, "batch", fill=0.2), stage(1, "decode", 4, 9e6, 0.55), stage(2, "flip", 1, 1e6),
       stage(3, "read", 1, 2.1e6)]  # fmt: skip
MOVED = [row | {"op_id": 3 - row["op_id"]} for row in BASE]
OTHER = [stage(0, "small", 1, 1e3, pipeline="z")]


def shown(base, new):
    pairs = pairs_of({"base": base, "new": new})
    return [(pair.any.name, pair.change, (pair.base is not None) + (pair.new is not None)) for pair in pairs]


def test_both_pipelines_are_one_flow_in_which_what_changed_is_marked():
    assert shown(BASE, NEW) == [
        ("read", "", 2), ("crop", "only in the base", 1), ("flip", "only in the new run", 1), ("decode", "changed", 2),
        ("batch", "changed", 2),
    ]  # fmt: skip
    assert shown(BASE, []) == []
    # A stage that moved is one stage, and of several pipelines that with the most work is shown.
    assert {name for name, _, sides in shown(BASE, MOVED) if sides == 2} == {"batch", "decode", "crop", "read"}
    assert shown([*OTHER, *BASE], [*BASE, *OTHER]) == [(name, "", 2) for name in ("read", "crop", "decode", "batch")]
    page = page_of(comparison(pipelines={"base": BASE, "new": NEW}))
    first = page.partition('<section class="first">')[2].partition("</section>")[0]
    assert "4 stages changed" in first
    assert "4.00 ms -&gt; 9.00 ms a batch" in first
    assert "2 workers -&gt; 4 workers, queue 50.0 % -&gt; 55.0 % full, train.py:7" in first
    assert first.count('class="stage limit"') == 4


def test_a_pipeline_of_a_run_is_that_of_its_repetitions(make_run):
    def side(workers):
        at = [{"rep": rep, "pipeline_id": 0} for rep in range(2)]
        op = {"op_id": 0, "op_type": "MapOp", "name": "decode", "workers": workers, "capacity": 4}
        return recorded(make_run, {
            "step": [{"rep": rep, "step": n, "kind": "train", "kind_step": n, "start_ns": n * MS,
                      "end_ns": n * MS + workers} for rep in range(2) for n in range(9)],
            "pipeline": [one | {"pipeline_key": "k", "role": "train"} for one in at],
            "pipeline_op": [one | op | {"site": "/w/train.py:3"} for one in at],
            "queue": [one | {"op_id": 0, "t_ns": n * MS, "depth": 1 + one["rep"], "capacity": 4}
                      for one in at for n in range(1, 9)],
        }, 2)  # fmt: skip

    content = compare_places(side(2), side(3))
    (base,), (new,) = content["pipelines"]["base"], content["pipelines"]["new"]
    assert (base["name"], base["workers"], new["workers"], base["place"]) == ("decode", 2, 3, "train.py:3")
    assert base["fill_ratio"] == pytest.approx(0.375)  # the median of 1 and 2 of 4
    assert "2 workers -&gt; 3 workers" in page_of(content)


WORDED = {
    "phase/data_wait": "time before the forward pass", "pipeline/decode": "work of <code>decode</code> per batch",
    "op/net/MatMul": "own time of <code>net/MatMul</code> per step", "bytes/batch": "size of a batch",
    "count/MatMul": "executions of <code>MatMul</code> per step", "count/compilations": "compiled graphs",
    "count/rows/Rows": "rows of <code>Rows</code>", "bytes/row/Rows": "size of a row of <code>Rows</code>",
}  # fmt: skip


def test_metrics_are_worded_on_the_page_and_keep_their_names_in_json(compared):
    compared["metrics"] += [second(name) for name in WORDED]
    tables = set(re.findall(r"<tr><td>(.*?)</td>", page_of(compared)))
    assert {"step time", "step time p90", "time to first step", *WORDED.values()} <= tables
    assert not set(METRICS) & tables
    heads = [one["title"][0] for one in drawn(compared, "chart-repetitions").spec["vconcat"]]
    assert f"step time: {compared['verdict']}" in heads
    assert '"step_time_median"' in json_text.text(compared)


def test_what_is_not_known_is_said():
    assert [chart.caption for chart in charts.charts_of(comparison(metrics=[metric()]))] == [
        "The values of single repetitions are not known.",
        "Nothing inside a step was measured on both sides.",
        "The steps of single repetitions are not known: baselines do not keep them.",
    ]


def test_a_saved_comparison_gives_the_same_page_and_without_the_extra_the_same_tables(compared, monkeypatch):
    saved = read(json_text.text(compared).encode(), "compare.json")
    assert page_of(saved) == page_of(json.loads(json_text.text(compared)))
    whole = page_of(compared)
    monkeypatch.setattr(section_html, "can_draw", lambda: False)
    still = page_of(compared)
    assert "pip install" in still
    assert re.findall("<td.*?</td>", still) == re.findall("<td.*?</td>", whole.partition("<script>")[0])
    assert "vegaEmbed" not in still


def test_hostile_names_are_inert():
    content = hostile()
    content["metrics"] += [second(f"op/{name}", new=n * 1e6) for n, name in enumerate(NAMES)]
    names = [one["name"] for one in content["metrics"][:40]]
    content["repetitions"] = [{"name": name, "base": [[0, 1.0]], "new": [[1, 2.0]]} for name in names]
    content["pipelines"] = {side: [stage(n, name) for n, name in enumerate(NAMES[:12])] for side in ("base", "new")}
    check_html(page_of(content))


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_in_a_browser_the_charts_are_drawn_and_tables_are_searched(compared, opened, width, scheme):
    verdicts = ["regressed" if n == 7 else "unchanged" for n in range(30)]
    compared["metrics"] += [second(f"op/net/Op{n}", verdict, new=30e6 + n) for n, verdict in enumerate(verdicts)]
    compared["pipelines"] = {"base": BASE, "new": NEW}
    page = opened(page_of(compared), width, scheme)

    def marks(chart, kind):
        return page.locator(f"#{chart} g.mark-{kind}.role-mark path, #{chart} g.mark-{kind}.role-mark line").count()

    shown = sum(1 for one in compared["repetitions"] if one["base"])
    assert marks("chart-repetitions", "symbol") == 6 * shown
    assert (marks("chart-changes", "rect"), marks("chart-curves", "line")) == (20, 2)
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
    found = [second(f"op/{name}", base=1e6, new=n * 3e6) for n, name in enumerate(names, 1)]
    page = opened(page_of(comparison(metrics=found)))
    told = page.eval_on_selector_all(
        "#chart-changes g.role-axis-label text", "all => all.map((one) => one.textContent)"
    )
    assert set(names) <= set(told)
