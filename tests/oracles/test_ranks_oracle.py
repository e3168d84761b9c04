"""Ranks, communication and operator totals against second, plain implementations and other programs' answers."""

import csv
import json

import numpy as np
import pytest
from captured import outside, own
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_rows import others_median, rows_of

from pipeprof.query.engine import Engine
from pipeprof.read.foreign import import_path

random_rows = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
LENGTH = 40
OWN, RESOURCE = own("ascend"), "ascend/mindinsight/tests/utils/resource"
PIPELINES = [OWN / "two_ranks", *outside(f"{RESOURCE}/cluster_propose")]
# Captures with a step trace and communication, and their ranks.
TRACED = [
    *((folder, rank) for folder in PIPELINES for rank in (0, 1)), (OWN / "one_rank", 1),
    *((folder, 1) for folder in outside(f"{RESOURCE}/run_1/normal_run/profiler")),
]  # fmt: skip
# Answers of MindInsight, and the folders that they are of.
ANSWERS = [
    (OWN / "answers" / "one_rank.json", OWN / "one_rank"),
    *((answer, folder) for number in (1, 2)
      for answer, folder in zip(outside(f"ascend/oracle/mi_run{number}_dev1.json"),
                                outside(f"{RESOURCE}/run_{number}/normal_run/profiler"), strict=True)),
]  # fmt: skip


def lockstep(times):
    """Step traces whose time up to BP is `times` (steps x ranks); communication fills the rest of the step."""
    longest = int(times.max()) + 10
    found = {"step": [], "collective": []}
    for step, row in enumerate(times):
        for rank, work in enumerate(row):
            begin = step * longest
            here = {"rank": rank, "step": step}
            found["step"].append(
                {**here, "kind_step": step, "kind": "train", "start_ns": begin, "fp_ns": begin, "bp_ns": begin + int(work),
                 "end_ns": begin + longest}
            )  # fmt: skip
            found["collective"].append({**here, "start_ns": begin + int(work), "dur_ns": longest - int(work)})
    return found, longest


@random_rows
@given(st.integers(1, 7), st.integers(2, 6), st.data())
def test_differences_are_those_of_the_plain_implementation(make_run, steps, ranks, data):
    numbers = st.lists(st.integers(0, 300), min_size=steps * ranks, max_size=steps * ranks)
    times = np.array(data.draw(numbers), dtype=float).reshape(steps, ranks)
    tables, longest = lockstep(times)
    with Engine.open(make_run(tables)) as engine:
        found = [row for row in engine.rows("rank/phase_diff") if row["phase"] == "until_bp"]
    expected = rows_of(times, step_ns=float(longest), others=others_median)
    for row, same in zip(found, expected, strict=True):
        assert row == {name: value if value is None else pytest.approx(value, abs=1e-6) for name, value in same.items()}


points = st.none() | st.integers(0, LENGTH)
events = st.lists(st.tuples(st.integers(-5, LENGTH), st.integers(0, LENGTH)), max_size=10)


@random_rows
@given(fp=points, bp=points, happened=events)
def test_communication_in_phases_nanosecond_by_nanosecond(make_run, fp, bp, happened):
    if fp is not None and bp is not None and bp < fp:
        fp, bp = bp, fp
    step = {"step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "fp_ns": fp, "bp_ns": bp, "end_ns": LENGTH}
    rows = [{"step": 0, "start_ns": start, "dur_ns": dur} for start, dur in [*happened, (0, 0)]]
    busy = [any(start <= moment < start + dur for start, dur in happened) for moment in range(LENGTH)]
    text = "SELECT comm_ns, data_wait_comm_ns, forward_backward_comm_ns, tail_comm_ns FROM comm_part"
    with Engine.open(make_run({"step": [step], "collective": rows})) as engine:
        found = tuple(engine.sql(text).to_pylist()[0].values())
    both = fp is not None and bp is not None
    assert found == (
        sum(busy),
        None if fp is None else sum(busy[:fp]),
        sum(busy[fp:bp]) if both else None,
        sum(busy[bp:]) if both else None,
    )


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    runs = {}

    def run_of(folder):
        if folder not in runs:
            runs[folder] = import_path(folder, tmp_path_factory.mktemp("imports") / "run")
        return runs[folder]

    return run_of


def tails(run, rank):
    """Per step: ns behind BP with any event under way, merged interval by interval."""
    with Engine.open(run) as engine:
        steps = engine.sql(f"SELECT step, bp_ns, end_ns FROM step WHERE rank = {rank} ORDER BY step").to_pylist()  # noqa: S608
        rows = engine.sql(f"SELECT step, start_ns, dur_ns FROM collective WHERE rank = {rank}").to_pylist()  # noqa: S608
    found = []
    for step in steps:
        reached, total = step["bp_ns"], 0
        for start, dur in sorted((row["start_ns"], row["dur_ns"]) for row in rows if row["step"] == step["step"]):
            end = min(start + dur, step["end_ns"])
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        found.append(total)
    return found


def in_tails(path):
    """The same in ms from a step trace's own columns, tick by tick of 10 ns."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["step_num"].isdigit() and int(row["step_num"]) > 0]
    found = []
    for row in rows:
        bp, end = int(row["bp_point"]), int(row["end_point"])
        busy = np.zeros(max(end - bp, 0), bool)
        for name in row:
            if name.endswith("_start_point") and name != "start_point":
                start, stop = int(row[name]), int(row[name.replace("_start_point", "_end_point")])
                busy[max(start - bp, 0) : max(stop - bp, 0)] = True
        found.append(int(busy.sum()) / 1e5)
    return found


@pytest.mark.parametrize(("folder", "rank"), TRACED, ids=lambda value: getattr(value, "name", value))
def test_communication_in_the_tail_is_that_of_the_recomputed_step_traces(imported, folder, rank):
    run = imported(folder)
    plain = tails(run, rank)
    assert np.array(plain) / 1e6 == pytest.approx(in_tails(folder / f"step_trace_raw_{rank}_detail_time.csv"), abs=1e-5)
    assert max(plain) > 0
    with Engine.open(run) as engine:
        rows = engine.rows("comm/split")
    ours = next(row for row in rows if (row["rank"], row["source"]) == (rank, "trace"))
    assert ours["tail_ns"] == pytest.approx(np.mean(plain[1:]), rel=1e-12)


@pytest.mark.parametrize(("path", "folder"), ANSWERS, ids=lambda path: path.stem)
def test_totals_by_type_are_mindinsight_s(imported, path, folder):
    run = imported(folder)
    # its pages show us where the files have ms
    answer = json.loads(path.read_text(encoding="utf-8"))
    with Engine.open(run) as engine:
        rows = engine.rows("op/totals", group_by="type", top=1000)
    ours = {row["type"]: (row["count"], row["total_ns"] / 1e3) for row in rows if row["device"] == "AI_CORE"}
    theirs = {row[0]: (row[2], row[1]) for row in answer["aicore_type"]["object"]}
    assert ours.keys() == theirs.keys()
    for kind, (count, total) in theirs.items():
        assert ours[kind] == (count, pytest.approx(total, abs=2e-3)), kind


@pytest.mark.parametrize("folder", PIPELINES, ids=lambda folder: folder.name)
def test_ranks_of_the_pipeline_capture_are_even_though_a_fixed_threshold_flags_them(imported, folder):
    from pipeprof.report.ranks import rank_verdicts

    with Engine.open(imported(folder)) as engine:
        found = rank_verdicts(engine, several=True)["straggler"]
    assert (found["verdict"], found["found"]) == ("even", [])
    assert found["largest"]["share"] < 0.001
