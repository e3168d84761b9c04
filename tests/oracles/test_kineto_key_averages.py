"""Operator tables of imported traces against what the profiler itself said of the same traces."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from captured import outside, own
from kineto_facts import facts_of
from kineto_files import imported, rows

from pipeprof.query.engine import Engine
from pipeprof.report.ops import content

JOBS = [own("torch"), *outside("torch/small")]  # two cycles of a job in each, and what torch said of them
CYCLES = ("small.cycle0", "small.cycle1")
GPU = Path(__file__).resolve().parents[1] / "real" / "gpu"
GROUPS = {"plain": "name", "by_shape": "shape"}


def trace(job, name):
    return next(job.glob(f"{name}.pt.trace.json*"))


@pytest.fixture(
    scope="module",
    params=[(job, name) for job in JOBS for name in CYCLES],
    ids=lambda pair: f"{pair[0].name}-{pair[1]}" if pair[0] != JOBS[0] else pair[1],
)
def cycle(request, tmp_path_factory):
    job, name = request.param
    run = imported(tmp_path_factory.mktemp(name) / "run", trace(job, name))
    tables = {}
    with Engine.open(run) as engine:
        for title, group in GROUPS.items():
            found = engine.rows("op/key_averages", group_by=group, stack_depth=0, python_functions=True)
            tables[title] = {(row["key"], shapes(row["in_shapes"])): row for row in found}
            assert len(found) == len(tables[title])
    return job / name, run, tables


def shapes(text):
    return "" if text is None else str(json.loads(text))


def oracle(place):
    return json.loads(place.with_name(f"{place.name}.key_averages.json").read_text())


@pytest.mark.parametrize("title", GROUPS)
def test_every_key_count_time_and_memory_is_the_profilers(cycle, title):
    name, _, tables = cycle
    ours = tables[title]
    theirs = {(row["key"], str(row["input_shapes"]) if title == "by_shape" else ""): row for row in oracle(name)[title]}
    assert len(theirs) == len(oracle(name)[title]) > 50
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
    assert [row["source_step"] for row in found] == ([2, 3, 4] if name.name == "small.cycle0" else [7, 8, 9])
    loads = rows(run, "fetch")
    assert [row["step"] for row in loads] == [0, 1, 2]
    for step, load in zip(found, loads, strict=True):
        assert step["start_ns"] <= load["start_ns"] <= load["start_ns"] + load["wait_ns"] <= step["end_ns"]
        assert step["fetch_wait_ns"] == step["data_wait_ns"] == load["wait_ns"]
    assert all(one["end_ns"] <= two["start_ns"] for one, two in pairwise(found))


def test_printed_tables_have_the_same_cells(cycle):
    name, _, tables = cycle
    text = name.with_name(f"{name.name}.tables.txt").read_text()
    checked = 0
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = part.split()[0]
        ours = list(tables[title].values())
        total = sum(row["self_ns"] for row in ours)
        lines = part.splitlines()
        for line in lines[4 : next(n for n, line in enumerate(lines) if n > 4 and line.startswith("---"))]:
            found = cells(line)
            name, values, shape = found[0], found[1:9], found[9] if title == "by_shape" else None
            same = [
                row
                for row in ours
                if called(row["key"], name) and (shape is None or called(shapes(row["in_shapes"]), shape))
            ]
            assert any(values in formatted(row, total) for row in same), line
            checked += 1
        assert f"Self CPU time total: {content.torch_time(total)}" in part
    assert checked > 80


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
            content.torch_share(row["self_ns"] / total),
            content.torch_time(row["self_ns"]),
            content.torch_share(row["total_ns"] / total),
            content.torch_time(row["total_ns"]),
            content.torch_time(mean + nudge),
            content.torch_size(row["memory_bytes"]),
            content.torch_size(row["self_memory_bytes"]),
            str(row["count"]),
        ]
        for nudge in (-1e-3, 1e-3)
    ]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name[:8])
def test_two_cycles_of_one_job_are_one_rank(tmp_path, job):
    run = imported(tmp_path / "run", *(trace(job, name) for name in CYCLES))
    assert [(row["step"], row["source_step"]) for row in rows(run, "step")] == list(enumerate([2, 3, 4, 7, 8, 9]))
    execs = [row["exec_id"] for row in rows(run, "op")]
    assert len(execs) == len(set(execs))


CUDA = [
    GPU / "launches_small.pt.trace.json.gz",
    GPU / "copies.pt.trace.json.gz",
    *outside("torch/cuda/control.json.gz"),
]


@pytest.fixture(scope="module", params=CUDA, ids=lambda path: path.name.partition(".")[0])
def cuda(request, tmp_path_factory):
    run = imported(tmp_path_factory.mktemp("cuda") / "run", request.param)
    with Engine.open(run) as engine:
        yield run, facts_of(request.param), engine


def test_cuda_operators_are_exact(cuda):
    run, facts, engine = cuda
    ours = {
        row["key"]: [row["count"], row["self_ns"], row["total_ns"], row["device_self_ns"]]
        for row in engine.rows("op/key_averages", group_by="name", stack_depth=0, python_functions=True)
        if not row["on_device"]
    }
    for name, row in facts["calls"].items():
        if not name.startswith("ProfilerStep#"):
            assert ours[name][:3] == row, name
    assert sum(row[3] or 0 for row in ours.values()) == sum(
        row["dur_ns"] for row in rows(run, "op") if row["side"] == "device"
    )


def test_cuda_kernels_copies_and_collectives_are_exact(cuda):
    run, facts, engine = cuda
    by_stream = engine.sql(
        "SELECT op.track, count(*) AS n, sum(op.dur_ns) AS ns FROM op JOIN op_info USING (rank, op_id) "
        "WHERE op_info.category = 'kernel' GROUP BY op.track"
    ).to_pylist()
    assert {row["track"].rsplit(" ", 1)[1]: row["ns"] for row in by_stream} == facts["streams"]
    assert sum(row["n"] for row in by_stream) == facts["kernels"]
    copies = engine.sql(
        "SELECT op_info.name, count(*) AS n, sum(op.dur_ns) AS ns FROM op JOIN op_info USING (rank, op_id) "
        "WHERE op_info.category = 'gpu_memcpy' GROUP BY op_info.name"
    ).to_pylist()
    assert {row["name"]: (row["n"], row["ns"]) for row in copies} == facts["copies"]
    collectives = rows(run, "collective") if "collective" in run.manifest.tables else []
    assert sorted(row["dur_ns"] for row in collectives) == sorted(facts["collectives"])
    assert {row["kind"] for row in collectives} <= {"all_reduce", "all_to_all"}


def test_cuda_events_steps_and_links_are_exact(cuda):
    run, facts, _ = cuda
    assert {row["rank"] for row in rows(run, "op")} == {facts["rank"]}
    zero = run.manifest.reps[0].zero_realtime_ns - facts["base_ns"]
    assert [
        (row["start_ns"] + zero, row["end_ns"] - row["start_ns"], f"ProfilerStep#{row['source_step']}")
        for row in rows(run, "step")
    ] == facts["steps"]
    loads = rows(run, "fetch") if "fetch" in run.manifest.tables else []
    assert [(row["start_ns"] + zero, row["wait_ns"]) for row in loads] == facts["loads"]
    device = [row for row in rows(run, "op") if row["side"] == "device"]
    assert (len(device), sum(row["dur_ns"] for row in device)) == (facts["device"], facts["device_ns"])
    assert sum(row["parent_id"] is not None and row["wait_ns"] is not None for row in device) == facts["launched"]
    ends = [row["side"] for row in rows(run, "flow")]
    assert (ends.count("start"), ends.count("end")) == facts["flows"]
    assert sum(row["category"] == "cuda_runtime" for row in rows(run, "span")) == facts["runtime"]
