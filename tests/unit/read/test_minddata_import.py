"""A folder that MindSpore's dataset profiling left, read into a run."""

import gzip
import json
import os
from pathlib import Path

import pytest
from minddata_files import (
    MS,
    START_MS,
    cpu_json,
    device_lines,
    graph,
    log,
    op,
    pipeline_json,
    queue_lines,
    raw_csv,
    stamps_ms,
    write_feed,
    write_sink,
)

from pipeprof.errors import SourceError, UsageError
from pipeprof.read.foreign import holds_known, import_path, recognise
from pipeprof.record import store
from pipeprof.record.run import load

ZERO_MS = START_MS  # the first sample; the first request is 30 ms before the first stamp, at START_MS + 30


@pytest.fixture
def raw(tmp_path):
    """`raw(name=text, ...)` is a folder with these files; dots are written as `__`."""

    def write(**texts):
        folder = tmp_path / "raw"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            folder.joinpath(name.replace("__", ".")).write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def run_of(tmp_path):
    return lambda source, **options: import_path(source, tmp_path / "run", **options)


def rows(run, table):
    return store.read(run, table).to_pylist()


def codes(run):
    return {warning.code for warning in run.manifest.warnings}


def said(run, code):
    return next(warning.message for warning in run.manifest.warnings if warning.code == code)


def test_a_whole_folder_is_a_complete_run(tmp_path, run_of):
    run = run_of(write_feed(tmp_path / "raw"))
    stored = load(run.path).manifest
    assert (stored.state, stored.source, stored.reason) == ("complete", "import:minddata", None)
    assert stored.tables == {
        "pipeline": 1, "pipeline_op": 3, "pipeline_edge": 2, "queue": 18, "cpu": 18 + 5 + 5, "memory": 12, "op_service": 24,
        "step": 7, "fetch": 8,
    }  # fmt: skip
    assert {entry.what for entry in stored.not_measured} == {"op"}
    assert [(rank.rank, rank.pid, rank.zero_monotonic_ns) for rank in stored.reps[0].ranks] == [(0, 77, ZERO_MS * MS)]
    assert codes(run) == {"host_cpu_half"}


def test_a_step_goes_from_one_request_to_the_next(tmp_path, run_of):
    run = run_of(write_feed(tmp_path / "raw"))
    steps, given = rows(run, "step"), [ms - ZERO_MS for ms in stamps_ms(8)]
    assert [row["start_ns"] for row in steps] == [(ms - 30) * MS for ms in given[:-1]]
    assert [row["end_ns"] for row in steps] == [(ms - 30) * MS for ms in given[1:]]
    assert [row["fp_ns"] for row in steps] == [ms * MS for ms in given[:-1]]
    assert [row["kind"] for row in steps] == ["warmup"] + ["train"] * 6
    assert {(row["fetch_wait_ns"], row["data_wait_ns"], row["fp_source"]) for row in steps} == {
        (30 * MS, 30 * MS, "fetch")
    }
    assert [row["step"] for row in rows(run, "fetch")] == [*range(7), None]


def test_a_request_that_rounding_puts_before_the_last_batch_is_moved_to_it(raw, run_of):
    run = run_of(raw(dataset_iterator_profiling_0__txt="0 0 1 9 10\n0 0 2 2 11\n0 0 3 1 13\n"))
    assert [(row["start_ns"], row["fp_ns"], row["end_ns"]) for row in rows(run, "step")] == [
        (0, 9 * MS, 9 * MS), (9 * MS, 10 * MS, 11 * MS),
    ]  # fmt: skip


def test_batches_that_are_missing_or_in_conflict_give_no_step(raw, run_of):
    run = run_of(raw(dataset_iterator_profiling_0__txt="0 0 5 1 10\n0 0 6 1 20\n0 0 8 1 40\n0 0 9 1 5\n0 0 10 1 60\n"))
    assert [(row["start_ns"], row["step"]) for row in rows(run, "step")] == [(5 * MS, 0), (0, 1)]
    assert said(run, "steps").startswith("2 batches without a step: ")
    assert [row["fetch"] for row in rows(run, "fetch")] == [4, 5, 7, 8, 9]


def test_a_sample_has_its_own_time(tmp_path, run_of):
    queue = [row for row in rows(run_of(write_feed(tmp_path / "raw")), "queue") if row["op_id"] == 2]
    assert [(row["t_ns"], row["depth"], row["capacity"]) for row in queue] == [
        (23 * number * MS, depth, 8) for number, depth in enumerate([8, 7, 8, 8, 8, 7])
    ]


def test_timing_blocks_are_on_the_clock_of_the_batches(tmp_path, run_of):
    run = run_of(write_feed(tmp_path / "raw"))
    assert sorted({row["t_ns"] for row in rows(run, "op_service")}) == [(ms - ZERO_MS) * MS for ms in stamps_ms(8)]
    assert {(row["source"], row["batches"]) for row in rows(run, "op_service")} == {("log", 1)}
    assert rows(run, "pipeline")[0]["batch_size"] == 3


def test_only_a_generator_is_known_to_be_python(tmp_path, run_of):
    found = rows(run_of(write_feed(tmp_path / "raw")), "pipeline_op")
    assert {row["op_type"]: row["is_python"] for row in found} == {"BatchOp": None, "MapOp": None, "GeneratorOp": True}


def test_a_sink_has_both_sides_of_the_queue_and_steps_of_the_device(tmp_path, run_of):
    run = run_of(write_sink(tmp_path / "raw"))
    fetches = rows(run, "fetch")
    host, device = ([row for row in fetches if row["side"] == side] for side in ("host_queue", "data_queue"))
    first = stamps_ms(8)[0] - (stamps_ms(8)[0] - 34)
    assert (host[0]["start_ns"], host[0]["wait_ns"], host[0]["push_ns"], host[0]["batch_ns"]) == (
        0,
        30 * MS,
        4 * MS,
        34 * MS,
    )
    assert (device[0]["start_ns"], device[0]["wait_ns"], device[1]["depth"], device[0]["step"]) == (
        first * MS,
        5 * MS,
        1,
        0,
    )
    steps = rows(run, "step")
    assert [row["end_ns"] - row["start_ns"] for row in steps] == [
        (later - earlier) * MS for earlier, later in zip(stamps_ms(8), stamps_ms(8)[1:], strict=False)
    ]
    assert "nominal 10 ms" in said(run, "sample_times")


def test_getnext_is_in_ns_and_aicpu_in_us(raw, run_of):
    run = run_of(raw(minddata_getnext_profiling_0__txt=device_lines(unit_per_ms=1_000_000)))
    assert {row["wait_ns"] for row in rows(run, "fetch")} == {5 * MS}


def test_a_gpu_names_its_lines_for_the_operator(raw, run_of):
    lines = device_lines(unit_per_ms=1_000_000).replace("GetNext_dequeue_wait", "GetNextOp")
    run = run_of(raw(minddata_getnext_profiling_0__txt=lines))
    fetches = rows(run, "fetch")
    assert len(fetches) == len(lines.splitlines())
    assert {(row["side"], row["wait_ns"]) for row in fetches} == {("data_queue", 5 * MS)}


def test_of_two_queue_files_the_device_queue_counts(raw, run_of):
    run = run_of(
        raw(device_queue_profiling_0__txt=queue_lines(push=4), dataset_iterator_profiling_0__txt=queue_lines())
    )
    assert {row["side"] for row in rows(run, "fetch")} == {"host_queue"}
    assert "`dataset_iterator_profiling_0.txt` was left out" in said(run, "two_queue_files")
    assert {entry.what for entry in run.manifest.not_measured} >= {"step", "queue", "op"}


def test_without_time_stamps_no_batch_is_placed(raw, run_of):
    run = run_of(
        raw(
            dataset_iterator_profiling_0__txt=queue_lines(stamped=False),
            pipeline_profiling_0__json=pipeline_json(),
            minddata_cpu_utilization_0__json=cpu_json(),
        )
    )
    assert "fetch" not in run.manifest.tables
    why = {entry.what: entry.why for entry in run.manifest.not_measured}
    assert why["fetch"] == why["step"] == "the queue file has no time stamps"
    assert said(run, "fetch_times").startswith("left out 8 batches")


@pytest.mark.parametrize("samples", [5, 7])
def test_sizes_and_times_may_differ_by_one(raw, run_of, samples):
    run = run_of(
        raw(pipeline_profiling_0__json=pipeline_json(graph(6)), minddata_cpu_utilization_0__json=cpu_json(samples))
    )
    assert len(rows(run, "queue")) == 3 * min(6, samples)
    assert "samples" not in codes(run)


def test_sizes_and_times_that_differ_by_more_are_said(raw, run_of):
    run = run_of(raw(pipeline_profiling_0__json=pipeline_json(), minddata_cpu_utilization_0__json=cpu_json(3)))
    assert "6 sizes, 3 times; the surplus was left out" in said(run, "samples")


def test_a_sample_without_a_time_takes_no_other_ones_time(raw, run_of):
    cpu = cpu_json(3, time_stamp=[5, None, 25])
    run = run_of(
        raw(
            pipeline_profiling_0__json=pipeline_json([op(0, "BatchOp", [1, 2, 3])]),
            minddata_cpu_utilization_0__json=cpu,
        )
    )
    assert [(row["t_ns"], row["depth"]) for row in rows(run, "queue")] == [(0, 1), (20 * MS, 3)]


def test_the_table_pairs_with_the_stamps_of_the_cpu_file(raw, run_of):
    run = run_of(raw(minddata_pipeline_raw_0__csv=raw_csv(), minddata_cpu_utilization_0__json=cpu_json(3)))
    assert {row["t_ns"] for row in rows(run, "queue")} == {0, 23 * MS, 46 * MS}
    assert "sample_times" not in codes(run)


def test_the_fill_that_a_raw_table_states_is_kept_beside_the_samples(raw, run_of):
    text = raw_csv().replace('"[4, 4, 4]",4.0,8,0.5', '"[4, 4, 5]",4.8,8,0.6').replace("8,0.25", "8,7")
    run = run_of(raw(minddata_pipeline_raw_0__csv=text))
    stated = {row["op_id"]: row["stated_fill_ratio"] for row in rows(run, "pipeline_op")}
    assert stated == {0: None, 1: None, 2: 1.0, 3: 0.6}
    assert [row["depth"] for row in rows(run, "queue") if row["op_id"] == 3] == [4, 4, 5]
    assert any("operator 1: impossible usage rate" in warning.message for warning in run.manifest.warnings)


def test_a_damaged_file_makes_a_partial_run_that_names_it(tmp_path, run_of):
    source = write_feed(tmp_path / "raw")
    source.joinpath("pipeline_profiling_0.json").write_text('{"op_info": [{"num_workers": 1', encoding="utf-8")
    run = run_of(source)
    assert (run.manifest.state, run.manifest.tables["step"]) == ("partial", 7)
    assert "pipeline_profiling_0.json" in run.manifest.reason
    assert "pipeline_profiling_0.json" in said(run, "damaged_file")
    assert rows(run, "pipeline")[0]["queues"].startswith("not_recorded: ")


def test_nothing_usable_is_refused_and_leaves_nothing(raw, run_of, tmp_path):
    with pytest.raises(SourceError, match=r"pipeline_profiling_0.json"):
        run_of(raw(pipeline_profiling_0__json=""))
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_an_empty_queue_file_is_damage_not_health(tmp_path, run_of):
    source = write_feed(tmp_path / "raw")
    source.joinpath("dataset_iterator_profiling_0.txt").write_text("", encoding="utf-8")
    run = run_of(source)
    assert run.manifest.state == "partial"
    assert "no batch in" in run.manifest.reason


def test_files_are_known_by_content_and_the_others_are_listed(raw, run_of):
    source = raw(
        graph__json=pipeline_json(), times__json=cpu_json(), run__json='{"a": 1}', truth__json='{"op_type": ["MapOp"]}',
        steps__csv="step,t\n0,1\n", stderr=log(),
    )  # fmt: skip
    run = run_of(source)
    assert run.manifest.tables["queue"] == 18
    assert said(run, "left_out") == "files of unknown kinds were left out: run.json, steps.csv, truth.json"
    assert [recognise(source / name) for name in ("graph.json", "stderr", "run.json")] == ["minddata", "minddata", None]


def test_compressed_files_and_sub_folders_are_read(tmp_path, run_of):
    source = write_feed(tmp_path / "raw" / "profiler")
    for path in list(source.iterdir()):
        source.joinpath(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert run_of(source.parent).manifest.tables["step"] == 7
    assert holds_known(source.parent)


def test_ranks_are_told_by_name_and_share_one_zero(tmp_path, run_of):
    write_feed(tmp_path / "raw")
    run = run_of(write_feed(tmp_path / "raw", rank=3))
    assert [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks] == [(0, 77), (3, 80)]
    assert {row["rank"] for row in rows(run, "op_service")} == {0, 3}
    assert len({row["pipeline_key"] for row in rows(run, "pipeline")}) == 1


def test_two_trainings_in_one_folder_are_refused(tmp_path, run_of):
    write_feed(tmp_path / "raw" / "one")
    write_feed(tmp_path / "raw" / "two")
    with pytest.raises(SourceError, match="two files of the same kind for rank 0"):
        run_of(tmp_path / "raw")


def test_blocks_of_another_graph_or_process_are_counted_and_left_out(tmp_path, run_of):
    source = write_feed(tmp_path / "raw")
    other = log(2, pid=99) + log(3).replace("MapOp(ID:1)", "FilterOp(ID:1)")
    source.joinpath("worker_0.log").write_text(log() + other, encoding="utf-8")
    run = run_of(source)
    assert run.manifest.tables["op_service"] == 24
    assert "3 entries were left out: timing block of another dataset graph" in said(run, "bad_value")
    assert "2 timing blocks of process 99 left out" in said(run, "log_processes")


def test_a_log_alone_is_placed_from_the_start_of_the_import(raw, run_of):
    run = run_of(raw(stderr__txt=log(3)))
    given = stamps_ms(3)
    assert sorted({row["t_ns"] for row in rows(run, "op_service")}) == [(ms - given[0]) * MS for ms in given]
    assert "log_clock" in codes(run)
    assert rows(run, "pipeline")[0]["queues"].startswith("not_recorded")


def test_clocks_that_lie_hours_apart_are_said(raw, run_of):
    far = "GetNext_dequeue_wait 154907895304 154907895306 3\nGetNext_dequeue_wait 154907896920 154907896921 1\n"
    run = run_of(raw(device_queue_profiling_0__txt=queue_lines(push=1), minddata_aicpu_0__txt=far))
    assert "43 h" in said(run, "clocks")


def test_an_existing_run_is_replaced_only_by_force(tmp_path, run_of):
    source = write_feed(tmp_path / "raw")
    first = run_of(source)
    with pytest.raises(UsageError, match="exists"):
        run_of(source)
    assert run_of(source, force=True).manifest.run_id != first.manifest.run_id


@pytest.mark.parametrize("target", ["raw", "."])
def test_the_source_is_never_replaced(tmp_path, target):
    source = write_feed(tmp_path / "raw")
    source.joinpath("run.json").write_text(json.dumps({"name": "not ours"}), encoding="utf-8")
    with pytest.raises(UsageError):
        import_path(source, tmp_path / target, force=True)
    assert len(list(source.iterdir())) == 5


def test_force_does_not_replace_a_folder_with_some_other_run_json(tmp_path, run_of):
    tmp_path.joinpath("run").mkdir()
    tmp_path.joinpath("run", "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a pipeprof run"):
        run_of(write_feed(tmp_path / "raw"), force=True)


def test_a_run_inside_the_source_is_not_read_again(tmp_path):
    source = write_feed(tmp_path / "raw")
    import_path(source, source / "run")
    again = import_path(source, source / "again")
    assert codes(again) == {"host_cpu_half"}
    with pytest.raises(UsageError, match="a pipeprof run already"):
        import_path(source / "run", tmp_path / "other")


def test_what_is_no_file_and_links_to_elsewhere_are_named(raw, run_of, tmp_path):
    folder = raw(pipeline_profiling_0__json=pipeline_json(), minddata_cpu_utilization_0__json=cpu_json())
    folder.joinpath("gone.csv").symlink_to(tmp_path / "nowhere.csv")
    folder.joinpath("lost.csv").symlink_to("nothing_here.csv")
    folder.joinpath("rank1").symlink_to(tmp_path, target_is_directory=True)
    folder.joinpath("rank2").mkdir()
    folder.joinpath("latest").symlink_to("rank2", target_is_directory=True)
    os.mkfifo(folder / "log")
    message = said(run_of(folder), "left_out")
    assert "rank1 (it is a link to" in message
    assert "gone.csv (it is a link to" in message
    assert "lost.csv ([Errno 2] No such file" in message
    assert "log (it is a pipe" in message
    assert "latest" not in message


def test_a_run_is_only_gone_when_the_new_one_is_there(raw, run_of, tmp_path, monkeypatch):
    folder = raw(pipeline_profiling_0__json=pipeline_json(), minddata_cpu_utilization_0__json=cpu_json())
    old = run_of(folder).manifest.run_id
    rename = Path.rename

    def refuse(path, target):
        if path.name.endswith(".importing"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UsageError, match="No space left"):
        run_of(folder, force=True)
    assert load(tmp_path / "run").manifest.run_id == old
    monkeypatch.undo()
    assert run_of(folder, force=True).manifest.run_id != old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw", "run"]
