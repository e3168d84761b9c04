"""What runs, tables and comparisons look like at a Python prompt and in a notebook; and misspelt names there."""

import json
import re
from importlib.resources import files

import msgspec
import pytest

import pipeprof
from pipeprof.errors import MeasureError, QueryError, RunError, UsageError
from pipeprof.inprocess.averages import Average, KeyAverages
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.note import note
from pipeprof.report.charts import plots

MS = 1_000_000


@pytest.fixture
def run(make_run):
    made = make_run({"step": [{"step": n, "kind": "train", "start_ns": n * MS, "end_ns": n * MS} for n in range(1200)]})
    made.manifest.decide("failed", note("block_ended", error="it ended with <ValueError> in `x`"))
    made.manifest.command = ["python", "train.py", "--name", "a b"]
    made.manifest.tables = {"step": 1200, "op": 0}
    made.save()
    with pipeprof.open(made.path) as opened:
        yield opened


def comparison(factor):
    sides = [
        Measures(
            label=name, reps={rep: Repetition(order=rep, job="one") for rep in range(4)},
            values={"step_time_median": {rep: MS * scale * (1 + rep / 1000) for rep in range(4)}},
        )
        for name, scale in (("base", 1), ("new", factor))
    ]  # fmt: skip
    return pipeprof.compare(*sides)


def test_a_run_says_what_it_is_and_how_it_is_asked(run):
    text = repr(run)
    assert "failed: it ended with <ValueError>" in text
    assert "python train.py --name 'a b'" in text
    assert "step (1,200)" in text
    assert "op (" not in text
    assert 'run.ask("step/slowest", top=5)' in text
    assert len(run.ask("step/slowest", top=5)) == 5


def test_a_run_in_a_notebook_is_an_escaped_table(run):
    html = run._repr_html_()
    assert "<td>step (1,200)</td>" in html
    assert "&lt;ValueError&gt; in <code>x</code>" in html
    assert "<ValueError>" not in html


def test_a_comparison_is_the_documented_dict_and_shows_its_verdict():
    found = comparison(2)
    assert found["verdict"] == "regressed"
    assert json.loads(json.dumps(found)) == msgspec.json.decode(msgspec.json.encode(found)) == dict(found)
    assert found["headline"] in repr(found)
    assert re.search(r"step time +1\.00 ms +2\.00 ms", repr(found))
    html = found._repr_html_()
    assert re.search(r'<td class="number"[^>]*>2\.00 ms</td>', html)
    assert re.search(r'<td class="bold red"[^>]*>regressed</td>', html)


@pytest.mark.parametrize("name", ["steps", "operators"])
def test_the_charts_of_the_page_are_valid_altair_charts(name, normal):
    with pipeprof.open(normal.path) as opened:
        spec = getattr(opened.plot, name)().to_dict(validate=True)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "vconcat" in spec or spec["mark"]


def test_a_chart_of_several_ranks_has_a_cell_for_each_step(ranks):
    with pipeprof.open(ranks.path) as opened:
        spec = opened.plot.ranks().to_dict()
    (cells,) = spec["datasets"].values()
    assert len(cells) == 20


def test_a_chart_without_data_says_what_was_not_measured(normal):
    with pipeprof.open(normal.path) as opened, pytest.raises(MeasureError, match="nothing for this chart"):
        opened.plot.ranks()


def test_without_the_extra_a_chart_says_how_to_install_it(run, monkeypatch):
    monkeypatch.setattr(plots, "can_draw", lambda: False)
    with pytest.raises(UsageError) as refused:
        run.plot.steps()
    assert refused.value.hint == "pip install 'pipeprof[charts]'"


def test_averages_show_their_table():
    averages = KeyAverages([Average(f"<op {n}>", 1, 1000 * (n + 1), 1000 * (n + 1)) for n in range(30)], note="a < b")
    assert repr(averages).splitlines()[2].split()[:2] == ["<op", "29>"]
    assert "10 more rows" in repr(averages)
    html = averages._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "&lt;op 29&gt;" in html
    assert "10 more rows" in html
    assert "a &lt; b" in html


@pytest.mark.parametrize("asked", ["step/sumary", "summary"])
def test_an_unknown_query_is_answered_with_near_ones(run, asked):
    with pytest.raises(QueryError) as refused:
        run.ask(asked)
    assert "step/summary" in refused.value.hint


def test_an_unknown_setting_of_a_query_is_answered_with_the_near_one(run):
    with pytest.raises(QueryError, match=r"`\$tpo`") as refused:
        run.ask("step/slowest", tpo=5)
    assert refused.value.hint == "did you mean `top`?"


def test_unknown_tables_and_attributes_are_answered_with_near_ones(run):
    with pytest.raises(AttributeError, match="did you mean `step`"):
        run.stpe  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean `report`"):
        run.reprot  # noqa: B018
    with pytest.raises(QueryError) as refused:
        run.table("stpe")
    assert "`step`" in refused.value.hint
    with pytest.raises(AttributeError, match="did you mean `open`"):
        pipeprof.opne  # noqa: B018
    assert not hasattr(run, "_ipython_display_")


def test_what_is_not_a_run_is_said_with_what_to_do(tmp_path):
    with pytest.raises(RunError, match="not a pipeprof run: found a folder") as refused:
        pipeprof.open(tmp_path)
    assert "pipeprof collect" in refused.value.hint
    trace = tmp_path / "x.pt.trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}), encoding="utf-8")
    for path in (trace, tmp_path):
        with pytest.raises(RunError) as refused:
            pipeprof.open(path)
        assert refused.value.hint == f"pipeprof import {path} -o RUN"


def test_the_package_says_that_it_is_typed():
    assert files("pipeprof").joinpath("py.typed").is_file()
