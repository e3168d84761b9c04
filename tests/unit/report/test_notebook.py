"""Runs, tables, operators and comparisons at a Python prompt and in a notebook; and misspelt names there."""

import json
import re
from importlib.resources import files

import msgspec
import pandas as pd
import pytest
from click.testing import CliRunner
from kineto_files import imported, op, training, write_trace
from megengine_files import profile, write

import pipeprof
from pipeprof.cli.ops import ops
from pipeprof.errors import MeasureError, QueryError, RunError, UsageError
from pipeprof.inprocess.averages import Average, KeyAverages
from pipeprof.read.foreign import import_path
from pipeprof.record.measures import Measures, Repetition
from pipeprof.record.note import note
from pipeprof.report.charts import plots
from tests.unit.report.conftest import MS


@pytest.fixture
def run(make_run):
    steps = [{"step": n, "kind": "train", "start_ns": n * MS, "end_ns": n * MS} for n in range(1200)]
    made = make_run({"step": steps}, command=["python", "train.py", "--name", "a b"])
    made.manifest.decide("failed", note("block_ended", error="it ended with <ValueError> in `x`"))
    made.manifest.tables = {"step": 1200, "op": 0}
    made.save()
    with pipeprof.open(made.path) as opened:
        yield opened


def side(name, scale):
    return Measures(
        label=name, reps={rep: Repetition(order=rep, job="one") for rep in range(4)},
        values={"step_time_median": {rep: MS * scale * (1 + rep / 1000) for rep in range(4)}},
    )  # fmt: skip


def test_a_run_says_what_it_is_and_how_it_is_asked_and_in_a_notebook_is_an_escaped_table(run):
    text, html = repr(run), run._repr_html_()
    for said in ("failed: it ended with <ValueError>", "python train.py --name 'a b'", "step (1,200)",
                 'run.ask("step/slowest", top=5)'):  # fmt: skip
        assert said in text
    assert "op (" not in text
    assert len(run.ask("step/slowest", top=5)) == 5
    assert "<td>step (1,200)</td>" in html
    assert "&lt;ValueError&gt; in <code>x</code>" in html
    assert "<ValueError>" not in html


def test_a_comparison_is_the_documented_dict_and_shows_its_verdict():
    found = pipeprof.compare(side("base", 1), side("new", 2))
    assert found["verdict"] == "regressed"
    assert json.loads(json.dumps(found)) == msgspec.json.decode(msgspec.json.encode(found)) == dict(found)
    assert found["headline"] in repr(found)
    assert re.search(r"step time +1\.00 ms +2\.00 ms", repr(found))
    html = found._repr_html_()
    assert re.search(r'<td class="number"[^>]*>2\.00 ms</td>', html)
    assert re.search(r'<td class="bold red"[^>]*>regressed</td>', html)


def test_the_charts_of_the_page_are_valid_altair_charts_or_say_what_was_not_measured(normal, ranks):
    with pipeprof.open(normal.path) as opened:
        for name in ("steps", "operators"):
            spec = getattr(opened.plot, name)().to_dict(validate=True)
            assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
            assert "vconcat" in spec or spec["mark"]
        with pytest.raises(MeasureError, match="nothing for this chart"):
            opened.plot.ranks()
    with pipeprof.open(ranks.path) as opened:
        (cells,) = opened.plot.ranks().to_dict()["datasets"].values()
    assert len(cells) == 20  # one for each step of each rank


def test_without_the_extra_a_chart_says_how_to_install_it(run, monkeypatch):
    monkeypatch.setattr(plots, "can_draw", lambda: False)
    with pytest.raises(UsageError) as refused:
        run.plot.steps()
    assert refused.value.hint == "pip install 'pipeprof[charts]'"


def test_averages_show_their_table():
    averages = KeyAverages([Average(f"<op {n}>", 1, 1000 * (n + 1), 1000 * (n + 1)) for n in range(30)], note="a < b")
    text, html = repr(averages), averages._repr_html_()
    assert text.splitlines()[2].split()[:2] == ["<op", "29>"]
    assert html.count("<tr>") == 1 + 20
    assert "10 more rows" in text
    for said in ("&lt;op 29&gt;", "10 more rows", "a &lt; b"):
        assert said in html


def test_unknown_queries_settings_tables_and_attributes_are_answered_with_near_ones(run):
    for asked, hint, ask in (
        ("step/sumary", "step/summary", run.ask), ("summary", "step/summary", run.ask), ("stpe", "`step`", run.table),
    ):  # fmt: skip
        with pytest.raises(QueryError) as refused:
            ask(asked)
        assert hint in refused.value.hint
    with pytest.raises(QueryError, match=r"`\$tpo`") as refused:
        run.ask("step/slowest", tpo=5)
    assert refused.value.hint == "did you mean `top`?"
    for thing, name, near in ((run, "stpe", "step"), (run, "reprot", "report"), (pipeprof, "opne", "open")):
        with pytest.raises(AttributeError, match=f"did you mean `{near}`"):
            getattr(thing, name)
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


@pytest.fixture
def path(tmp_path):
    relu = [
        op("aten::relu", 9000 + 10 * n, 5 + 2 * n, **{"Call stack": stack})
        for n, stack in enumerate(("inner;middle;outer", "inner;outer"))
    ]
    return imported(tmp_path / "run", write_trace(tmp_path / "x.pt.trace.json", [*training(4), *relu])).path


def test_operators_stay_a_frame_and_what_is_made_of_it_is_a_plain_one(path):
    with pipeprof.open(path) as run:
        assert isinstance(run.ops, pd.DataFrame)
        assert list(run.ops.columns[:3]) == ["rep", "rank", "position"]
        assert type(run.ops.head(1)) is type(run.ops[["name"]]) is pd.DataFrame


def test_groups_of_operators_are_those_of_the_command_line(path):
    printed = CliRunner().invoke(ops, [str(path), "--top", "0", "--format", "json"])
    expected = {row["name"]: row for row in json.loads(printed.stdout)["rows"]}
    with pipeprof.open(path) as run:
        frame = run.ops.key_averages()
    assert list(frame.columns[:7]) == ["rep", "rank", "position", "name", "count", "self_ns", "total_ns"]
    assert len(frame) == len(expected) == 4
    for row in frame.to_dict("records"):
        for name in ("count", "self_ns", "total_ns", "position"):
            assert row[name] == expected[row["name"]][name]


def test_groups_are_ordered_and_cut(path):
    with pipeprof.open(path) as run:
        groups = run.ops.key_averages
        assert list(groups("name", sort_by="+count", row_limit=1)["name"]) == ["aten::relu"]
        assert list(groups(sort_by="cpu_time_total", row_limit=2)["name"]) == ["ProfilerStep*", "aten::conv2d"]
        assert len(groups(row_limit=-1)) == len(groups(row_limit=None)) == 4
        assert list(groups(group_by="stack 1").query("name == 'aten::relu'")["stack"]) == ["inner"]
        assert len(groups(group_by="stack", stack_depth=2).query("name == 'aten::relu'")) == 2
        assert set(groups("shape")["in_shapes"]) == {"[[1, 3], []]", "[]"}
        for asked in ({"group_by": "size"}, {"sort_by": "nonsense"}, {"group_by": "colour"}):
            with pytest.raises(UsageError) as caught:
                groups(**asked)
            assert "name" in caught.value.hint  # lists what can be asked


def test_a_profile_of_single_operators_is_grouped_too_and_one_without_has_a_table_without_rows(tmp_path):
    import_path(write(tmp_path / "profile.json", profile()), tmp_path / "run")
    with pipeprof.open(tmp_path / "run") as run:
        frame = run.ops.key_averages(group_by="type")
        assert next(iter(frame["name"])) == "ConvolutionForward"
        assert len(run.ops.key_averages()) == 8
    event = {"ph": "X", "cat": "other", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    bare = imported(tmp_path / "bare", write_trace(tmp_path / "x.json", [event]))
    with pipeprof.open(bare.path) as opened:
        frame = opened.ops.key_averages()
    assert frame.empty
    assert "self_ns" in frame.columns
