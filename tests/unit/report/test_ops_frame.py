"""`run.ops` and its groups as DataFrames."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner
from kineto_files import imported, op, training, write_trace
from megengine_files import profile, write

import pipeprof
from pipeprof.cli.ops import ops
from pipeprof.errors import UsageError
from pipeprof.read.foreign import import_path


@pytest.fixture
def path(tmp_path):
    stack = {"Call stack": "inner;middle;outer"}
    events = [
        *training(4),
        op("aten::relu", 9000, 5, **stack),
        op("aten::relu", 9010, 7, **{"Call stack": "inner;outer"}),
    ]
    return imported(tmp_path / "run", write_trace(tmp_path / "x.pt.trace.json", events)).path


def test_operators_stay_a_frame_and_what_is_made_of_it_is_a_plain_one(path):
    with pipeprof.open(path) as run:
        assert isinstance(run.ops, pd.DataFrame)
        assert list(run.ops.columns[:3]) == ["rep", "rank", "position"]
        assert type(run.ops.head(1)) is pd.DataFrame
        assert type(run.ops[["name"]]) is pd.DataFrame


def test_groups_are_those_of_the_command_line(path):
    printed = CliRunner().invoke(ops, [str(path), "--top", "0", "--format", "json"])
    expected = {row["name"]: row for row in json.loads(printed.stdout)["rows"]}
    with pipeprof.open(path) as run:
        frame = run.ops.key_averages()
    assert list(frame.columns[:7]) == ["rep", "rank", "position", "name", "count", "self_ns", "total_ns"]
    assert len(frame) == len(expected) == 4
    for row in frame.to_dict("records"):
        assert {name: row[name] for name in ("count", "self_ns", "total_ns", "position")} == {
            name: expected[row["name"]][name] for name in ("count", "self_ns", "total_ns", "position")
        }


def test_groups_are_ordered_and_cut(path):
    with pipeprof.open(path) as run:
        groups = run.ops.key_averages
        assert list(groups("name", sort_by="+count", row_limit=1)["name"]) == ["aten::relu"]
        assert list(groups(sort_by="cpu_time_total", row_limit=2)["name"]) == ["ProfilerStep*", "aten::conv2d"]
        assert len(groups(row_limit=-1)) == len(groups(row_limit=None)) == 4
        by_stack = groups(group_by="stack 1").query("name == 'aten::relu'")
        assert list(by_stack["stack"]) == ["inner"]
        assert len(groups(group_by="stack", stack_depth=2).query("name == 'aten::relu'")) == 2
        assert set(groups("shape")["in_shapes"]) == {"[[1, 3], []]", "[]"}


@pytest.mark.parametrize("asked", [{"group_by": "size"}, {"sort_by": "nonsense"}, {"group_by": "colour"}])
def test_what_cannot_be_asked_is_an_error_that_lists_what_can(path, asked):
    with pipeprof.open(path) as run, pytest.raises(UsageError) as caught:
        run.ops.key_averages(**asked)
    assert "name" in caught.value.hint


def test_a_profile_of_single_operators_is_grouped_too(tmp_path):
    import_path(write(tmp_path / "profile.json", profile()), tmp_path / "run")
    with pipeprof.open(tmp_path / "run") as run:
        frame = run.ops.key_averages(group_by="type")
        assert next(iter(frame["name"])) == "ConvolutionForward"
        assert len(run.ops.key_averages()) == 8


def test_a_run_without_operators_has_a_table_without_rows(tmp_path):
    events = [{"ph": "X", "cat": "other", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    run = imported(tmp_path / "run", write_trace(tmp_path / "x.json", events))
    with pipeprof.open(run.path) as opened:
        frame = opened.ops.key_averages()
    assert frame.empty
    assert "self_ns" in frame.columns
