"""A trace with stacks, shapes, memory and operations against what torch said of it when it recorded the trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from kineto_files import imported

from pipeprof.query.engine import Engine

HERE = Path(__file__).resolve().parents[1] / "real" / "key_averages"
SAID = json.loads(gzip.decompress(HERE.joinpath("key_averages.json.gz").read_bytes()))
NUMBERS = ("count", "self_ns", "total_ns", "self_memory_bytes", "memory_bytes")
KINDS = {"aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mul", "aten::add"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    run = imported(tmp_path_factory.mktemp("torch") / "run", HERE / "trace.pt.trace.json.gz")
    assert run.manifest.state == "complete"
    with Engine.open(run) as engine:
        yield engine


def key(row, group):
    return str(json.loads(row["in_shapes"])) if group == "shape" else row["stack"] or ""


@pytest.mark.parametrize("group", SAID)
def test_every_group_is_the_profilers(engine, group):
    by, _, depth = group.partition(" ")
    found = engine.rows("op/key_averages", group_by=by, stack_depth=int(depth or 0))
    ours = {(row["key"], key(row, by)): [row[name] for name in NUMBERS] for row in found}
    theirs = {(name, place): numbers[:5] for name, place, *numbers in SAID[group]}
    assert len(ours) == len(found)
    assert len(theirs) == len(SAID[group]) > 400
    assert ours == theirs


@pytest.mark.parametrize("group", SAID)
def test_operations_are_the_profilers(engine, group):
    by, _, depth = group.partition(" ")
    found = engine.rows("op/key_averages", group_by=by, stack_depth=int(depth or 0))
    ours = {(row["key"], key(row, by)): row["computation"] for row in found if row["computation"]}
    theirs = {(name, place): numbers[5] for name, place, *numbers in SAID[group] if numbers[5]}
    assert ours == theirs
    assert {name for name, _ in theirs} == KINDS
