"""What real recordings of several MindSpore versions hold, see PROVENANCE.md."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest
from copies import copy_tree

from pipeprof.read.spool.finish import finish
from pipeprof.record.run import load

CAPTURES = Path(__file__).parent / "captures"
NAMES = sorted(path.name for path in CAPTURES.iterdir())
SINGLE = [name for name in NAMES if name != "2.10-ranks"]
BATCHES = 8


@pytest.fixture(params=NAMES)
def capture(request, converted):
    return converted(request.param)


@pytest.fixture(params=SINGLE)
def single(request, converted):
    return converted(request.param)


def ranks(capture):
    return sorted({row["rank"] for row in capture.rows("step")})


def test_every_version_and_style_was_captured():
    assert NAMES == ["2.10-graph", "2.10-jit", "2.10-pynative", "2.10-ranks", "2.7-graph", "2.7-jit", "2.7-pynative"]


def test_the_run_is_complete_without_a_warning(capture):
    assert (capture.manifest.state, capture.manifest.reason, capture.manifest.warnings) == ("complete", None, [])
    assert capture.manifest.not_measured == []


def test_each_rank_has_16_training_steps_and_3_of_evaluation(capture):
    for rank in ranks(capture):
        kinds = Counter(row["kind"] for row in capture.rows("step") if row["rank"] == rank)
        assert kinds["warmup"] + kinds["train"] == 2 * BATCHES
        assert kinds["warmup"] == 1
        assert kinds["eval"] == 3


def test_the_epochs_are_those_of_the_script(capture):
    for rank in ranks(capture):
        training = [row for row in capture.rows("step") if row["rank"] == rank and row["kind"] != "eval"]
        assert [row["epoch"] for row in training] == [0] * BATCHES + [1] * BATCHES


def test_the_evidence_is_what_the_style_shows(capture):
    graph = capture.manifest.command[-1] == "graph"
    (rep,) = capture.manifest.reps
    assert {rank.step_evidence for rank in rep.ranks} == {"callbacks" if graph else "updates"}
    assert {rank.ended for rank in rep.ranks} == {"normal"}


def test_every_step_fetched_one_batch_and_its_phases_are_in_order(capture):
    fetched = Counter((row["rank"], row["step"]) for row in capture.rows("fetch") if row["step"] is not None)
    for row in capture.rows("step"):
        assert fetched[row["rank"], row["step"]] == 1
        points = [row[name] for name in ("start_ns", "fp_ns", "bp_ns", "end_ns") if row[name] is not None]
        assert points == sorted(points)
        assert row["data_wait_ns"] == row["fp_ns"] - row["start_ns"]


def test_steps_with_operators_have_both_points_and_lie_in_a_window(capture):
    backward = {(row["rank"], row["step"]) for row in capture.sql(
        "SELECT op.rank, op.step FROM op JOIN op_info AS i ON i.rank = op.rank AND i.op_id = op.op_id WHERE i.phase = 'backward'"
    )}  # fmt: skip
    measured = [row for row in capture.rows("step") if row["bp_ns"] and row.get("bp_source", "op") == "op"]
    assert {(row["rank"], row["step"]) for row in measured} == backward
    assert len(measured) >= 3
    for row in measured:
        assert row["in_window"]
        assert row["fp_source"] == "op"


def test_every_training_step_has_a_backward_end_between_its_forward_start_and_its_end(capture):
    for row in capture.rows("step"):
        if row["kind"] != "eval" and "bp_source" in row:  # one capture is of tables that were made before
            assert row["bp_source"] in ("op", "update", "call", "share"), row
            assert row["fp_ns"] <= row["bp_ns"] <= row["end_ns"]


def test_every_phase_of_the_network_was_seen(capture):
    phases = {row["phase"] for row in capture.rows("op_info")}
    expected = {"forward", "backward", "optimizer"}
    assert phases == (expected | {"communication"} if len(ranks(capture)) > 1 else expected)


def test_each_recorded_training_step_runs_the_same_operators(single):
    names = single.sql(
        "SELECT op.step, string_agg(i.name || ' ' || i.phase, ', ' ORDER BY op.start_ns) AS names FROM op "
        "JOIN op_info AS i USING (op_id) JOIN step ON step.step = op.step WHERE step.kind = 'train' GROUP BY op.step ORDER BY 1"
    )
    assert len(names) == 3
    assert len({row["names"] for row in names}) == 1


def test_the_network_is_there_with_types_and_shapes(single):
    kinds = Counter(row["type"] for row in single.rows("op_info") if row["phase"] == "forward")
    assert kinds["MatMul"] >= 2
    shapes = {row["in_shapes"] for row in single.rows("op_info") if row["type"] == "BiasAdd"}
    assert shapes == {"[4, 16]; [16]; NoShape", "[4, 2]; [2]; NoShape"}


def test_executions_lie_in_their_steps(capture):
    steps = {(row["rank"], row["step"]): row for row in capture.rows("step")}
    inside = [row for row in capture.rows("op") if row["step"] is not None]
    assert len(inside) == len(capture.rows("op"))
    for row in inside:
        step = steps[row["rank"], row["step"]]
        assert step["start_ns"] <= row["start_ns"]
        assert row["start_ns"] + row["dur_ns"] <= step["end_ns"]


def test_the_training_pipeline_is_source_map_batch(capture):
    for rank in ranks(capture):
        first = [row for row in capture.rows("pipeline_op") if (row["rank"], row["pipeline_id"]) == (rank, 0)]
        kinds = [(row["op_type"], row["name"], row["is_python"]) for row in first if not row["inlined"]]
        assert kinds == [("BatchOp", None, False), ("MapOp", "halve", True), ("GeneratorOp", "Source", True)]
        edges = [
            (r["producer_id"], r["consumer_id"])
            for r in capture.rows("pipeline_edge")
            if (r["rank"], r["pipeline_id"]) == (rank, 0)
        ]
        assert len(edges) == len(first) - 1


def test_pipelines_have_the_roles_they_play(capture):
    graph = capture.manifest.command[-1] == "graph"
    for rank in ranks(capture):
        roles = [row["role"] for row in capture.rows("pipeline") if row["rank"] == rank]
        assert roles == (["train", "eval"] if graph else ["train", "train", "eval"])


def test_the_two_epochs_of_a_loop_are_the_same_pipeline_again(converted):
    keys = [row["pipeline_key"] for row in converted("2.10-pynative").rows("pipeline")]
    assert keys[0] == keys[1] != keys[2]


def test_queues_were_sampled_within_their_capacity_and_every_10_ms_or_so(capture):
    rows = capture.rows("queue")
    assert len(rows) >= 30
    assert all(0 <= row["depth"] <= row["capacity"] for row in rows)
    recorded = [row for row in capture.rows("pipeline") if row["queues"] == "recorded"]
    assert len(recorded) == len(capture.rows("pipeline"))
    for pipeline in recorded:
        times = [
            r["t_ns"] for r in rows if (r["rank"], r["pipeline_id"]) == (pipeline["rank"], pipeline["pipeline_id"])
        ]
        assert all(pipeline["created_ns"] <= time for time in times)


def test_every_batch_has_service_times_of_every_operator_and_the_source_takes_its_3_ms(capture):
    for rank in ranks(capture):
        rows = [row for row in capture.rows("op_service") if row["rank"] == rank]
        assert len(rows) == 19 * 3
        sleep = 3_000_000
        sources = [row for row in capture.rows("pipeline_op") if (row["rank"], row["op_type"]) == (rank, "GeneratorOp")]
        slow = {(row["pipeline_id"], row["op_id"]) for row in sources}
        times = [row for row in rows if (row["pipeline_id"], row["op_id"]) in slow]
        assert len(times) == 19
        assert all(row["avg_ns"] >= sleep and row["rows"] == 4 for row in times)


def test_compilations_are_seen_where_the_style_has_them(single):
    compiled = [row for row in single.rows("stage") if row["stage"] == "compile"]
    style = single.manifest.command[-1]
    assert len(compiled) == {"graph": 2, "jit": 1, "pynative": 1}[style]
    first = min(single.rows("step"), key=lambda row: row["start_ns"])
    assert first["start_ns"] <= compiled[0]["start_ns"] < first["end_ns"]


def test_stages_follow_each_other(single):
    stages = {row["stage"]: row for row in single.rows("stage") if row["stage"] != "compile"}
    assert sorted(stages, key=lambda name: stages[name]["start_ns"]) == [
        "start",
        "import",
        "build",
        "warmup",
        "steady",
    ]


def test_the_versions_are_known(capture):
    (rep,) = capture.manifest.reps
    assert {rank.mindspore.rpartition(".")[0] for rank in rep.ranks} == {capture.run.path.name.partition("-")[0]}


def test_two_ranks_have_collectives_of_both(converted):
    rows = converted("2.10-ranks").rows("collective")
    assert {row["rank"] for row in rows} == {0, 1}
    assert {row["kind"] for row in rows} == {"all_reduce"}
    gradients = 4
    counts = Counter((row["rank"], row["step"]) for row in rows)
    assert set(counts.values()) == {gradients}
    assert {step for rank, step in counts if rank == 0} == {step for rank, step in counts if rank == 1}


def test_two_ranks_have_processes_of_their_own(converted):
    found = converted("2.10-ranks").sql(
        "SELECT rank, name, count(DISTINCT pid) AS n FROM memory WHERE device = 'process' GROUP BY ALL"
    )
    assert {(row["rank"], row["name"]): row["n"] for row in found if row["name"] == "trainer"} == {
        (0, "trainer"): 1,
        (1, "trainer"): 1,
    }


def hashes(run):
    return {
        path.relative_to(run.path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in run.path.rglob("*.parquet")
    }


@pytest.mark.parametrize("name", ["2.10-graph", "2.10-ranks"])
def test_converting_twice_gives_the_same_files_and_manifest(name, tmp_path):
    copy_tree(CAPTURES / name, tmp_path / "run")
    first = finish(load(tmp_path / "run"), keep_spool=True)
    once = hashes(first), first.manifest.reps, first.manifest.tables
    again = finish(load(tmp_path / "run"), keep_spool=True)
    assert (hashes(again), again.manifest.reps, again.manifest.tables) == once


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
def test_a_recording_cut_off_after_some_steps_has_those_steps(tmp_path, keep):
    copy_tree(CAPTURES / "2.10-graph", tmp_path / "run")
    (marks,) = tmp_path.rglob("marks.bin")
    data = [marks.read_bytes()[at : at + 26] for at in range(0, marks.stat().st_size, 26)]
    ends = [number for number, mark in enumerate(data) if mark[0] == 2]
    cut = 0 if not keep else ends[keep - 1] + 1
    marks.write_bytes(b"".join(data[:cut]) + data[cut][:11])
    for path in (*tmp_path.rglob("exit.json"), *tmp_path.rglob("final-*/*.json")):
        path.unlink()
    run = finish(load(tmp_path / "run"))
    assert run.manifest.state == "partial"
    assert run.manifest.tables.get("step", 0) == keep


def test_captures_name_no_machine_folder_or_person():
    for path in CAPTURES.rglob("*"):
        if path.suffix in (".json", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            assert not any(word in text for word in ("/home/", "/root/", "tmp/", "/work/", "/usr/")), path
            assert '"host": "' not in text.replace('"host": "machine"', ""), path
