"""A spool becomes tables: ranks, points, steps, stages, and the same files every time."""

import hashlib
import json

import pytest

from pipeprof.read.spool.convert import assign_ranks, convert_rep, user_points
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.process import load_processes
from pipeprof.read.spool.step_rows import Step
from pipeprof.read.spool.step_table import touching
from pipeprof.record import store
from pipeprof.record.run import Manifest

ZERO = 1_000


def manifest(options=None, environment=None):
    return Manifest(
        run_id="x",
        started_at="x",
        pipeprof_version="0",
        options=options or {},
        fingerprint={"environment": environment or {}},
    )


def ranks(spooled, told=None):
    processes = load_processes(spooled.run.spool / "rep=0", SpoolNotes())
    assigned = assign_ranks(processes, told or manifest(), 0)
    return {rank: [process.about["pid"] for process in members] for rank, members in assigned.items()}


def test_rank_id_decides(spooled):
    spooled.rep()
    spooled.process(pid=4_000_001, rank=1)
    spooled.process(pid=4_000_002, rank=0)
    assert ranks(spooled) == {0: [4_000_002], 1: [4_000_001]}


def test_processes_one_after_the_other_are_one_rank(spooled):
    spooled.rep()
    spooled.process(pid=4_000_001, started=1_100)
    spooled.process(pid=4_000_002, started=5_000)
    told = manifest()
    assert ranks(spooled, told) == {0: [4_000_001, 4_000_002]}
    assert told.warnings == []


def test_processes_of_one_rank_at_the_same_time_become_two_and_it_is_said(spooled):
    spooled.rep()
    spooled.process(pid=4_000_001, started=1_100)
    spooled.process(pid=4_000_002, started=1_200)
    told = manifest()
    assert ranks(spooled, told) == {0: [4_000_001], 1: [4_000_002]}
    assert [(warning.code, warning.rank) for warning in told.warnings] == [("rank_clash", 1)]
    assert "4000002" in told.warnings[0].message


def test_a_process_that_never_trained_has_no_rank(spooled):
    spooled.rep()
    spooled.process(pid=4_000_001, marks=[(Kind.COMPILE, 0, 0, 0, 1_300, 1_400)])
    spooled.process(pid=4_000_002)
    assert ranks(spooled) == {0: [4_000_002]}


def test_a_program_that_only_reads_rows_beside_one_that_trains_evaluates(spooled):
    """`python train.py && python eval.py`."""
    spooled.rep()
    spooled.process(pid=4_000_001, started=1_100, steps=2)
    rows = [(Kind.FETCH, 0, 0, 0, 5_200 + 100 * at, 5_210 + 100 * at) for at in range(3)]
    spooled.process(pid=4_000_002, started=5_000, marks=rows)
    convert_rep(spooled.run, 0)
    kinds = [row["kind"] for row in store.read(spooled.run, "step").to_pylist()]
    assert kinds == ["warmup", "train", "eval", "eval"]
    assert {row["role"] for row in store.read(spooled.run, "pipeline").to_pylist()} == {"train", "eval"}


def test_sequential_processes_of_a_rank_continue_its_numbers(spooled):
    spooled.rep()
    spooled.process(pid=4_000_001, started=1_100, steps=2)
    spooled.process(pid=4_000_002, started=5_000, steps=2)
    convert_rep(spooled.run, 0)
    steps = store.read(spooled.run, "step").to_pylist()
    assert [row["step"] for row in steps] == [0, 1, 2, 3]
    assert [row["pipeline_id"] for row in steps] == [0, 0, 1, 1]
    fetches = store.read(spooled.run, "fetch").to_pylist()
    assert [(row["pipeline_id"], row["fetch"], row["step"]) for row in fetches] == [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, 2),
        (1, 1, 3),
    ]


@pytest.mark.parametrize(
    ("options", "environment", "chosen"),
    [
        ({}, {}, None),
        ({}, {"FP_POINT": "a"}, "a"),
        ({}, {"PROFILING_FP_START": "b"}, "b"),
        ({}, {"FP_POINT": "a", "PROFILING_FP_START": "b"}, "b"),
        ({"fp_point": "c"}, {"FP_POINT": "a", "PROFILING_FP_START": "b"}, "c"),
        ({"fp_point": None}, {"FP_POINT": "", "PROFILING_FP_START": ""}, None),
    ],
)
def test_an_option_wins_over_profiling_variables_and_those_over_points(options, environment, chosen):
    assert user_points(manifest(options, environment)) == {"fp": chosen, "bp": None}


def test_the_backward_point_has_variables_of_its_own():
    assert user_points(manifest({}, {"BP_POINT": "x", "FP_POINT": "y"})) == {"fp": "y", "bp": "x"}


def test_variables_that_contradict_each_other_are_warned_about_unless_an_option_decides():
    both = {"FP_POINT": "a", "PROFILING_FP_START": "b"}
    for options, codes in (({}, ["points_differ"]), ({"fp_point": "c"}, [])):
        told = manifest(options, both)
        user_points(told)
        assert [warning.code for warning in told.warnings] == codes


def test_times_are_ns_since_the_launch(spooled):
    spooled.rep()
    spooled.process(started=1_100, steps=2)
    convert_rep(spooled.run, 0)
    steps = store.read(spooled.run, "step").to_pylist()
    assert [(row["start_ns"], row["fp_ns"], row["end_ns"]) for row in steps] == [(300, 320, 400), (400, 420, 490)]
    assert [(row["kind"], row["data_wait_ns"], row["fetch_wait_ns"], row["fp_source"]) for row in steps] == [
        ("warmup", 20, 20, "fetch"), ("train", 20, 20, "fetch"),
    ]  # fmt: skip


def test_stages_follow_each_other_from_the_launch(spooled):
    spooled.rep()
    spooled.process(started=1_100, steps=3)
    convert_rep(spooled.run, 0)
    stages = {row["stage"]: (row["start_ns"], row["dur_ns"]) for row in store.read(spooled.run, "stage").to_pylist()}
    assert stages == {
        "start": (0, 100), "import": (110, 140), "build": (250, 50), "compile": (330, 10), "warmup": (300, 100),
        "steady": (400, 190),
    }  # fmt: skip


def test_an_op_window_gives_operators_points_and_marks_its_steps(spooled):
    spooled.rep()
    folder = spooled.process(started=1_100, steps=3)
    executions = [
        ("Default/net/Cast-op0", 1_425, 10), ("Gradients/net/Mul-op1", 1_440, 20), ("Default/net/AllReduce-op2", 1_470, 5),
    ]  # fmt: skip
    spooled.window(folder, 1_400, 1_500, executions)
    convert_rep(spooled.run, 0)
    middle = store.read(spooled.run, "step").to_pylist()[1]
    assert (middle["fp_ns"], middle["bp_ns"], middle["fp_source"], middle["in_window"]) == (425, 460, "op", True)
    ops = store.read(spooled.run, "op").to_pylist()
    assert [(row["step"], row["start_ns"], row["dur_ns"]) for row in ops] == [(1, 425, 10), (1, 440, 20), (1, 470, 5)]
    infos = store.read(spooled.run, "op_info").to_pylist()
    assert [(row["type"], row["scope"], row["phase"]) for row in infos] == [
        ("Cast", "Default/net", "forward"), ("Mul", "Gradients/net", "backward"), ("AllReduce", "Default/net", "communication"),
    ]  # fmt: skip
    assert [row["kind"] for row in store.read(spooled.run, "collective").to_pylist()] == ["all_reduce"]
    points = spooled.run.manifest.options["points"]["rank 0"]
    assert (points["fp"], points["fp_choice"]) == ("Default/net/Cast-op0", "automatic")


def test_a_point_that_names_nothing_is_a_warning_that_lists_near_names_and_keeps_the_tables(spooled):
    spooled.rep()
    spooled.window(spooled.process(), 1_400, 1_500, [("Default/net/Cast-op0", 1_425, 10)])
    spooled.run.manifest.options |= {"fp_point": "Default/net/Castt-op0", "bp_point": "none"}
    convert_rep(spooled.run, 0)
    first, second = (one.message for one in spooled.run.manifest.warnings if one.code == "point_not_found")
    assert first.startswith("FP_POINT `Default/net/Castt-op0` matches no operator that was recorded; did you mean")
    assert first.endswith("; the automatic choice is used: `Default/net/Cast-op0`")
    assert second.startswith("BP_POINT `none` matches no operator")
    assert len(store.read(spooled.run, "op")) == 1
    assert "op" in {row["fp_source"] for row in store.read(spooled.run, "step").to_pylist()}
    assert spooled.run.manifest.options["points"]["rank 0"]["fp_choice"] == "automatic"


def test_damaged_operator_files_are_a_warning_and_keep_the_steps(spooled):
    spooled.rep()
    folder = spooled.process()
    spooled.window(folder, 1_400, 1_500, [])
    folder.joinpath("window-1/cpu_op_execute_timestamp_0.txt").write_text("A;HostCpuOps;17", encoding="utf-8")
    result = convert_rep(spooled.run, 0)
    assert "damaged line 1 of `cpu_op_execute_timestamp_0.txt`" in spooled.run.manifest.warnings[0].message
    assert result.rows["step"] == 3
    assert "op" not in result.rows


def test_every_rank_keeps_its_clocks_and_versions(spooled):
    spooled.rep()
    spooled.process()
    convert_rep(spooled.run, 0)
    (rank,) = spooled.run.manifest.reps[0].ranks
    assert (rank.rank, rank.pid, rank.mindspore, rank.ended) == (0, 4_000_001, "2.10.0", "normal")
    assert rank.zero_realtime_ns - rank.zero_monotonic_ns == 1_700_000_000_000_000_000 - ZERO
    assert (rank.step_evidence, rank.hooks) == ("updates", "compiled")


def files(run):
    return {
        path.relative_to(run.path): hashlib.sha256(path.read_bytes()).digest() for path in run.path.rglob("*.parquet")
    }


def test_converting_twice_gives_identical_files_and_one_entry(spooled):
    spooled.rep()
    spooled.window(spooled.process(rank=1), 1_400, 1_500, [("Default/net/Cast-op0", 1_425, 10)])
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
    folder = spooled.rep()
    spooled.process(started=1_100)
    for name in ("launch.json", "exit.json"):
        folder.joinpath(name).unlink()
    entry = convert_rep(spooled.run, 0).rep
    assert (entry.zero_monotonic_ns, entry.exit_code) == (1_100, None)
    assert store.read(spooled.run, "step").to_pylist()[0]["start_ns"] == 200


def test_a_launcher_that_imports_mindspore_is_no_other_rank(spooled):
    folder = spooled.rep()
    spooled.process(pid=4_000_001, marks=[(Kind.COMPILE, 0, 0, 0, 1_300, 1_400)])
    spooled.process(pid=4_000_002)
    machine = {"sys": 0.0, "idle": 0.0, "steal": 0.0, "used": 1}
    lines = []
    for number in range(2):
        procs = [
            {"pid": pid, "ppid": pid - 1, "born": 1.0, "user": float(number), "sys": 0.0, "ended": 0.0, "rss": 1}
            for pid in (4_000_001, 4_000_002)
        ]
        lines.append(json.dumps({"t": ZERO + number, "user": 2.0 * number, "procs": procs, **machine}) + "\n")
    folder.joinpath("host.jsonl").write_text("".join(lines), encoding="utf-8")
    convert_rep(spooled.run, 0)
    rows = store.read(spooled.run, "cpu_use").to_pylist()
    assert [(row["part"], row["pid"]) for row in rows] == [("launcher", 4_000_001), ("trainer", 4_000_002)]


@pytest.mark.parametrize("windows", [[], [(3, 5)], [(2, 3), (0, 9)], [(4, 4), (6, 6), (8, 20)]])
def test_a_step_is_in_a_window_that_it_touches(windows):
    steps = [Step("train", start, start + 2) for start in range(0, 12, 2)]
    touched = [any(begin <= step.end and step.start <= end for begin, end in windows) for step in steps]
    assert touching(steps, windows).tolist() == touched


def test_a_training_that_outlives_the_command_counts_to_its_end(spooled):
    spooled.run.manifest.fingerprint["host"] = "machine"
    spooled.rep(end=100)
    spooled.process(started=1_100, steps=3)
    convert_rep(spooled.run, 0)
    parts = store.read(spooled.run, "run_part").to_pylist()
    assert [rep.dur_ns for rep in spooled.run.manifest.reps] == [sum(row["dur_ns"] for row in parts)] == [605]
    assert {"first_steps", "training"} <= {row["part"] for row in parts}


def test_how_fast_the_machine_was_is_noted_with_the_repetition(spooled):
    folder = spooled.rep()
    spooled.process()
    launch = json.loads(folder.joinpath("launch.json").read_text())
    folder.joinpath("launch.json").write_text(json.dumps(launch | {"calibration_ns": 200_000}))
    convert_rep(spooled.run, 0)
    assert [rep.calibration_ns for rep in spooled.run.manifest.reps] == [200_000]


def pool(spooled, folder, number, begin, times):
    """Samples of the pool in an op window, whose level is their time within it."""
    realtime = json.loads(spooled.run.spool.joinpath("rep=0", "launch.json").read_text())["realtime"]
    rows = "".join(f"{realtime - ZERO + begin + at},{at},4096,{at}\n" for at in times)
    text = f"Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n{rows}"
    folder.joinpath(f"window-{number}", "cpu_ms_memory_record_0.txt").write_text(text, encoding="utf-8")


def test_samples_of_the_pool_that_were_not_asked_for_are_not_read(spooled):
    """MindSpore goes on taking them once it was asked to."""
    spooled.rep()
    folder = spooled.process()
    for number, asked in enumerate((False, True), 1):
        begin = 1_300 + 100 * number
        spooled.window(folder, begin, begin + 100, [("Default/net/Cast-op0", begin + 25, 10)], number, memory=asked)
        pool(spooled, folder, number, begin, (20, 30, 40))
    convert_rep(spooled.run, 0)
    taken = [row["self_memory_bytes"] is not None for row in store.read(spooled.run, "op").to_pylist()]
    assert taken == [False, True]
    assert store.read(spooled.run, "memory").num_rows == 3


def test_the_level_of_the_pool_is_kept_once_in_so_many_operators(spooled):
    spooled.rep()
    folder = spooled.process()
    spooled.window(folder, 1_400, 1_500, [(f"Default/net/Cast-op{at}", 1_400 + at, 5) for at in (10, 20, 30, 40, 50)])
    pool(spooled, folder, 1, 1_400, (5, 18, 19, 28, 38, 48, 60))
    spooled.run.manifest.options["sample_rate"] = 2
    convert_rep(spooled.run, 0)
    assert store.read(spooled.run, "memory").column("allocated_bytes").to_pylist() == [5, 28, 48]
