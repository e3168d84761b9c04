"""Many ranks at once: files about all of them, whose is what, several processes that read them, captures in a row."""

import json
import os
import signal
import subprocess
import sys
import time

import ascend_files
import pytest
from ascend_files import write, write_cluster, write_cpu, write_graph, write_output, write_prof
from minddata_files import write_feed
from stored_rows import rows, warnings

from pipeprof import processes
from pipeprof.errors import RunError, SourceError, UsageError
from pipeprof.read.foreign import import_path
from pipeprof.read.tables import ranks as workers
from pipeprof.record import store


def tree(folder, ranks=5):
    for rank in range(ranks):
        write_output(folder / f"host{rank}_ascend_pt", rank=rank)
        write_graph(folder / "old" / f"rank_{rank}" / "profiler", rank=rank + 100)
    return folder


def test_cluster_files_give_what_the_ranks_own_files_do_not(tmp_path):
    run = import_path(write_cluster(tmp_path / "cluster_analysis_output"), tmp_path / "run")
    assert rows(run, "step_split", "rank step source_step stage_index computing_ns") == [
        (0, 0, 7, None, 40_000), (0, 0, 7, 0, 41_000), (1, 0, 7, None, 41_000),
    ]  # fmt: skip
    assert rows(run, "collective_cost", "rank step name group_name dur_ns wait_ns") == [
        (rank, 0, "hcom_allReduce__586_0_1", "99", 20_000, 8000) for rank in (0, 1)
    ]
    assert rows(run, "rank_link", "rank src_rank dst_rank transport bytes dur_ns") == [
        (rank, *ends, "HCCS", 2_000_000, 10_000) for rank in (0, 1) for ends in ((None, None), (rank, 1 - rank))
    ]


def test_a_rank_with_files_of_its_own_takes_nothing_twice(tmp_path):
    write_output(tmp_path / "job" / "a_ascend_pt", rank=0)
    alone = import_path(tmp_path / "job", tmp_path / "alone")
    write_cluster(tmp_path / "job" / "cluster_analysis_output")
    both = import_path(tmp_path / "job", tmp_path / "both")
    for table, names in (("collective_cost", "rank name dur_ns"), ("rank_link", "rank name bytes dur_ns")):
        assert [row for row in rows(both, table, names) if row[0] == 0] == rows(alone, table, names)
    assert rows(both, "step_split", "rank stage_index source") == [
        (0, None, "step_trace_time"), (0, 0, "cluster_step_trace"), (1, None, "cluster_step_trace"),
    ]  # fmt: skip


def test_of_two_cluster_folders_the_nearer_counts_and_the_other_is_named(tmp_path):
    write_cluster(tmp_path / "job" / "cluster_analysis_output")
    write_cluster(tmp_path / "job" / "base" / "old" / "cluster_analysis_output")
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert len(rows(run, "step_split", "rank")) == 3
    said = warnings(run, "left_out")
    assert len(said) == 3
    assert all("base/old/cluster_analysis_output" in message.partition(" was left out")[0] for message in said)


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
    command, env = (
        [sys.executable, "-c", SLOW, str(source), str(tmp_path / "run")],
        os.environ | {workers.VARIABLE: "2"},
    )
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, start_new_session=True)
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
    assert ["import:kineto were added for rank 0" in text for text in warnings(run, "two_op_sources")] == [True]


def test_the_rank_in_a_folders_name_counts_more_than_the_number_of_its_device(tmp_path):
    for rank in (3, 11):
        write_prof(tmp_path / "x" / f"rank_{rank}")
    run = import_path(tmp_path / "x", tmp_path / "run")
    assert [rank.rank for rank in run.manifest.reps[0].ranks] == [3, 11]


APART_US = 5_000_000


def two(folder, monkeypatch, *, pid=77, names=("20260101000000000", "20260101000005000")):
    """Two captures of rank 0, 5 s apart; the later one is written first."""
    for number in (1, 0):
        monkeypatch.setattr(ascend_files, "EPOCH_US", ascend_files.EPOCH_US + (APART_US if number else -APART_US))
        write_output(folder / f"host_{77 if number else pid}_{names[number]}_ascend_pt")
    return folder


def test_cycles_of_one_process_are_one_run_in_order_of_time(tmp_path, monkeypatch):
    write_output(tmp_path / "alone")
    alone = import_path(tmp_path / "alone", tmp_path / "one")
    run = import_path(two(tmp_path / "job", monkeypatch), tmp_path / "run")
    assert run.manifest.state == "complete"
    assert ["2 captures of one process" in warning.message for warning in run.manifest.warnings] == [True]
    first, second = rows(run, "step", "step", "start_ns", "end_ns")
    assert (first[0], second[0]) == (0, 1)
    assert [later - earlier for earlier, later in zip(first[1:], second[1:], strict=True)] == [APART_US * 1000] * 2
    for table in ("op", "collective", "step_split", "collective_cost", "rank_link"):
        once = store.read(alone, table).to_pylist()
        again = store.read(run, table).to_pylist()
        assert [row["step"] for row in once] == [0] * len(once)
        assert [row["step"] for row in again] == [0] * len(once) + [1] * len(once)
    assert rows(run, "op_info", "name") == rows(alone, "op_info", "name")


def test_graph_mode_steps_of_a_later_cycle_follow_the_earlier_ones(tmp_path):
    for name in ("20260101000000000", "20260101000005000"):
        write_cpu(tmp_path / "job" / f"host_77_{name}_ascend_ms", steps=3)
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert [row[0] for row in rows(run, "step", "step")] == list(range(6))
    steps = [row[0] for row in rows(run, "op", "step")]
    assert sorted(set(steps)) == list(range(6))
    assert len({steps.count(step) for step in range(6)}) == 1


def test_captures_of_two_processes_are_no_cycles(tmp_path, monkeypatch):
    for name in ("a", "b"):
        write_output(tmp_path / "unnamed" / name)
    for folder in (two(tmp_path / "job", monkeypatch, pid=78), tmp_path / "unnamed"):
        with pytest.raises(SourceError, match="two files of the same kind for rank 0"):
            import_path(folder, tmp_path / "run")
