"""A spool becomes tables: ranks, points, steps, stages, and the same files every time."""

import json

import pytest
from stored_rows import rows, warnings

from pipeprof.read.spool.convert import assign_ranks, convert_rep, user_points
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.process import load_processes
from pipeprof.read.spool.step_rows import Step
from pipeprof.read.spool.step_table import touching
from pipeprof.record import store
from pipeprof.record.run import Manifest

ZERO, ONE, TWO = 1_000, 4_000_001, 4_000_002
COMPILED = [(Kind.COMPILE, 0, 0, 0, 1_300, 1_400)]
CAST = ("Default/net/Cast-op0", 1_425, 10)


def manifest(options=None, environment=None):
    known = {"run_id": "x", "started_at": "x", "pipeprof_version": "0"}
    return Manifest(**known, options=options or {}, fingerprint={"environment": environment or {}})


def converted(spooled, table=None, names=""):
    """The run, or a table of it."""
    convert_rep(spooled.run, 0)
    return rows(spooled.run, table, names) if table else spooled.run


@pytest.mark.parametrize(
    ("processes", "expected", "clashes"),
    [
        ([{"rank": 1}, {"rank": 0}], {0: [TWO], 1: [ONE]}, []),
        ([{"started": 1_100}, {"started": 5_000}], {0: [ONE, TWO]}, []),  # one after the other
        ([{"started": 1_100}, {"started": 1_200}], {0: [ONE], 1: [TWO]}, [("rank_clash", 1)]),
        ([{"marks": COMPILED}, {}], {0: [TWO]}, []),  # the first never trained
    ],
)
def test_ranks_are_those_of_rank_id_or_of_processes_that_trained_at_one_time(spooled, processes, expected, clashes):
    spooled.rep()
    for pid, how in zip((ONE, TWO), processes, strict=True):
        spooled.process(pid=pid, **how)
    told = manifest()
    assigned = assign_ranks(load_processes(spooled.run.spool / "rep=0", SpoolNotes()), told, 0)
    assert {rank: [one.about["pid"] for one in members] for rank, members in assigned.items()} == expected
    assert [(warning.code, warning.rank) for warning in told.warnings] == clashes
    assert all(str(TWO) in warning.message for warning in told.warnings)


def test_a_program_that_only_reads_rows_beside_one_that_trains_evaluates(spooled):
    """`python train.py && python eval.py`."""
    spooled.trained(pid=ONE, steps=2)
    read = [(Kind.FETCH, 0, 0, 0, 5_200 + 100 * at, 5_210 + 100 * at) for at in range(3)]
    spooled.process(pid=TWO, started=5_000, marks=read)
    assert converted(spooled, "step", "kind") == [("warmup",), ("train",), ("eval",), ("eval",)]
    assert set(rows(spooled.run, "pipeline", "role")) == {("train",), ("eval",)}


def test_sequential_processes_of_a_rank_continue_its_numbers(spooled):
    spooled.trained(pid=ONE, steps=2)
    spooled.process(pid=TWO, started=5_000, steps=2)
    assert converted(spooled, "step", "step pipeline_id") == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert rows(spooled.run, "fetch", "pipeline_id fetch step") == [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]


BOTH = {"FP_POINT": "a", "PROFILING_FP_START": "b"}


@pytest.mark.parametrize(
    ("options", "environment", "fp", "bp", "codes"),
    [
        ({}, {}, None, None, []),
        ({}, {"FP_POINT": "a"}, "a", None, []),
        ({}, {"PROFILING_FP_START": "b"}, "b", None, []),
        ({}, BOTH, "b", None, ["points_differ"]),
        ({"fp_point": "c"}, BOTH, "c", None, []),
        ({"fp_point": None}, {"FP_POINT": "", "PROFILING_FP_START": ""}, None, None, []),
        ({}, {"BP_POINT": "x", "FP_POINT": "y"}, "y", "x", []),
    ],
)
def test_an_option_wins_over_profiling_variables_and_those_over_points(options, environment, fp, bp, codes):
    told = manifest(options, environment)
    assert user_points(told) == {"fp": fp, "bp": bp}
    assert [warning.code for warning in told.warnings] == codes


def test_times_are_ns_since_the_launch_and_stages_follow_each_other_from_there(spooled):
    spooled.trained()
    names = "start_ns fp_ns end_ns kind data_wait_ns fetch_wait_ns fp_source"
    assert converted(spooled, "step", names) == [
        (300, 320, 400, "warmup", 20, 20, "fetch"), (400, 420, 500, "train", 20, 20, "fetch"),
        (500, 520, 590, "train", 20, 20, "fetch"),
    ]  # fmt: skip
    assert {stage: times for stage, *times in rows(spooled.run, "stage", "stage start_ns dur_ns")} == {
        "start": [0, 100], "import": [110, 140], "build": [250, 50], "compile": [330, 10], "warmup": [300, 100],
        "steady": [400, 190],
    }  # fmt: skip


def test_an_op_window_gives_operators_points_and_marks_its_steps(spooled):
    executions = [CAST, ("Gradients/net/Mul-op1", 1_440, 20), ("Default/net/AllReduce-op2", 1_470, 5)]
    spooled.window(spooled.trained(), 1_400, 1_500, executions)
    assert converted(spooled, "step", "fp_ns bp_ns fp_source in_window")[1] == (425, 460, "op", True)
    assert rows(spooled.run, "op", "step start_ns dur_ns") == [(1, 425, 10), (1, 440, 20), (1, 470, 5)]
    assert rows(spooled.run, "op_info", "type scope phase") == [
        ("Cast", "Default/net", "forward"), ("Mul", "Gradients/net", "backward"), ("AllReduce", "Default/net", "communication"),
    ]  # fmt: skip
    assert rows(spooled.run, "collective", "kind") == [("all_reduce",)]
    points = spooled.run.manifest.options["points"]["rank 0"]
    assert (points["fp"], points["fp_choice"]) == (CAST[0], "automatic")


def test_a_point_that_names_nothing_is_a_warning_that_lists_near_names_and_keeps_the_tables(spooled):
    spooled.window(spooled.trained(), 1_400, 1_500, [CAST])
    spooled.run.manifest.options |= {"fp_point": "Default/net/Castt-op0", "bp_point": "none"}
    assert "op" in {source for (source,) in converted(spooled, "step", "fp_source")}
    first, second = warnings(spooled.run, "point_not_found")
    assert first.startswith("FP_POINT `Default/net/Castt-op0` matches no operator that was recorded; did you mean")
    assert first.endswith("; the automatic choice is used: `Default/net/Cast-op0`")
    assert second.startswith("BP_POINT `none` matches no operator")
    assert len(store.read(spooled.run, "op")) == 1
    assert spooled.run.manifest.options["points"]["rank 0"]["fp_choice"] == "automatic"


def test_damaged_operator_files_are_a_warning_and_keep_the_steps(spooled):
    folder = spooled.trained()
    spooled.window(folder, 1_400, 1_500, [])
    folder.joinpath("window-1/cpu_op_execute_timestamp_0.txt").write_text("A;HostCpuOps;17", encoding="utf-8")
    result = convert_rep(spooled.run, 0)
    assert "damaged line 1 of `cpu_op_execute_timestamp_0.txt`" in spooled.run.manifest.warnings[0].message
    assert (result.rows["step"], "op" in result.rows) == (3, False)


def test_every_rank_keeps_its_clocks_and_versions(spooled):
    spooled.trained()
    (rank,) = converted(spooled).manifest.reps[0].ranks
    assert (rank.rank, rank.pid, rank.mindspore, rank.ended) == (0, ONE, "2.10.0", "normal")
    assert rank.zero_realtime_ns - rank.zero_monotonic_ns == 1_700_000_000_000_000_000 - ZERO
    assert (rank.step_evidence, rank.hooks) == ("updates", "compiled")


def files(run):
    return {path.relative_to(run.path): path.read_bytes() for path in run.path.rglob("*.parquet")}


def test_converting_twice_gives_identical_files_and_one_entry(spooled):
    spooled.window(spooled.trained(rank=1), 1_400, 1_500, [CAST])
    first = convert_rep(spooled.run, 0).rows
    before = files(spooled.run)
    assert convert_rep(spooled.run, 0).rows == first
    assert files(spooled.run) == before
    assert len(before) > 5
    assert len(spooled.run.manifest.reps) == 1


def test_an_empty_spool_makes_an_entry_without_ranks(spooled):
    spooled.rep()
    assert convert_rep(spooled.run, 0).rows == {}
    assert spooled.run.manifest.reps[0].ranks == []


def test_without_the_launchers_files_time_begins_with_the_first_process(spooled):
    folder = spooled.trained().parent
    for name in ("launch.json", "exit.json"):
        folder.joinpath(name).unlink()
    entry = convert_rep(spooled.run, 0).rep
    assert (entry.zero_monotonic_ns, entry.exit_code) == (1_100, None)
    assert rows(spooled.run, "step", "start_ns")[0] == (200,)


def test_a_launcher_that_imports_mindspore_is_no_other_rank(spooled):
    spooled.trained(pid=ONE, marks=COMPILED)
    spooled.process(pid=TWO)
    machine = {"sys": 0.0, "idle": 0.0, "steal": 0.0, "used": 1}
    process = {"born": 1.0, "sys": 0.0, "ended": 0.0, "rss": 1}
    spooled.host(
        {"t": ZERO + at, "user": 2.0 * at, **machine,
         "procs": [{"pid": pid, "ppid": pid - 1, "user": float(at), **process} for pid in (ONE, TWO)]}
        for at in range(2)
    )  # fmt: skip
    assert converted(spooled, "cpu_use", "part pid") == [("launcher", ONE), ("trainer", TWO)]


@pytest.mark.parametrize("windows", [[], [(3, 5)], [(2, 3), (0, 9)], [(4, 4), (6, 6), (8, 20)]])
def test_a_step_is_in_a_window_that_it_touches(windows):
    steps = [Step("train", start, start + 2) for start in range(0, 12, 2)]
    touched = [any(begin <= step.end and step.start <= end for begin, end in windows) for step in steps]
    assert touching(steps, windows).tolist() == touched


def test_a_training_that_outlives_the_command_counts_to_its_end(spooled):
    spooled.run.manifest.fingerprint["host"] = "machine"
    spooled.trained(end=100)
    parts = converted(spooled, "run_part", "part dur_ns")
    assert [rep.dur_ns for rep in spooled.run.manifest.reps] == [sum(length for _, length in parts)] == [605]
    assert {"first_steps", "training"} <= {part for part, _ in parts}


def test_how_fast_the_machine_was_is_noted_with_the_repetition(spooled):
    path = spooled.trained().parent / "launch.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"calibration_ns": 200_000}))
    assert [rep.calibration_ns for rep in converted(spooled).manifest.reps] == [200_000]


def pool(spooled, folder, number, begin, times):
    """Samples of the pool in an op window, whose level is their time within it."""
    realtime = json.loads(spooled.run.spool.joinpath("rep=0", "launch.json").read_text())["realtime"]
    lines = "".join(f"{realtime - ZERO + begin + at},{at},4096,{at}\n" for at in times)
    text = f"Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n{lines}"
    folder.joinpath(f"window-{number}", "cpu_ms_memory_record_0.txt").write_text(text, encoding="utf-8")


def test_samples_of_the_pool_that_were_not_asked_for_are_not_read(spooled):
    """MindSpore goes on taking them once it was asked to."""
    folder = spooled.trained()
    for number, asked in enumerate((False, True), 1):
        begin = 1_300 + 100 * number
        spooled.window(folder, begin, begin + 100, [(CAST[0], begin + 25, 10)], number, memory=asked)
        pool(spooled, folder, number, begin, (20, 30, 40))
    taken = converted(spooled, "op", "self_memory_bytes")
    assert [size is not None for (size,) in taken] == [False, True]
    assert store.read(spooled.run, "memory").num_rows == 3


def test_the_level_of_the_pool_is_kept_once_in_so_many_operators(spooled):
    folder = spooled.trained()
    spooled.window(folder, 1_400, 1_500, [(f"Default/net/Cast-op{at}", 1_400 + at, 5) for at in (10, 20, 30, 40, 50)])
    pool(spooled, folder, 1, 1_400, (5, 18, 19, 28, 38, 48, 60))
    spooled.run.manifest.options["sample_rate"] = 2
    assert converted(spooled, "memory", "allocated_bytes") == [(5,), (28,), (48,)]
