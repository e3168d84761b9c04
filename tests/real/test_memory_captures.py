"""The memory report of every capture: curves and growth from samples, and nothing that was not measured."""

from bisect import bisect_left
from pathlib import Path

import pytest

from pipeprof.report.document import text
from pipeprof.report.memory.content import build
from pipeprof.report.memory.svg import svg
from pipeprof.report.memory.text import document

CAPTURES = sorted(path.name for path in Path(__file__).parent.joinpath("captures").iterdir())

FEW = 5  # operators


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_has_curves_of_the_pool_and_the_trainer(name, converted):
    run = converted(name).run
    content = build(run, top=5, lifetimes=10)
    kinds = {(curve["device"], curve["name"]) for curve in content["curves"]}
    assert {("CPU", "pool"), ("process", "trainer")} <= kinds
    assert all(0 < curve["peak_bytes"] < 1 << 40 for curve in content["curves"])
    most = max(curve["peak_bytes"] for curve in content["curves"] if curve["name"] == "pool")
    assert 0 < content["peaks"][0]["peak_bytes"] <= most
    assert any(row["name"] for row in content["alive_at_peak"])
    assert "Lifetimes are reconstructed from the changes of MindSpore's pool" in text(document(content))
    assert len(svg(content["lifetimes"], content["peaks"][0], "rank 0").split("<title>")) > 5
    assert text(document(content)).count("not measured: ") == len(content["not_measured"])


@pytest.mark.parametrize("name", CAPTURES)
def test_samples_of_the_pool_are_there_once_and_lie_in_an_op_window(name, converted):
    run = converted(name)
    pool = [row for row in run.rows("memory") if row["device"] == "CPU"]
    times = [(row["rank"], row["t_ns"]) for row in pool]
    assert len(times) == len(set(times)) > 0
    windows = [row for row in run.rows("span") if row["category"] == "window"]
    for rank, at in times:
        assert any(w["rank"] == rank and w["start_ns"] <= at <= w["start_ns"] + w["dur_ns"] for w in windows)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_pool_is_read_at_least_once_in_every_few_operators(name, converted):
    run = converted(name)
    pool = sorted((row["rank"], row["t_ns"]) for row in run.rows("memory") if row["device"] == "CPU")
    begins = sorted((row["rank"], row["step"], row["start_ns"]) for row in run.rows("op") if row["step"] is not None)
    stretches = [
        (one[0], one[2], other[2]) for one, other in zip(begins, begins[FEW:], strict=False) if one[:2] == other[:2]
    ]
    assert len(stretches) > 30
    assert [
        stretch
        for stretch in stretches
        if bisect_left(pool, (stretch[0], stretch[1])) == bisect_left(pool, (stretch[0], stretch[2]))
    ] == []


@pytest.mark.parametrize("name", CAPTURES)
def test_operators_have_what_they_allocated_and_kept(name, converted):
    run = converted(name)
    taken = run.sql("SELECT type, self_memory_bytes AS bytes FROM op JOIN op_info USING (rep, rank, op_id)")
    assert all(row["bytes"] is not None for row in taken)
    assert max(row["bytes"] for row in taken if row["type"] == "SparseSoftmaxCrossEntropyWithLogits") > 0
    assert build(run.run, top=5, lifetimes=10)["ops"][0]["self_memory_bytes"] > 0
