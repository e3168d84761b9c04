"""The Ascend reader against MindInsight's recorded answers and our own recomputation, on the same captures."""

# ruff: noqa: S608 - the texts are put together from constants of this file

from __future__ import annotations

import csv
import json

import pytest
from minddata_record import shared

from pipeprof.query.engine import Engine
from pipeprof.read.foreign import import_path

MINDINSIGHT = "mindinsight/tests/utils/resource"
CASES = {  # oracle -> folder, rank
    "mi_run1_dev1": (f"{MINDINSIGHT}/run_1/normal_run/profiler", 1),
    "mi_run2_dev1": (f"{MINDINSIGHT}/run_2/normal_run/profiler", 1),
    "mi_run3_dev1": (f"{MINDINSIGHT}/run_3/normal_run/profiler", 1),
    "mi_run4_dev1": (f"{MINDINSIGHT}/run_4/normal_run/profiler", 1),
    "mi_profiler_dev0": (f"{MINDINSIGHT}/profiler", 0),
    "mi_profiler_dev1": (f"{MINDINSIGHT}/profiler", 1),
    "mi_cluster_propose_rank0": (f"{MINDINSIGHT}/cluster_propose", 0),
    "mi_cluster_propose_rank1": (f"{MINDINSIGHT}/cluster_propose", 1),
}
PHASES = {"iteration_interval": "fp_ns - start_ns", "fp_and_bp": "bp_ns - fp_ns", "tail": "end_ns - bp_ns",
          "total": "end_ns - start_ns"}  # fmt: skip


def source(name):
    """A folder of the captures, when it is there and holds something."""
    folder = shared("ascend") / name
    if not folder.exists() or not any(path.is_file() for path in folder.rglob("*")):
        pytest.skip(f"the capture {name} is not there")
    return folder


def answer(case):
    return json.loads((shared("ascend/oracle") / f"{case}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """`imported(name)`: the run that a capture becomes; each is imported once."""
    runs = {}

    def run_of(name):
        if name not in runs:
            runs[name] = import_path(source(name), tmp_path_factory.mktemp("imports") / "run")
        return runs[name]

    return run_of


def ask(run, text):
    with Engine.open(run) as engine:
        return [tuple(row.values()) for row in engine.sql(text).to_pylist()]


def ms(ns):
    return round(ns / 1e6, 4)


@pytest.mark.parametrize("case", [case for case in CASES if case != "mi_profiler_dev1"])
def test_phases_of_every_step_are_those_of_mindinsight_to_the_tick(imported, case):
    folder, rank = CASES[case]
    path = source(folder) / f"step_trace_raw_{rank}_detail_time.csv"
    with path.open(newline="", encoding="utf-8") as file:
        stored = [row for row in csv.DictReader(file) if row["step_num"].isdigit() and int(row["step_num"]) > 0]
    columns = ", ".join(PHASES.values())
    found = ask(imported(folder), f"SELECT {columns} FROM step WHERE rank = {rank} ORDER BY step")
    assert [tuple(value // 10 for value in row) for row in found] == [
        tuple(int(row[name]) for name in PHASES) for row in stored
    ]
    shown = answer(case)["step_trace"]
    for name, values in zip(PHASES, zip(*found, strict=True), strict=True):
        assert [ms(value) for value in values] == pytest.approx(shown[f"proc_{name}"], abs=1.01e-4)
    assert shown["summary"]["total_steps"] == len(found)


@pytest.mark.parametrize("case", [case for case in CASES if case != "mi_profiler_dev1"])
def test_averages_are_recomputed_and_agree_with_a_plain_implementation(imported, case):
    folder, rank = CASES[case]
    recomputed = json.loads((shared("ascend/oracle") / "step_trace_recomputed.json").read_text(encoding="utf-8"))
    for part, where in (("all", "TRUE"), ("skip_first", "step > 0")):
        for name, expression in PHASES.items():
            wanted = recomputed[f"{folder}/step_trace_raw_{rank}_detail_time.csv"][part][name]
            shown = ", ".join(f"{kind}({expression})" for kind in ("avg", "median", "min", "max"))
            found = ask(imported(folder), f"SELECT {shown} FROM step WHERE rank = {rank} AND {where}")[0]
            if wanted is None:
                assert found == (None,) * 4
            else:
                assert [value / 1e6 for value in found] == pytest.approx(list(wanted.values()), abs=1e-4)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("mi_cluster") or case == "mi_run1_dev1"])
def test_communication_events_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    wanted = answer(case)["step_trace"]["all_reduce_events_ms_first20"]
    if not wanted:
        pytest.skip("MindInsight shows no event")
    found = ask(imported(folder), f"SELECT dur_ns FROM collective WHERE rank = {rank}")
    lengths = {round(dur / 1e6, 4) for (dur,) in found}
    assert {round(item[3], 4) for item in wanted} <= lengths


@pytest.mark.parametrize("case", ["mi_run1_dev1", "mi_run2_dev1"])
def test_fp_and_bp_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    found = imported(folder).manifest.options["points"][f"rank {rank}"]
    assert {"fp_start": found["fp"], "bp_end": found["bp"]} == answer(case)["step_trace"]["point_info"]


@pytest.mark.parametrize("case", CASES)
def test_operator_types_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    for source_kind, key in (("aicore_type", "aicore_type"), ("aicpu", "aicpu_type")):
        found = ask(
            imported(folder),
            "SELECT type, total_ns / 1000, count FROM op_total "
            f"WHERE rank = {rank} AND source = '{source_kind}' ORDER BY type",
        )
        wanted = sorted((row[0], row[1], row[2]) for row in answer(case)[key]["object"])
        assert [(name, count) for name, _, count in found] == [(name, count) for name, _, count in wanted]
        assert [total for _, total, _ in found] == pytest.approx([total for _, total, _ in wanted], abs=1.1e-3)


@pytest.mark.parametrize("case", ["mi_run1_dev1", "mi_profiler_dev1"])
def test_operators_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    found = ask(
        imported(folder),
        "SELECT name, type, mean_ns / 1000, count FROM op_total "
        f"WHERE rank = {rank} AND source = 'aicore_detail' ORDER BY name",
    )
    wanted = sorted((row[0], row[2], row[3], row[4]) for row in answer(case)["aicore_detail"]["object"])
    assert [(name, kind, count) for name, kind, _, count in found] == [(n, kind, count) for n, kind, _, count in wanted]
    assert [mean for _, _, mean, _ in found] == pytest.approx([mean for _, _, mean, _ in wanted], abs=1.1e-3)


@pytest.mark.parametrize("case", ["mi_run2_dev1", "mi_profiler_dev0"])
def test_queue_counts_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    for side, part in (("host_queue", "device_queue"), ("data_queue", "get_next")):
        wanted = answer(case)["minddata"][part]["queue"].get("info", {}).get("queue", [])
        found = ask(
            imported(folder),
            f'SELECT depth FROM "fetch" AS f WHERE rank = {rank} AND side = \'{side}\' ORDER BY f."fetch"',
        )
        assert [depth for (depth,) in found] == wanted


@pytest.mark.parametrize("case", ["raw05_JOB1", "skip1"])
def test_step_traces_made_by_the_old_parser_are_read_exactly(tmp_path, case):
    name = "step_trace_raw_0_detail_time" + ("_skip1" if case == "skip1" else "")
    path = shared("ascend/oracle") / "raw05_JOB1" / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))[:-1]
    found = ask(import_path(path, tmp_path / "run"), f"SELECT {', '.join(PHASES.values())} FROM step ORDER BY step")
    assert [tuple(value // 10 for value in row) for row in found] == [
        tuple(int(row[part]) for part in PHASES) for row in stored
    ]


def test_the_raw_slices_give_the_step_trace_that_the_parser_made(imported):
    run = imported(f"{MINDINSIGHT}/JOB1")
    path = shared("ascend/oracle") / "raw05_JOB1" / "step_trace_raw_0_detail_time.csv"
    with path.open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))[:-1]
    found = ask(run, f"SELECT {', '.join(PHASES.values())} FROM step ORDER BY step")
    assert [tuple(value // 10 for value in row) for row in found] == [
        tuple(int(row[name]) for name in PHASES) for row in stored
    ]
    columns = [name for name in stored[0] if name.startswith("stream_") and not name.endswith("_point")]
    events = ask(run, "SELECT step, name, dur_ns FROM collective ORDER BY step, name")
    assert [(step, name, dur // 10) for step, name, dur in events] == sorted(
        (step, name, int(row[name])) for step, row in enumerate(stored) for name in columns
    )


@pytest.mark.parametrize("job", ["JOB1", "JOB4"])
def test_framework_descriptions_give_the_table_that_the_parser_made(job):
    from pipeprof.read.ascend.graph_ops import descriptions

    folder = source(f"{MINDINSIGHT}/{job}")
    paths = sorted(folder.rglob("*graph_desc_info*slice_0"))
    ours = {name: (kind, tensors) for path in paths for name, kind, tensors in descriptions(path)}
    with (shared("ascend/oracle") / f"raw05_{job}" / "framework_raw_0.csv").open(encoding="utf-8") as file:
        wanted = list(csv.DictReader(file))
    assert wanted
    for row in wanted:
        assert ours[row["full_op_name"]] == (row["op_type"], json.loads(row["op_info"]))


def test_the_device_log_gives_the_table_that_the_parser_made():
    from pipeprof.read.ascend.graph_ops import aicpu_records

    folder = source(f"{MINDINSIGHT}/JOB_AICPU")
    found = list(aicpu_records(next(folder.rglob("DATA_PREPROCESS*"))))
    text = (shared("ascend/oracle") / "raw05_JOB_AICPU" / "output_data_preprocess_aicpu_0.txt").read_text("utf-8")
    rows = [line.split() for line in text.splitlines()[2:] if line[:1].isdigit()]
    assert [
        (name, total / 1e6, dispatch / 1e6, start // 1000, end // 1000) for name, start, end, dispatch, total in found
    ] == [(row[1], float(row[2]), float(row[3]), int(row[4]), int(row[5])) for row in rows]


def test_the_device_log_alone_is_a_profile(imported):
    run = imported(f"{MINDINSIGHT}/JOB_AICPU")
    text = (shared("ascend/oracle") / "raw05_JOB_AICPU" / "output_data_preprocess_aicpu_0.txt").read_text("utf-8")
    rows = [line.split() for line in text.splitlines()[2:] if line[:1].isdigit()]
    found = ask(run, "SELECT type, total_ns, dispatch_ns FROM op_total WHERE source = 'aicpu' ORDER BY type")
    assert [(name, total / 1e6, dispatch / 1e6) for name, total, dispatch in found] == sorted(
        (row[1], float(row[2]), float(row[3])) for row in rows
    )
    assert ask(run, "SELECT count(*) FROM op") == [(len(rows),)]


def test_msprof_iterations_are_those_of_an_independent_decoding(tmp_path):
    folder = source(f"{MINDINSIGHT}/profiler/PROF_000001_20230818142704322_COJGGGCANRMICFBC")
    run = import_path(folder, tmp_path / "run")
    name = "PROF_device_0_step_trace.json"
    wanted = json.loads((shared("ascend/oracle") / name).read_text(encoding="utf-8"))["device_0"]
    found = ask(
        run,
        "SELECT span.dur_ns, bp_ns - fp_ns, end_ns - bp_ns, span.start_ns - step.start_ns FROM step "
        "JOIN span ON span.name = 'Iteration ' || (step.step + 1) ORDER BY step.step",
    )
    assert len(found) == len(wanted)
    for (iteration, fp_bp, tail, gap), row in zip(found, wanted, strict=True):
        assert (ms(iteration), ms(fp_bp), ms(tail)) == pytest.approx(
            (row["iteration_ms"], row["fp_bp_ms"], row["tail_ms"]), abs=1.01e-4
        )
        assert ms(gap) == pytest.approx(row["start_gap_from_prev_end_ms"] or 0, abs=1.01e-4)


@pytest.mark.parametrize("level", ["level0", "level1"])
def test_torch_npu_captures_hold_together(imported, level):
    run = imported(f"msinsight/test/data/pytorch/text/{level}")
    assert run.manifest.state == "complete"
    assert [warning for warning in run.manifest.warnings if warning.code == "self_check"] == []
    names = {"Computing": "computing_ns", "Communication": "communication_ns", "Free": "free_ns",
             "Communication(Not Overlapped)": "exposed_ns"}  # fmt: skip
    for name, column in names.items():
        spans = ask(
            run,
            f"SELECT rank, sum(dur_ns) FROM span WHERE category = 'overlap' AND name = '{name}' "
            "GROUP BY rank ORDER BY rank",
        )
        assert spans == ask(run, f"SELECT rank, sum({column}) FROM step_split GROUP BY rank ORDER BY rank")


def test_operator_statistics_equal_the_kernels_by_type(imported):
    run = imported("msinsight/test/data/pytorch/text/level1")
    stated = ask(run, "SELECT rank, type, sum(count), sum(total_ns) FROM op_total WHERE source = 'op_statistic' "
                 "GROUP BY rank, type ORDER BY rank, type")  # fmt: skip
    found = ask(run, "SELECT op.rank, type, count(*), sum(dur_ns) FROM op JOIN op_info USING (rep, rank, op_id) "
                "GROUP BY op.rank, type ORDER BY op.rank, type")  # fmt: skip
    assert [row[:3] for row in stated] == [row[:3] for row in found]
    for (_, _, count, total), (_, _, _, summed) in zip(stated, found, strict=True):
        assert abs(total - summed) <= count  # the file's sum is of times with more digits than it prints
    assert len({row[1] for row in stated}) == 33


@pytest.mark.parametrize("case", ["graph_10steps", "graph_20steps", "pynative_10steps", "data_parallel_2rank"])
def test_cpu_executions_equal_the_profilers_own_totals(imported, case):
    run = imported(f"mindspore_cpu_2.10/{case}")
    assert [warning for warning in run.manifest.warnings if warning.code == "self_check"] == []
    stated = ask(
        run, "SELECT rank, name, count, total_ns FROM op_total WHERE source = 'cpu_detail' ORDER BY rank, name"
    )
    found = ask(run, "SELECT op.rank, name, count(*), sum(dur_ns) FROM op JOIN op_info USING (rep, rank, op_id) "
                "GROUP BY op.rank, name ORDER BY op.rank, name")  # fmt: skip
    assert [row[:3] for row in found] == [row[:3] for row in stated]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in stated], rel=1e-4)
    if "pynative" not in case:
        steps = 10 if case == "graph_10steps" else 20
        assert ask(run, "SELECT rank, count(*) FROM step GROUP BY rank ORDER BY rank")[0][1] == steps
