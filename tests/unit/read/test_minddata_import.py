"""A folder that MindSpore's dataset profiling left, read into a run."""

import gzip
import json
import os
from itertools import pairwise
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
)  # fmt: skip
from stored_rows import rows, warnings

from pipeprof.errors import SourceError, UsageError
from pipeprof.read.foreign import holds_known, import_path, recognise
from pipeprof.record.run import load

ZERO_MS = START_MS  # the first sample; the first request is 30 ms before the first stamp, at START_MS + 30
GIVEN = [ms - ZERO_MS for ms in stamps_ms(8)]
NAMES = {
    "pipeline": "pipeline_profiling_0.json", "cpu": "minddata_cpu_utilization_0.json",
    "table": "minddata_pipeline_raw_0.csv", "iterator": "dataset_iterator_profiling_0.txt", "queue": "device_queue_profiling_0.txt",
    "getnext": "minddata_getnext_profiling_0.txt", "aicpu": "minddata_aicpu_0.txt", "log": "stderr.txt",
}  # fmt: skip


@pytest.fixture
def raw(tmp_path):
    """`raw(kind=text, ...)` is a folder with these files; other names are taken as they are."""

    def write(**texts):
        folder = tmp_path / "raw"
        folder.mkdir(exist_ok=True)
        for kind, text in texts.items():
            folder.joinpath(NAMES.get(kind, kind)).write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def run_of(tmp_path):
    return lambda source, **options: import_path(source, tmp_path / "run", **options)


@pytest.fixture
def feed(tmp_path):
    """A whole folder."""
    return write_feed(tmp_path / "raw")


def codes(run):
    return {warning.code for warning in run.manifest.warnings}


def said(run, code):
    return warnings(run, code)[0]


def missing(run):
    return {entry.what: entry.why for entry in run.manifest.not_measured}


def test_a_whole_folder_is_a_complete_run(feed, run_of):
    run = run_of(feed)
    stored = load(run.path).manifest
    assert (stored.state, stored.source, stored.reason) == ("complete", "import:minddata", None)
    assert stored.tables == {
        "pipeline": 1, "pipeline_op": 3, "pipeline_edge": 2, "queue": 18, "cpu": 18 + 5 + 5, "memory": 12, "op_service": 24,
        "step": 7, "fetch": 8,
    }  # fmt: skip
    assert set(missing(run)) == {"op"}
    assert [(rank.rank, rank.pid, rank.zero_monotonic_ns) for rank in stored.reps[0].ranks] == [(0, 77, ZERO_MS * MS)]
    assert codes(run) == {"host_cpu_half"}
    # a step goes from one request to the next
    kinds = ["warmup"] + ["train"] * 6
    assert rows(run, "step", "start_ns end_ns fp_ns kind fetch_wait_ns data_wait_ns fp_source") == [
        ((ms - 30) * MS, (after - 30) * MS, ms * MS, kind, 30 * MS, 30 * MS, "fetch")
        for ms, after, kind in zip(GIVEN, GIVEN[1:], kinds, strict=False)
    ]
    assert rows(run, "fetch", "step") == [*((number,) for number in range(7)), (None,)]
    # a sample has its own time, and timing blocks are on the clock of the batches
    depths = enumerate([8, 7, 8, 8, 8, 7])
    assert [row[1:] for row in rows(run, "queue", "op_id t_ns depth capacity") if row[0] == 2] == [
        (23 * number * MS, depth, 8) for number, depth in depths
    ]
    services = set(rows(run, "op_service", "t_ns source batches"))
    assert sorted(services) == [(ms * MS, "log", 1) for ms in GIVEN]
    assert rows(run, "pipeline", "batch_size")[0] == (3,)
    # only a generator is known to be Python
    assert dict(rows(run, "pipeline_op", "op_type is_python")) == {"BatchOp": None, "MapOp": None, "GeneratorOp": True}


STAMPED = '"[4, 4, 5]",4.8,8,0.6'
FAR = "GetNext_dequeue_wait 154907895304 154907895306 3\nGetNext_dequeue_wait 154907896920 154907896921 1\n"
GETNEXT = device_lines(unit_per_ms=1_000_000)
SIX, STATED = pipeline_json(graph(6)), raw_csv().replace('"[4, 4, 4]",4.0,8,0.5', STAMPED).replace("8,0.25", "8,7")


@pytest.mark.parametrize(
    ("files", "expected", "warned"),
    [
        # a request that rounding puts before the last batch is moved to it
        ({"iterator": "0 0 1 9 10\n0 0 2 2 11\n0 0 3 1 13\n"},
         {"step start_ns fp_ns end_ns": [(0, 9 * MS, 9 * MS), (9 * MS, 10 * MS, 11 * MS)]}, {}),
        # batches that are missing or in conflict give no step
        ({"iterator": "0 0 5 1 10\n0 0 6 1 20\n0 0 8 1 40\n0 0 9 1 5\n0 0 10 1 60\n"},
         {"step start_ns step": [(5 * MS, 0), (0, 1)], "fetch fetch": [(4,), (5,), (7,), (8,), (9,)]},
         {"steps": "2 batches without a step: "}),
        # getnext is in ns, and a GPU names its lines for the operator
        ({"getnext": GETNEXT}, {"fetch side wait_ns": [("data_queue", 5 * MS)] * 8}, {}),
        ({"getnext": GETNEXT.replace("GetNext_dequeue_wait", "GetNextOp")},
         {"fetch side wait_ns": [("data_queue", 5 * MS)] * 8}, {}),
        # of two queue files the device queue counts
        ({"queue": queue_lines(push=4), "iterator": queue_lines()}, {"fetch side": [("host_queue",)] * 8},
         {"two_queue_files": "`dataset_iterator_profiling_0.txt` was left out"}),
        # sizes and times may differ by one, and more is said
        *(({"pipeline": SIX, "cpu": cpu_json(samples)}, {"queue rank": [(0,)] * 3 * kept}, {"samples": said})
          for samples, kept, said in ((5, 5, None), (7, 6, None), (3, 3, "6 sizes, 3 times; the surplus"))),
        # a sample without a time takes no other one's time
        ({"pipeline": pipeline_json([op(0, "BatchOp", [1, 2, 3])]), "cpu": cpu_json(3, time_stamp=[5, None, 25])},
         {"queue t_ns depth": [(0, 1), (20 * MS, 3)]}, {}),
        # the table pairs with the stamps of the CPU file, and the fill that it states is kept beside the samples
        ({"table": raw_csv(), "cpu": cpu_json(3)}, {"queue t_ns": [(23 * n * MS,) for n in (0, 1, 2)] * 3},
         {"sample_times": None}),
        ({"table": STATED}, {"pipeline_op op_id stated_fill_ratio": [(0, None), (1, None), (2, 1.0), (3, 0.6)],
                             "queue depth": [(depth,) for depth in (1, 2, 3, 8, 8, 8, 4, 4, 5)]},
         {"bad_value": "operator 1: impossible usage rate"}),
        # clocks that lie hours apart are said
        ({"queue": queue_lines(push=1), "aicpu": FAR}, {}, {"clocks": "43 h"}),
    ],
)  # fmt: skip
def test_files_become_these_rows(raw, run_of, files, expected, warned):
    run = run_of(raw(**files))
    assert {asked: rows(run, *asked.split(" ", 1)) for asked in expected} == expected
    for code, text in warned.items():
        found = warnings(run, code)
        assert text in found[0] if text else found == []


def test_a_sink_has_both_sides_of_the_queue_and_steps_of_the_device(tmp_path, run_of):
    run = run_of(write_sink(tmp_path / "raw"))
    fetches = rows(run, "fetch", "side start_ns wait_ns push_ns batch_ns")
    host, device = ([row[1:] for row in fetches if row[0] == side] for side in ("host_queue", "data_queue"))
    assert host[0] == (0, 30 * MS, 4 * MS, 34 * MS)
    assert device[0][:2] == (34 * MS, 5 * MS)
    assert [row[1:] for row in rows(run, "fetch", "side depth step") if row[0] == "data_queue"][:2] == [(0, 0), (1, 1)]
    assert [end - start for start, end in rows(run, "step", "start_ns end_ns")] == [
        (after - before) * MS for before, after in pairwise(GIVEN)
    ]
    assert "nominal 10 ms" in said(run, "sample_times")


def test_of_two_queue_files_alone_nothing_else_is_measured(raw, run_of):
    assert set(missing(run_of(raw(queue=queue_lines(push=4), iterator=queue_lines())))) >= {"step", "queue", "op"}


def test_without_time_stamps_no_batch_is_placed(raw, run_of):
    run = run_of(raw(iterator=queue_lines(stamped=False), pipeline=pipeline_json(), cpu=cpu_json()))
    assert "fetch" not in run.manifest.tables
    assert missing(run)["fetch"] == missing(run)["step"] == "the queue file has no time stamps"
    assert said(run, "fetch_times").startswith("left out 8 batches")


def test_a_damaged_file_makes_a_partial_run_that_names_it(feed, run_of):
    feed.joinpath(NAMES["pipeline"]).write_text('{"op_info": [{"num_workers": 1', encoding="utf-8")
    run = run_of(feed)
    assert (run.manifest.state, run.manifest.tables["step"]) == ("partial", 7)
    assert NAMES["pipeline"] in run.manifest.reason
    assert NAMES["pipeline"] in said(run, "damaged_file")
    assert rows(run, "pipeline", "queues")[0][0].startswith("not_recorded: ")


def test_nothing_usable_is_refused_and_leaves_nothing(raw, run_of, tmp_path):
    with pytest.raises(SourceError, match=NAMES["pipeline"]):
        run_of(raw(pipeline=""))
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_an_empty_queue_file_is_damage_not_health(feed, run_of):
    feed.joinpath(NAMES["iterator"]).write_text("", encoding="utf-8")
    run = run_of(feed)
    assert run.manifest.state == "partial"
    assert "no batch in" in run.manifest.reason


def test_files_are_known_by_content_and_the_others_are_listed(raw, run_of):
    others = {"run.json": '{"a": 1}', "truth.json": '{"op_type": ["MapOp"]}', "steps.csv": "step,t\n0,1\n"}
    source = raw(**{"graph.json": pipeline_json(), "times.json": cpu_json(), "stderr": log()}, **others)
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


def test_ranks_are_told_by_name_and_share_one_zero(feed, run_of):
    run = run_of(write_feed(feed, rank=3))
    assert [(rank.rank, rank.pid) for rank in run.manifest.reps[0].ranks] == [(0, 77), (3, 80)]
    assert set(rows(run, "op_service", "rank")) == {(0,), (3,)}
    assert len(set(rows(run, "pipeline", "pipeline_key"))) == 1


def test_two_trainings_in_one_folder_are_refused(tmp_path, run_of):
    for name in ("one", "two"):
        write_feed(tmp_path / "raw" / name)
    with pytest.raises(SourceError, match="two files of the same kind for rank 0"):
        run_of(tmp_path / "raw")


def test_blocks_of_another_graph_or_process_are_counted_and_left_out(feed, run_of):
    other = log(2, pid=99) + log(3).replace("MapOp(ID:1)", "FilterOp(ID:1)")
    feed.joinpath("worker_0.log").write_text(log() + other, encoding="utf-8")
    run = run_of(feed)
    assert run.manifest.tables["op_service"] == 24
    assert "3 entries were left out: timing block of another" in said(run, "bad_value")
    assert "2 timing blocks of process 99" in said(run, "log_processes")


def test_a_log_alone_is_placed_from_the_start_of_the_import(raw, run_of):
    run = run_of(raw(log=log(3)))
    assert sorted(set(rows(run, "op_service", "t_ns"))) == [((ms - GIVEN[0]) * MS,) for ms in GIVEN[:3]]
    assert "log_clock" in codes(run)
    assert rows(run, "pipeline", "queues")[0][0].startswith("not_recorded")


@pytest.mark.parametrize("target", ["raw", "."])
def test_the_source_is_never_replaced(tmp_path, feed, target):
    feed.joinpath("run.json").write_text(json.dumps({"name": "not ours"}), encoding="utf-8")
    with pytest.raises(UsageError):
        import_path(feed, tmp_path / target, force=True)
    assert len(list(feed.iterdir())) == 5


def test_force_does_not_replace_a_folder_with_some_other_run_json(tmp_path, feed, run_of):
    tmp_path.joinpath("run").mkdir()
    tmp_path.joinpath("run", "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a pipeprof run"):
        run_of(feed, force=True)


def test_a_run_inside_the_source_is_not_read_again(tmp_path, feed):
    import_path(feed, feed / "run")
    assert codes(import_path(feed, feed / "again")) == {"host_cpu_half"}
    with pytest.raises(UsageError, match="a pipeprof run already"):
        import_path(feed / "run", tmp_path / "other")


def test_what_is_no_file_and_links_to_elsewhere_are_named(raw, run_of, tmp_path):
    folder = raw(pipeline=pipeline_json(), cpu=cpu_json())
    folder.joinpath("gone.csv").symlink_to(tmp_path / "nowhere.csv")
    folder.joinpath("lost.csv").symlink_to("nothing_here.csv")
    folder.joinpath("rank1").symlink_to(tmp_path, target_is_directory=True)
    folder.joinpath("rank2").mkdir()
    folder.joinpath("latest").symlink_to("rank2", target_is_directory=True)
    os.mkfifo(folder / "log")
    message = said(run_of(folder), "left_out")
    for named in (
        "rank1 (it is a link to",
        "gone.csv (it is a link to",
        "lost.csv ([Errno 2] No such file",
        "log (it is a pipe",
    ):
        assert named in message
    assert "latest" not in message


def test_a_run_is_replaced_only_by_force_and_gone_when_the_new_one_is_there(raw, run_of, tmp_path, monkeypatch):
    folder = raw(pipeline=pipeline_json(), cpu=cpu_json())
    old = run_of(folder).manifest.run_id
    with pytest.raises(UsageError, match="exists"):
        run_of(folder)
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
