"""Imported rows against the raw files themselves, read here in the plainest way, and against the consumers' own clocks."""

import csv
import datetime as dt
import json
import re
from itertools import pairwise
from statistics import median

import pytest
from captured import outside, own

from pipeprof.read.foreign import import_path
from pipeprof.record import store

MS = 1_000_000
OWN = own("minddata") / "profiles"
SUITE = [
    *sorted(OWN.iterdir()),
    *(path.parent for root in outside("minddata_suite") for path in sorted(root.glob("*/truth.json"))),
]
CAPTURES = [path for root in outside("ascend/minddata_cpu_2.10") for path in sorted(root.iterdir())]
FOLDERS = [*SUITE, *CAPTURES]
# Profiles, and the table of the pipeline that MindSpore made of each.
TABLES = [
    *((path, OWN.parent / "tables" / path.name) for path in sorted(OWN.iterdir())),
    *((path, table) for path in CAPTURES for table in outside(f"ascend/oracle/ms210_minddata_{path.name}")),
]
# Hand-made folders, and how many batches each has.
OLDER = [(own("ascend") / "one_rank", 30), *((path, {"profiler": 1, "run_2": 4}.get(path.name, 0)) for path in outside(
    *(f"ascend/mindinsight/tests/utils/resource/{name}" for name in ("profiler", "run_1", "run_2", "JOB1", "JOB2"))))]  # fmt: skip
STAMP = re.compile(r"(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.)(\d{3})\.(\d{3}) \[mindspore")
LINE = re.compile(r"-- (\w+)\(ID:(\d+)\)\s*: worker_time \(avg:([\d.]+)ms")


def imported(folder, tmp_path, kind=None):
    run = import_path(folder, tmp_path / "run", kind=kind)
    return run, {table: store.read(run, table).to_pylist() for table in run.manifest.tables}


def raw(folder, name):
    return json.loads(next(folder.glob(name)).read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_graph_samples_and_batches_are_those_of_the_files(folder, tmp_path):
    run, rows = imported(folder, tmp_path)
    assert run.manifest.state == "complete"
    zero = run.manifest.reps[0].zero_monotonic_ns
    content, cpu = raw(folder, "pipeline_profiling_*.json"), raw(folder, "minddata_cpu_utilization_*.json")
    ops = {entry["op_id"]: entry for entry in content["op_info"]}
    assert {row["op_id"]: (row["op_type"], row["workers"]) for row in rows["pipeline_op"]} == {
        number: (entry["op_type"], entry["num_workers"]) for number, entry in ops.items()
    }
    assert {(row["consumer_id"], row["producer_id"]) for row in rows["pipeline_edge"]} == {
        (number, child) for number, entry in ops.items() for child in entry.get("children") or []
    }
    for number, entry in ops.items():
        depths = [(row["t_ns"] + zero, row["depth"]) for row in rows["queue"] if row["op_id"] == number]
        sizes = entry["metrics"]["output_queue"]["size"] if entry["metrics"] else []
        assert depths == [(stamp * MS, size) for stamp, size in zip(cpu["time_stamp"], sizes, strict=False)]
    lines = next(folder.glob("dataset_iterator_profiling_*.txt")).read_text(encoding="utf-8").splitlines()
    cells = [[int(cell) for cell in line.split()] for line in lines]
    waits = [(batch - 1, value * MS) for kind, extra, batch, value, _ in cells if (kind, extra) == (0, 0)]
    assert [(row["fetch"], row["wait_ns"]) for row in rows["fetch"]] == waits
    depths = [(row["fetch"], row["depth"], row["capacity"]) for row in rows["fetch"]]
    assert depths == [(batch - 1, value, extra) for kind, extra, batch, value, _ in cells if kind == 1]
    assert len(rows["step"]) == len(waits) - 1


@pytest.mark.parametrize("folder", SUITE, ids=lambda folder: folder.name)
def test_the_timing_blocks_are_those_of_the_log_on_the_clock_of_the_samples(folder, tmp_path):
    run, rows = imported(folder, tmp_path)
    zero = run.manifest.reps[0].zero_monotonic_ns
    found = LINE.findall(folder.joinpath("vlog.txt").read_text(encoding="utf-8"))
    assert [(row["op_id"], row["avg_ns"]) for row in rows["op_service"]] == [
        (int(number), round(float(average) * MS)) for _, number, average in found
    ]
    facts = json.loads(folder.joinpath("run.json").read_text(encoding="utf-8"))
    offset = facts["t_start_wall"] - facts["t_start_mono"]
    stamps = STAMP.findall(folder.joinpath("vlog.txt").read_text(encoding="utf-8"))
    walls = [
        dt.datetime.strptime(f"{text}{milli}{micro}+0000", "%Y-%m-%d-%H:%M:%S.%f%z").timestamp()
        for text, milli, micro in stamps
    ]
    times = sorted({row["t_ns"] + zero for row in rows["op_service"]})
    assert len(times) == len(walls)
    assert max(abs(time / 1e9 - (wall - offset)) for time, wall in zip(times, walls, strict=True)) < 2e-3


@pytest.mark.parametrize("folder", SUITE, ids=lambda folder: folder.name)
def test_steps_are_as_long_as_the_consumer_says(folder, tmp_path):
    _, rows = imported(folder, tmp_path)
    with folder.joinpath("steps.csv").open(encoding="utf-8") as file:
        asked = [float(row["t_req_mono_s"]) * 1e9 for row in csv.DictReader(file)]
    own = median(later - earlier for earlier, later in pairwise(asked))
    train = [row["end_ns"] - row["start_ns"] for row in rows["step"] if row["kind"] == "train"]
    assert abs(median(train) - own) <= 2 * MS


@pytest.mark.parametrize(("folder", "table"), TABLES, ids=lambda path: path.name)
def test_the_derived_table_gives_the_same_depths_as_the_original(folder, table, tmp_path):
    _, original = imported(folder, tmp_path / "one")
    run, derived = imported(table, tmp_path / "two")
    for number in range(3):
        one, other = ([row["depth"] for row in rows["queue"] if row["op_id"] == number] for rows in (original, derived))
        assert one == other
    assert any(warning.code == "sample_times" for warning in run.manifest.warnings)


@pytest.mark.parametrize(("folder", "fetches"), OLDER, ids=lambda value: getattr(value, "name", value))
def test_hand_made_folders_of_older_versions_can_be_read(folder, fetches, tmp_path):
    run, rows = imported(folder, tmp_path, kind="minddata")
    assert run.manifest.state == "complete"
    assert len(rows.get("fetch", [])) == fetches
    assert rows["queue"]


@pytest.mark.parametrize("folder", [OWN, *outside("minddata_suite")], ids=lambda folder: folder.name)
def test_the_whole_suite_is_not_one_training(folder, tmp_path):
    from pipeprof.errors import SourceError

    with pytest.raises(SourceError, match="two files of the same kind for rank 0"):
        import_path(folder, tmp_path / "run")
