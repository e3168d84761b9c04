"""The Ascend reader against MindInsight's recorded answers, MindSpore's own parsers and a plain second implementation."""

# ruff: noqa: S608 - the texts are put together from constants of this file

import csv
import json
from statistics import mean, median

import npu_job
import pytest
from ascend_files import write_prof
from captured import OUTSIDE, outside, own

from pipeprof.query.engine import Engine
from pipeprof.read.foreign import import_path

ASCEND, RESOURCE = OUTSIDE / "ascend", OUTSIDE / "ascend" / "mindinsight" / "tests" / "utils" / "resource"
OWN = own("ascend")
# Answer of MindInsight -> folder, rank.
CASES = {OWN / "answers" / f"{name}.json": (OWN / folder, rank) for name, folder, rank in (
    ("one_rank", "one_rank", 1), ("two_ranks_0", "two_ranks", 0), ("two_ranks_1", "two_ranks", 1),
)} | {ASCEND / "oracle" / f"{name}.json": (RESOURCE / folder, rank) for name, folder, rank in (
    *((f"mi_run{number}_dev1", f"run_{number}/normal_run/profiler", 1) for number in range(1, 5)),
    ("mi_profiler_dev0", "profiler", 0), ("mi_profiler_dev1", "profiler", 1),
    ("mi_cluster_propose_rank0", "cluster_propose", 0), ("mi_cluster_propose_rank1", "cluster_propose", 1),
) if ASCEND.is_dir()}  # fmt: skip
PHASES = {"iteration_interval": "fp_ns - start_ns", "fp_and_bp": "bp_ns - fp_ns", "tail": "end_ns - bp_ns",
          "total": "end_ns - start_ns"}  # fmt: skip


def cases(*names):
    """Answers of MindInsight with these names, as parameters; without names all that there are."""
    return [pytest.param(path, id=path.stem) for path in CASES if not names or path.stem in names]


def stepped(*names):
    """Those whose folder has a step trace."""
    return [case for case in cases(*names) if case.id != "mi_profiler_dev1"]


def answer(case):
    return json.loads(case.read_text(encoding="utf-8"))


def step_rows(path):
    """The rows of a step trace as MindSpore wrote it, without the mean in its last row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row["step_num"].isdigit() and int(row["step_num"]) > 0]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """`imported(folder)`: the run that a capture becomes; each is imported once."""
    runs = {}

    def run_of(folder):
        if folder not in runs:
            runs[folder] = import_path(folder, tmp_path_factory.mktemp("imports") / "run")
        return runs[folder]

    return run_of


def ask(run, text):
    with Engine.open(run) as engine:
        return [tuple(row.values()) for row in engine.sql(text).to_pylist()]


def ms(ns):
    return round(ns / 1e6, 4)


def phases(run, where="TRUE"):
    """The phases of each step in ns."""
    return ask(run, f"SELECT {', '.join(PHASES.values())} FROM step WHERE {where} ORDER BY step")


def ticks(found):
    """Phases in ticks of 10 ns, as a step trace has them."""
    return [tuple(value // 10 for value in row) for row in found]


def stored(path):
    """The phases of a step trace."""
    return [tuple(int(row[name]) for name in PHASES) for row in step_rows(path)]


@pytest.mark.parametrize("case", stepped())
def test_phases_of_every_step_are_those_of_mindinsight_to_the_tick(imported, case):
    folder, rank = CASES[case]
    found = phases(imported(folder), f"rank = {rank}")
    assert ticks(found) == stored(folder / f"step_trace_raw_{rank}_detail_time.csv")
    shown = answer(case)["step_trace"]
    for name, values in zip(PHASES, zip(*found, strict=True), strict=True):
        assert [ms(value) for value in values] == pytest.approx(shown[f"proc_{name}"], abs=1.01e-4)
    assert shown["summary"]["total_steps"] == len(found)


@pytest.mark.parametrize("case", stepped())
def test_averages_are_recomputed_and_agree_with_a_plain_implementation(imported, case):
    folder, rank = CASES[case]
    rows = step_rows(folder / f"step_trace_raw_{rank}_detail_time.csv")
    for skipped in (0, 1):
        for name, expression in PHASES.items():
            times = [int(row[name]) / 1e5 for row in rows[skipped:]]
            shown = ", ".join(f"{kind}({expression})" for kind in ("avg", "median", "min", "max"))
            (found,) = ask(imported(folder), f"SELECT {shown} FROM step WHERE rank = {rank} AND step >= {skipped}")
            wanted = [one(times) for one in (mean, median, min, max)] if times else None
            assert (
                found == (None,) * 4
                if wanted is None
                else [value / 1e6 for value in found] == pytest.approx(wanted, abs=1e-4)
            )


TALKING = [
    "one_rank",
    "two_ranks_0",
    "two_ranks_1",
    "mi_cluster_propose_rank0",
    "mi_cluster_propose_rank1",
    "mi_run1_dev1",
]


@pytest.mark.parametrize("case", cases(*TALKING))
def test_communication_events_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    wanted = answer(case)["step_trace"]["all_reduce_events_ms_first20"]
    assert wanted
    found = ask(imported(folder), f"SELECT dur_ns FROM collective WHERE rank = {rank}")
    lengths = {round(dur / 1e6, 4) for (dur,) in found}
    assert {round(item[3], 4) for item in wanted} <= lengths


@pytest.mark.parametrize("case", cases("one_rank", "two_ranks_0", "mi_run1_dev1", "mi_run2_dev1"))
def test_fp_and_bp_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    found = imported(folder).manifest.options["points"][f"rank {rank}"]
    assert {"fp_start": found["fp"], "bp_end": found["bp"]} == answer(case)["step_trace"]["point_info"]


@pytest.mark.parametrize("case", cases())
def test_operator_types_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    for source_kind, key in (("aicore_type", "aicore_type"), ("aicpu", "aicpu_type")):
        of = f"rank = {rank} AND source = '{source_kind}'"
        found = ask(imported(folder), f"SELECT type, total_ns / 1000, count FROM op_total WHERE {of} ORDER BY type")
        wanted = sorted((row[0], row[1], row[2]) for row in answer(case)[key]["object"])
        assert [(name, count) for name, _, count in found] == [(name, count) for name, _, count in wanted]
        assert [total for _, total, _ in found] == pytest.approx([total for _, total, _ in wanted], abs=1.1e-3)


@pytest.mark.parametrize("case", cases())
def test_the_table_of_the_ai_cpu_is_that_of_mindinsight(imported, case):
    """Also executions between steps, which the AI CPU uses to fetch batches."""
    folder, rank = CASES[case]
    with Engine.open(imported(folder)) as engine:
        rows = [row for row in engine.rows("op/by_device") if (row["rank"], row["device"]) == (rank, "AI_CPU")]
    wanted = {row[0]: row[1:] for row in answer(case)["aicpu_type"]["object"]}
    if not wanted:
        return  # MindInsight itself finds none in this folder
    assert {row["type"]: row["count"] for row in rows} == {name: count for name, (_, count, _) in wanted.items()}
    for row in rows:
        total_us, _, percent = wanted[row["type"]]
        assert (row["total_ns"] / 1000, 100 * row["share"]) == pytest.approx((total_us, percent), abs=6e-3)


@pytest.mark.parametrize("case", cases("one_rank", "mi_run1_dev1", "mi_profiler_dev1"))
def test_operators_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    of = f"rank = {rank} AND source = 'aicore_detail'"
    found = ask(imported(folder), f"SELECT name, type, count, mean_ns / 1000 FROM op_total WHERE {of} ORDER BY name")
    wanted = sorted((row[0], row[2], row[4], row[3]) for row in answer(case)["aicore_detail"]["object"])
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in wanted], abs=1.1e-3)


@pytest.mark.parametrize("case", cases("one_rank", "mi_run2_dev1", "mi_profiler_dev0"))
def test_queue_counts_are_those_of_mindinsight(imported, case):
    folder, rank = CASES[case]
    for side, part in (("host_queue", "device_queue"), ("data_queue", "get_next")):
        wanted = answer(case)["minddata"][part]["queue"].get("info", {}).get("queue", [])
        of = f"rank = {rank} AND side = '{side}'"
        found = ask(imported(folder), f'SELECT depth FROM "fetch" AS f WHERE {of} ORDER BY f."fetch"')
        assert [depth for (depth,) in found] == wanted


# What a device left, and what MindSpore's own parsers of that time made of it.
JOBS = [(OWN / "job", OWN / "parsed_job"), *((RESOURCE / "JOB1", path) for path in outside("ascend/oracle/raw05_JOB1"))]
DESCRIBED = [*JOBS, *((RESOURCE / "JOB4", path) for path in outside("ascend/oracle/raw05_JOB4"))]
LOGS = [
    (OWN / "job_aicpu", OWN / "parsed_aicpu"),
    *((RESOURCE / "JOB_AICPU", path) for path in outside("ascend/oracle/raw05_JOB_AICPU")),
]
STEP_TRACE = "step_trace_raw_0_detail_time"


def pairs(found):
    return [pytest.param(*pair, id=pair[0].name) for pair in found]


@pytest.mark.parametrize(("job", "parsed"), pairs(JOBS))
@pytest.mark.parametrize("name", [STEP_TRACE, f"{STEP_TRACE}_skip1"])
def test_step_traces_made_by_the_old_parser_are_read_exactly(tmp_path, job, parsed, name):
    path = parsed / f"{name}.csv"
    assert ticks(phases(import_path(path, tmp_path / "run"))) == stored(path)


@pytest.mark.parametrize(("job", "parsed"), pairs(JOBS))
def test_the_raw_slices_give_the_step_trace_that_the_parser_made(imported, job, parsed):
    run, path = imported(job), parsed / f"{STEP_TRACE}.csv"
    assert ticks(phases(run)) == stored(path)
    rows = step_rows(path)
    columns = [name for name in rows[0] if name.startswith("stream_") and not name.endswith("_point")]
    lengths = sorted((step, int(row[name])) for step, row in enumerate(rows) for name in columns)
    assert sorted((step, dur // 10) for step, dur in ask(run, "SELECT step, dur_ns FROM collective")) == lengths


@pytest.mark.parametrize("rank", [0, 1])
def test_the_newer_trace_gives_the_step_trace_that_the_newer_parser_made(imported, rank):
    found = phases(imported(OWN / "job_track" / f"rank{rank}"))
    assert ticks(found) == stored(OWN / "two_ranks" / f"step_trace_raw_{rank}_detail_time.csv")


@pytest.mark.parametrize(("job", "parsed"), pairs(DESCRIBED))
def test_framework_descriptions_give_the_table_that_the_parser_made(job, parsed):
    from pipeprof.read.ascend.graph_ops import descriptions

    paths = sorted(job.rglob("*graph_desc_info*slice_0"))
    ours = {name: (kind, tensors) for path in paths for name, kind, tensors in descriptions(path)}
    with (parsed / "framework_raw_0.csv").open(encoding="utf-8") as file:
        wanted = list(csv.DictReader(file))
    assert wanted
    for row in wanted:
        assert ours[row["full_op_name"]] == (row["op_type"], json.loads(row["op_info"]))


def parsed_log(folder):
    text = (folder / "output_data_preprocess_aicpu_0.txt").read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize(("job", "parsed"), pairs(LOGS))
def test_the_device_log_gives_the_table_that_the_parser_made(job, parsed):
    from pipeprof.read.ascend.graph_ops import aicpu_records

    found = list(aicpu_records(next(job.rglob("DATA_PREPROCESS*"))))
    assert [
        (name, total / 1e6, dispatch / 1e6, start // 1000, end // 1000) for name, start, end, dispatch, total in found
    ] == [(row[1], float(row[2]), float(row[3]), int(row[4]), int(row[5])) for row in parsed_log(parsed)]


@pytest.mark.parametrize(("job", "parsed"), pairs(LOGS))
def test_the_device_log_alone_is_a_profile(imported, job, parsed):
    run, wanted = imported(job), {}
    for row in parsed_log(parsed):
        total, dispatch = wanted.get(row[1], (0.0, 0.0))
        wanted[row[1]] = total + float(row[2]), dispatch + float(row[3])
    found = ask(run, "SELECT type, total_ns, dispatch_ns FROM op_total WHERE source = 'aicpu'")
    assert {name: (total / 1e6, dispatch / 1e6) for name, total, dispatch in found} == {
        name: pytest.approx(times) for name, times in wanted.items()
    }
    assert ask(run, "SELECT count(*) FROM op") == [(len(parsed_log(parsed)),)]


def decoded(folder):
    """(iteration, FP to BP, tail, gap before it) in ms of each iteration in a PROF folder's step traces, read plainly."""
    found = {}
    for path in folder.rglob("step_trace_*.json"):
        for event in json.loads(path.read_text(encoding="utf-8")):
            if event.get("cat") == "Iteration Time":
                at = {name: float(value) for name, value in event["args"].items()}
                found[at["Iteration ID"]] = (float(event["ts"]), float(event["dur"]), at)
    rows, ends = [], [None, *(ts + dur for _, (ts, dur, _) in sorted(found.items()))]
    for (_, (ts, dur, at)), end in zip(sorted(found.items()), ends, strict=False):
        parts = (dur, at["BP End"] - at["FP Start"], at["Iteration End"] - at["BP End"], 0 if end is None else ts - end)
        rows.append(tuple(part / 1e3 for part in parts))
    return rows


def test_msprof_iterations_are_those_of_an_independent_decoding(tmp_path):
    folders = [write_prof(tmp_path / "made"), *(RESOURCE / "profiler").glob("PROF_*")]
    for number, folder in enumerate(folders):
        run = import_path(folder, tmp_path / f"run-{number}")
        found = ask(
            run,
            "SELECT span.dur_ns, bp_ns - fp_ns, end_ns - bp_ns, span.start_ns - step.start_ns FROM step "
            "JOIN span ON span.name = 'Iteration ' || (step.step + 1) ORDER BY step.step",
        )
        wanted = decoded(folder)
        assert len(found) == len(wanted) > 1
        assert [tuple(ms(value) for value in row) for row in found] == [
            pytest.approx(row, abs=1.01e-4) for row in wanted
        ]


@pytest.fixture(scope="module")
def npu(tmp_path_factory):
    """Two ranks of a job as torch_npu writes them, and what was put in."""
    folder = tmp_path_factory.mktemp("npu")
    return folder, npu_job.write(folder)


LEVELS = [
    "made",
    *(path.name for path in outside(*(f"ascend/msinsight/test/data/pytorch/text/level{at}" for at in (0, 1)))),
]


@pytest.fixture(params=LEVELS)
def output(request, imported, npu):
    made = request.param == "made"
    return imported(npu[0] if made else ASCEND / "msinsight/test/data/pytorch/text" / request.param)


SPLIT = {"Computing": "computing_ns", "Communication": "communication_ns", "Free": "free_ns",
         "Communication(Not Overlapped)": "exposed_ns"}  # fmt: skip


def test_torch_npu_captures_hold_together(output):
    assert output.manifest.state == "complete"
    assert [warning for warning in output.manifest.warnings if warning.code == "self_check"] == []
    for name, column in SPLIT.items():
        of = f"category = 'overlap' AND name = '{name}'"
        spans = ask(output, f"SELECT rank, sum(dur_ns) FROM span WHERE {of} GROUP BY rank ORDER BY rank")
        assert spans == ask(output, f"SELECT rank, sum({column}) FROM step_split GROUP BY rank ORDER BY rank")


def test_the_parts_of_a_step_are_those_of_a_count_tick_by_tick(imported, npu):
    folder, ranks = npu
    found = ask(imported(folder), f"SELECT rank, {', '.join(SPLIT.values())} FROM step_split ORDER BY rank, step")
    assert found == [(rank, *(row[name] for name in SPLIT)) for rank, rows in enumerate(ranks) for row in rows]


def test_operator_statistics_equal_the_kernels_by_type(imported, npu):
    level = outside("ascend/msinsight/test/data/pytorch/text/level1")
    for folder, types in ((npu[0], len(npu_job.KINDS)), *((path, 33) for path in level)):
        run = imported(folder)
        stated = ask(run, "SELECT rank, type, sum(count), sum(total_ns) FROM op_total WHERE source = 'op_statistic' "
                     "GROUP BY rank, type ORDER BY rank, type")  # fmt: skip
        found = ask(run, "SELECT op.rank, type, count(*), sum(dur_ns) FROM op JOIN op_info USING (rep, rank, op_id) "
                    "GROUP BY op.rank, type ORDER BY op.rank, type")  # fmt: skip
        assert [row[:3] for row in stated] == [row[:3] for row in found]
        for (_, _, count, total), (_, _, _, summed) in zip(stated, found, strict=True):
            assert abs(total - summed) <= count  # the file's sum is of times with more digits than it prints
        assert len({row[1] for row in stated}) == types


CPU = [*sorted(own("mindspore_cpu").iterdir()), *(path for folder in outside("ascend/mindspore_cpu_2.10") for path in sorted(
    folder.iterdir()) if path.name != "minddata_lenet")]  # fmt: skip


@pytest.mark.parametrize("folder", CPU, ids=lambda folder: folder.name)
def test_cpu_executions_equal_the_profilers_own_totals(imported, folder):
    run = imported(folder)
    assert [warning for warning in run.manifest.warnings if warning.code == "self_check"] == []
    stated = ask(
        run, "SELECT rank, name, count, total_ns FROM op_total WHERE source = 'cpu_detail' ORDER BY rank, name"
    )
    found = ask(run, "SELECT op.rank, name, count(*), sum(dur_ns) FROM op JOIN op_info USING (rep, rank, op_id) "
                "GROUP BY op.rank, name ORDER BY op.rank, name")  # fmt: skip
    assert [row[:3] for row in found] == [row[:3] for row in stated]
    assert [row[3] for row in found] == pytest.approx([row[3] for row in stated], rel=1e-4)
    if "pynative" not in folder.name:
        steps = 10 if folder.name == "graph_10steps" else 20
        assert ask(run, "SELECT rank, count(*) FROM step GROUP BY rank ORDER BY rank")[0][1] == steps
