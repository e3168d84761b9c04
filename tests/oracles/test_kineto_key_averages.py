"""Operator tables of imported traces against what the profiler itself said of the same traces."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from kineto_files import imported, rows

from pipeprof.query.engine import Engine

TORCH = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "torch"
CYCLES = {"small.cycle0": "small.cycle0.pt.trace.json", "small.cycle1": "small.cycle1.pt.trace.json.gz"}
GROUPS = {"plain": "name", "by_shape": "shape"}
pytestmark = pytest.mark.skipif(not TORCH.is_dir(), reason="the traces of shared/data/torch are not here")


@pytest.fixture(scope="module", params=CYCLES)
def cycle(request, tmp_path_factory):
    name = request.param
    run = imported(tmp_path_factory.mktemp(name) / "run", TORCH / "small" / CYCLES[name])
    tables = {}
    with Engine.open(run) as engine:
        for title, group in GROUPS.items():
            found = engine.rows("op/key_averages", group_by=group, stack_depth=0, python_functions=True)
            tables[title] = {(row["key"], shapes(row["in_shapes"])): row for row in found}
            assert len(found) == len(tables[title])
    return name, run, tables


def shapes(text):
    return "" if text is None else str(json.loads(text))


def oracle(name):
    return json.loads((TORCH / "small" / f"{name}.key_averages.json").read_text())


@pytest.mark.parametrize("title", GROUPS)
def test_every_key_count_time_and_memory_is_the_profilers(cycle, title):
    name, _, tables = cycle
    ours = tables[title]
    theirs = {(row["key"], str(row["input_shapes"]) if title == "by_shape" else ""): row for row in oracle(name)[title]}
    assert len(theirs) == {"plain": 82, "by_shape": 141}[title]
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        assert ours[key]["count"] == row["count"], key
        assert ours[key]["memory_bytes"] == row["cpu_memory_usage"], key
        assert ours[key]["self_memory_bytes"] == row["self_cpu_memory_usage"], key
        assert ours[key]["self_ns"] == round(row["self_cpu_time_total"] * 1000), key
        assert ours[key]["total_ns"] == round(row["cpu_time_total"] * 1000), key


@pytest.mark.parametrize("title", GROUPS)
def test_own_times_add_up_to_the_profilers_total(cycle, title):
    name, _, tables = cycle
    total = sum(row["self_ns"] for row in tables[title].values())
    assert total / 1000 == pytest.approx(oracle(name)[f"{title}_self_cpu_total_us"], abs=0.001)


def test_steps_are_those_of_the_profiler(cycle):
    name, run, _ = cycle
    found = rows(run, "step")
    assert [row["source_step"] for row in found] == ([2, 3, 4] if name == "small.cycle0" else [7, 8, 9])
    loads = rows(run, "fetch")
    assert [row["step"] for row in loads] == [0, 1, 2]
    for step, load in zip(found, loads, strict=True):
        assert step["start_ns"] <= load["start_ns"] <= load["start_ns"] + load["wait_ns"] <= step["end_ns"]
        assert step["fetch_wait_ns"] == step["data_wait_ns"] == load["wait_ns"]
    assert all(one["end_ns"] <= two["start_ns"] for one, two in pairwise(found))


def test_printed_tables_have_the_same_cells(cycle):
    name, _, tables = cycle
    text = (TORCH / "small" / f"{name}.tables.txt").read_text()
    checked = 0
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = part.split()[0]
        ours = list(tables[title].values())
        total = sum(row["self_ns"] for row in ours)
        lines = part.splitlines()
        for line in lines[4 : next(n for n, line in enumerate(lines) if n > 4 and line.startswith("---"))]:
            printed = cells(line)
            name, values, shape = printed[0], printed[1:9], printed[9] if title == "by_shape" else None
            same = [
                row
                for row in ours
                if called(row["key"], name) and (shape is None or called(shapes(row["in_shapes"]), shape))
            ]
            assert any(values in formatted(row, total) for row in same), line
            checked += 1
        assert f"Self CPU time total: {time(total)}" in part
    assert checked > 100


def cells(line):
    """Name, nine numbers, and the shapes if they are there; the last but one column is FLOPs, which is not compared."""
    found = re.fullmatch(
        r"\s*(.+?)\s{2,}([\d.]+%)\s+(\S+s)\s+([\d.]+%)\s+(\S+s)\s+(\S+s)\s+(-?[\d.]+ \w+)\s+(-?[\d.]+ \w+)\s+(\d+)\s*(.*)",
        line,
    )
    assert found, line
    rest = found[10].rsplit(None, 1)
    return [*found.groups()[:9], rest[0].strip() if len(rest) > 1 else ""]


def called(whole, shown):
    return (
        whole == shown
        or (shown.endswith("...") and whole.startswith(shown[:-3]))
        or (len(shown) > 40 and whole.startswith(shown))
    )


def formatted(row, total):
    """The cells of a row; twice, since a mean that ends in 5 may be printed up or down."""
    mean = row["total_ns"] / row["count"]
    return [
        [
            f"{row['self_ns'] * 100 / total:.2f}%",
            time(row["self_ns"]),
            f"{row['total_ns'] * 100 / total:.2f}%",
            time(row["total_ns"]),
            time(mean + nudge),
            size(row["memory_bytes"]),
            size(row["self_memory_bytes"]),
            str(row["count"]),
        ]
        for nudge in (-1e-3, 1e-3)
    ]


def time(ns):
    us = ns / 1000
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def size(count):
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(count) >= 1024**power:
            return f"{count / 1024**power:.2f} {unit}"
    return f"{count} B"


def test_two_cycles_of_one_job_are_one_rank(tmp_path):
    run = imported(tmp_path / "run", *(TORCH / "small" / file for file in CYCLES.values()))
    assert [(row["step"], row["source_step"]) for row in rows(run, "step")] == list(enumerate([2, 3, 4, 7, 8, 9]))
    execs = [row["exec_id"] for row in rows(run, "op")]
    assert len(execs) == len(set(execs))


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    run = imported(tmp_path_factory.mktemp("cuda") / "run", TORCH / "cuda" / "control.json.gz")
    with Engine.open(run) as engine:
        yield run, json.loads((TORCH / "cuda" / "control.facts.json").read_text()), engine


def test_cuda_operators_are_exact(cuda):
    _, facts, engine = cuda
    ours = {
        row["key"]: row
        for row in engine.rows("op/key_averages", group_by="name", stack_depth=0, python_functions=True)
        if not row["on_device"]
    }
    for row in facts["ops_top50_by_self"]:
        found = ours[row["key"]]
        assert (found["count"], found["self_ns"], found["total_ns"]) == (
            row["count"],
            row["self_us"] * 1000,
            row["total_us"] * 1000,
        )
    assert sum(row["device_self_ns"] for row in ours.values()) == sum(
        row["dur_ns"] for row in rows(cuda[0], "op") if row["side"] == "device"
    )


def test_cuda_kernels_copies_and_collectives_are_exact(cuda):
    run, facts, engine = cuda
    by_stream = engine.sql(
        "SELECT op.track, count(*) AS n, sum(op.dur_ns) AS ns FROM op JOIN op_info USING (rank, op_id) "
        "WHERE op_info.category = 'kernel' GROUP BY op.track"
    ).to_pylist()
    assert {row["track"].rsplit(" ", 1)[1]: row["ns"] // 1000 for row in by_stream} == facts["kernel_us_by_stream"]
    assert sum(row["n"] for row in by_stream) == facts["kernel_count"]
    assert sum(row["ns"] for row in by_stream) == facts["kernel_total_us"] * 1000
    copies = engine.sql(
        "SELECT op_info.name, count(*) AS count, sum(op.dur_ns) // 1000 AS dur_us FROM op JOIN op_info USING (rank, op_id) "
        "WHERE op_info.category = 'gpu_memcpy' GROUP BY op_info.name"
    ).to_pylist()
    assert {row.pop("name"): row for row in copies} == facts["memcpy"]
    collectives = rows(run, "collective")
    assert len(collectives) == facts["nccl"]["count"]
    assert sum(row["dur_ns"] for row in collectives) == facts["nccl"]["total_us"] * 1000
    assert {row["kind"] for row in collectives} == {"all_reduce", "all_to_all"}


def test_cuda_events_steps_and_links_are_exact(cuda):
    run, facts, _ = cuda
    assert {row["rank"] for row in rows(run, "op")} == {facts["distributedInfo"]["rank"]}
    steps, loads = rows(run, "step"), rows(run, "fetch")
    zero = run.manifest.reps[0].zero_realtime_ns
    assert [
        (
            f"ProfilerStep#{row['source_step']}",
            (row["start_ns"] + zero) // 1000,
            (row["end_ns"] - row["start_ns"]) // 1000,
        )
        for row in steps
    ] == [(row["name"], row["ts"], row["dur_us"]) for row in facts["steps"]]
    assert [((row["start_ns"] + zero) // 1000, row["wait_ns"] // 1000) for row in loads] == [
        (row["ts"], row["dur_us"]) for row in facts["dataloader"]
    ]
    device = [row for row in rows(run, "op") if row["side"] == "device"]
    assert len(device) == facts["gpu_events_with_runtime_correlation"]
    assert all(row["parent_id"] is not None and row["wait_ns"] is not None for row in device)
    ends = [row["side"] for row in rows(run, "flow")]
    assert (ends.count("start"), ends.count("end")) == (facts["events_by_ph"]["s"], facts["events_by_ph"]["f"])
    assert sum(row["category"] == "cuda_runtime" for row in rows(run, "span")) == facts["events_by_cat"]["cuda_runtime"]
