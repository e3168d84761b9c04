"""Many ranks at once: files about all of them, whose is what, and several processes that read them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ascend_files import write, write_cluster, write_graph, write_output, write_prof
from minddata_files import write_feed
from stored_rows import rows

from pipeprof import processes
from pipeprof.errors import RunError, UsageError
from pipeprof.read.foreign import import_path
from pipeprof.read.tables import ranks as workers
from pipeprof.record import store


def parquet(run):
    return {path.relative_to(run.path): path.read_bytes() for path in sorted(run.path.rglob("*.parquet"))}


def tree(folder, ranks=5):
    for rank in range(ranks):
        write_output(folder / f"host{rank}_ascend_pt", rank=rank)
        write_graph(folder / "old" / f"rank_{rank}" / "profiler", rank=rank + 100)
    return folder


def test_several_processes_read_ranks_beside_files_of_another_kind(tmp_path, several):
    source = tree(tmp_path / "job", 2)
    write_feed(source / "host0_ascend_pt")
    alone = import_path(source, tmp_path / "alone")
    several(2)
    run = import_path(source, tmp_path / "run")
    assert run.manifest.source == "import:ascend+minddata"
    assert parquet(run) == parquet(alone) != {}


def test_cluster_files_give_what_the_ranks_own_files_do_not(tmp_path):
    run = import_path(write_cluster(tmp_path / "cluster_analysis_output"), tmp_path / "run")
    assert rows(run, "step_split", "rank step source_step stage_index computing_ns") == [
        (0, 0, 7, None, 40_000), (0, 0, 7, 0, 41_000), (1, 0, 7, None, 41_000),
    ]  # fmt: skip
    assert rows(run, "collective_cost", "rank step name group_name dur_ns wait_ns") == [
        (rank, 0, "hcom_allReduce__586_0_1", "99", 20_000, 8000) for rank in (0, 1)
    ]
    assert rows(run, "rank_link", "rank src_rank dst_rank transport bytes dur_ns") == [
        (0, None, None, "HCCS", 2_000_000, 10_000), (0, 0, 1, "HCCS", 2_000_000, 10_000),
        (1, None, None, "HCCS", 2_000_000, 10_000), (1, 1, 0, "HCCS", 2_000_000, 10_000),
    ]  # fmt: skip


def test_a_rank_with_files_of_its_own_takes_nothing_twice(tmp_path):
    write_output(tmp_path / "job" / "a_ascend_pt", rank=0)
    alone = import_path(tmp_path / "job", tmp_path / "alone")
    write_cluster(tmp_path / "job" / "cluster_analysis_output")
    both = import_path(tmp_path / "job", tmp_path / "both")
    for table in ("collective_cost", "rank_link"):
        assert [row for row in rows(both, table, "rank name bytes dur_ns" if table == "rank_link" else "rank name dur_ns")
                if row[0] == 0] == rows(alone, table, "rank name bytes dur_ns" if table == "rank_link" else "rank name dur_ns")  # fmt: skip
    assert rows(both, "step_split", "rank stage_index source") == [
        (0, None, "step_trace_time"), (0, 0, "cluster_step_trace"), (1, None, "cluster_step_trace"),
    ]  # fmt: skip


def test_of_two_cluster_folders_the_nearer_counts_and_the_other_is_named(tmp_path):
    write_cluster(tmp_path / "job" / "cluster_analysis_output")
    write_cluster(tmp_path / "job" / "base" / "old" / "cluster_analysis_output")
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert len(rows(run, "step_split", "rank")) == 3
    said = [warning.message for warning in run.manifest.warnings if warning.code == "left_out"]
    assert len(said) == 3
    assert all("base/old/cluster_analysis_output" in message.partition(" was left out")[0] for message in said)


def test_what_is_written_does_not_depend_on_the_number_of_processes(tmp_path, several):
    source = tree(tmp_path / "job")
    runs = []
    for count in (1, 2, 4):
        several(count)
        told = []
        runs.append(import_path(source, tmp_path / f"run{count}", progress=told.append))
        assert any("of 10 done" in text for text in told) == (count > 1)
    assert parquet(runs[0]) == parquet(runs[1]) == parquet(runs[2])
    assert len(parquet(runs[0])) > 50
    for run in runs[1:]:
        assert run.manifest.tables == runs[0].manifest.tables
        assert run.manifest.warnings == runs[0].manifest.warnings
        assert run.manifest.reps == runs[0].manifest.reps


@pytest.mark.usefixtures("killed")
def test_a_process_that_dies_is_named_and_leaves_nothing(tmp_path, several):
    several(2)
    source = tree(tmp_path / "job", 2)
    with pytest.raises(RunError, match=r"the process that read rank \d+ was ended \(status -9\)"):
        import_path(source, tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]


def test_an_error_of_a_process_is_the_imports_own(tmp_path, several, monkeypatch):
    several(2)
    source = tree(tmp_path / "job", 2)
    asked = processes._Process.ask

    def blocked(process, number, task):
        folder = next(tmp_path.glob(".run.*"))
        folder.joinpath("op").write_text("in the way of a folder")
        asked(process, number, task)

    monkeypatch.setattr(processes._Process, "ask", blocked)
    with pytest.raises(RunError, match=r"cannot write|was ended"):
        import_path(source, tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3", "999"])
def test_a_number_of_processes_that_is_none_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.setenv(workers.VARIABLE, text)
    with pytest.raises(UsageError, match="expected a number from 1 to 256"):
        import_path(write_output(tmp_path / "x"), tmp_path / "run")


SLOW = """
import signal, sys, time
from pathlib import Path
from pipeprof.read.tables import ranks as workers
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what runs in the background
from pipeprof.read.foreign import import_path
workers.WORTH_BYTES = 0
def progress(text):
    print("reading", flush=True)
    time.sleep(60)
import_path(Path(sys.argv[1]), Path(sys.argv[2]), progress=lambda text: progress(text) if " done" in text else None)
"""


def test_an_interrupt_leaves_no_run_and_no_process(tmp_path):
    source = tree(tmp_path / "job", 2)
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(source), str(tmp_path / "run")], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, workers.VARIABLE: "2"}, start_new_session=True,
    )  # fmt: skip
    with child:
        assert child.stdout.readline() == b"reading\n"
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]
    assert is_gone(child.pid)


def is_gone(group):
    """Whether no process of a group is left, within a minute."""
    for _ in range(1200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_parameters_are_those_of_every_generation(tmp_path):
    older = write_output(tmp_path / "job" / "a", rank=0)
    newer = write_output(tmp_path / "job" / "b", rank=1)
    for folder in (older, newer):
        next(folder.glob("profiler_info*")).unlink()
    write(older / "profiler_info_0.json", json.dumps({"context_mode": "graph", "rank_id": 0, "graph_ids": [1]}))
    write(newer / "profiler_info_1.json", json.dumps({"profiler_parameters": {"profile_memory": True}, "rank_id": 1}))
    write(newer / "profiler_metadata.json", json.dumps({"ENV_VARIABLES": {"ASCEND_LAUNCH_BLOCKING": ""}}))
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert run.manifest.options["profiler"] == {
        "0": {"context_mode": "graph", "rank_id": 0},
        "1": {"profile_memory": True, "metadata": {"ENV_VARIABLES": {"ASCEND_LAUNCH_BLOCKING": ""}}},
    }
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == [0, 1]


def test_what_two_readers_number_for_one_rank_is_told_apart(tmp_path):
    write_feed(write_output(tmp_path / "x"))
    calls = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": dur,
              "args": {"Call stack": f"{name}.py(1): f"}} for name, at, dur in (("outer", 0, 9), ("inner", 1, 3))]  # fmt: skip
    calls += [{**calls[0], "name": "enumerate(DataLoader)#It.__next__", "ts": 20}]
    write(tmp_path / "x" / "a.pt.trace.json", json.dumps({"schemaVersion": 1, "traceEvents": calls}))
    run = import_path(tmp_path / "x", tmp_path / "run")
    infos = {row["op_id"]: row for row in store.read(run, "op_info").to_pylist()}
    assert len(infos) == run.manifest.tables["op_info"]
    named = [(infos[op_id]["name"], dur, step) for op_id, dur, step in rows(run, "op", "op_id dur_ns step")]
    assert named[:3] == [("MatMul1", 40_000, 0), ("outer", 9000, None), ("inner", 3000, None)]
    assert len(run.files("op")) == 2
    frames = {row["stack_id"]: row["frame"] for row in store.read(run, "stack").to_pylist()}
    assert {row["name"]: frames.get(row["stack_id"]) for row in infos.values()}["inner"] == "inner.py(1): f"
    assert max(rows(run, "pipeline", "pipeline_id role")) == (1, "train")
    assert {number for (number,) in rows(run, "pipeline_op", "pipeline_id")} == {0}
    assert {(1,), (0,)} <= set(rows(run, "fetch", "pipeline_id"))
    assert [w.message for w in run.manifest.warnings if w.code == "two_op_sources"] == [
        "operators of import:kineto were added for rank 0: it has those of another source, too"
    ]


def test_the_rank_in_a_folders_name_counts_more_than_the_number_of_its_device(tmp_path):
    for rank in (3, 11):
        write_prof(tmp_path / "x" / f"rank_{rank}")
    run = import_path(tmp_path / "x", tmp_path / "run")
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == [3, 11]
