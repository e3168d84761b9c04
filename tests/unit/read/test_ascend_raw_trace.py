"""Raw step traces of the device, of a GPU, and what names their points: the same steps as the parser's CSV."""

import struct

import pytest
from ascend_files import BASE, EPOCH_US, step_trace_text, training_trace, ts_track, write, write_gpu, write_output
from stored_rows import rows, warnings

from pipeprof.errors import SourceError
from pipeprof.read.ascend.out import phase_of
from pipeprof.read.foreign import import_path


def durations(run):
    """Phases of every step in ns, without where the clock begins."""
    steps = rows(run, "step", "step kind start_ns fp_ns bp_ns end_ns data_wait_ns")
    return [(step, kind, end - at, fp - at, bp - fp, end - bp, wait) for step, kind, at, fp, bp, end, wait in steps]


@pytest.fixture
def parsed(tmp_path):
    """The run of the CSV that the parser makes of the same records."""
    path = write(tmp_path / "csv" / "step_trace_raw_0_detail_time.csv", step_trace_text())
    return import_path(path, tmp_path / "parsed")


@pytest.fixture
def raw(tmp_path):
    """`raw({name: data})`: the run of these files."""

    def of(files):
        folder = tmp_path / "raw"
        folder.mkdir()
        for name, data in files.items():
            folder.joinpath(name).write_bytes(data)
        return import_path(folder, tmp_path / "run")

    return of


TRACK, TRAINING = "ts_track.data.0.slice_0", "training_trace.46.dev.tag.0.slice_0"


def record(kind, point):
    return struct.pack("<BBHIQQQHHHH", 1, kind, 40, 0, BASE, 0, 7, 0, 8, point, 0)


@pytest.mark.parametrize(
    ("name", "data", "cut"),
    [
        *(("ts_track.data.0", ts_track(), cut) for cut in (0, 40, 400)),
        ("training_trace.46.dev.tag.0", training_trace(), 100),
    ],
)
def test_records_give_the_steps_of_the_csv_however_they_are_cut_into_slices(parsed, raw, name, data, cut):
    run = raw({f"{name}.slice_2": data[:cut], f"{name}.slice_10": data[cut:]})
    assert rows(run, "step", "step kind start_ns end_ns") == rows(parsed, "step", "step kind start_ns end_ns")
    assert durations(run) == durations(parsed)
    assert run.manifest.reps[0].dur_ns == parsed.manifest.reps[0].dur_ns == 28_000
    assert rows(run, "collective", "step name dur_ns track") == rows(parsed, "collective", "step name dur_ns track")
    assert run.manifest.reps[0].ranks[0].step_evidence == "step trace of the device"


def test_ts_track_records_may_come_out_of_order_and_have_a_torn_end(parsed, raw):
    data = ts_track()
    records = [data[at : at + 40] for at in range(0, len(data), 40)]
    mixed = b"".join(records[1::2] + records[::2]) + b"\x01\x0a torn"
    run = raw({TRACK: mixed})
    assert durations(run) == durations(parsed)
    assert ["7 bytes of a record of 40" in text for text in warnings(run, "ragged")] == [True]


def test_of_several_models_that_with_most_steps_counts_and_this_is_said(parsed, raw):
    files = {TRACK: ts_track(1, model=3) + ts_track(model=7)}
    run = raw(files)
    assert durations(run) == durations(parsed)
    (said,) = warnings(run, "models")
    assert "holds 2 models; the steps are those of model 7" in said


def test_records_without_steps_alone_are_refused_and_beside_other_files_no_damage(raw, tmp_path):
    with pytest.raises(SourceError, match="no step record"):
        raw({TRACK: record(3, 4) * 5})
    for number, data in enumerate((record(3, 4), record(10, 0))):
        folder = write_output(tmp_path / f"{number}_ascend_pt")
        path = folder / "PROF_000001_1_A" / "device_0" / "data" / TRACK
        path.parent.mkdir(parents=True)
        path.write_bytes(data * 5)
        run = import_path(folder, tmp_path / f"run {number}")
        assert (run.manifest.state, run.manifest.tables["step"]) == ("complete", 1)
        assert warnings(run, "no_steps")[0].startswith("no step")


def test_points_are_named_by_the_files_beside_the_records(raw):
    reduced = "Default/grad_reducer/AllReduce-op9"
    names = f"1 Default/A-op1\n2 Gradients/B-op2\n3 {reduced}\n4 {reduced}\n".encode()
    files = {TRAINING: training_trace(), "Framework.host.vm.point.0.slice_0": names}
    run = raw(files)
    points = run.manifest.options["points"]["rank 0"]
    assert (points["fp"], points["bp"]) == ("Default/A-op1", "Gradients/B-op2")
    found = rows(run, "collective", "step name kind track")
    assert found == [(step, "AllReduce-op9", "all_reduce", "stream 5") for step in (0, 2)]


def test_a_step_without_an_end_or_a_forward_point_is_left_out_and_counts(raw):
    records = [training_trace()[at : at + 20] for at in range(0, len(training_trace()), 20)]
    without_end = b"".join(record for index, record in enumerate(records) if index != 5)
    run = raw({TRAINING: without_end})
    assert [(step, total, wait) for step, _, total, wait, *_ in durations(run)] == [(0, 8000, 0), (1, 10_000, 2000)]
    assert warnings(run, "bad_value") == [f"`{TRAINING}`: 1 entry was left out: step without an end"]


def test_the_log_of_the_ai_cpu_begins_at_its_first_execution(raw):
    text = "[x] Node:GetNext, Run tart:154907895189, Run end:154907895707, dispatchTime=132 us, totalTime=888 us.\0"
    run = raw({"DATA_PREPROCESS.dev.AICPU.0.slice_0": text.encode()})
    assert rows(run, "op", "start_ns dur_ns") == [(0, 518_000)]


@pytest.mark.parametrize("by_step", [False, True])
def test_both_step_traces_of_a_gpu_and_its_operators_lie_on_the_wall_clock(tmp_path, by_step):
    run = import_path(write_gpu(tmp_path / "gpu", rank=3, by_step=by_step), tmp_path / "run")
    steps = rows(run, "step", "rank step start_ns fp_ns bp_ns end_ns")
    assert [(rank, step, fp - at, bp - fp, end - bp) for rank, step, at, fp, bp, end in steps] == [
        (3, 0, 0, 500_000, 400_000), (3, 1, 0 if by_step else 100_000, 500_000, 400_000),
    ]  # fmt: skip
    found = rows(run, "collective", "step name kind dur_ns")
    assert found == [(step, "AllReduce-op9", "all_reduce", 100_000) for step in (0, 1)]
    assert rows(run, "op", "step dur_ns track") == [(0, 303_840, "GPU"), (1, 303_840, "GPU")]
    assert rows(run, "op_info", "name type device flops") == [("Default/MatMul-op4", "MatMul", "GPU", 1_750_000)]
    assert run.manifest.reps[0].zero_realtime_ns == EPOCH_US * 1000 + 100_000
    assert run.manifest.options["points"]["rank 3"]["fp"] == "Default/A-op1"
    assert run.manifest.warnings == []


def test_shapes_that_change_are_totals_by_shape(tmp_path):
    run = import_path(write_gpu(tmp_path / "gpu"), tmp_path / "run")
    give = "source name type device shapes count total_ns min_ns"
    assert ("dynamic_shape", "Add-op6", "Add", "GPU", "[32, 1]", 2, 5000, 2500) in rows(run, "op_total", give)
    assert ("gpu_type", None, "MatMul", "GPU", None, 2, 607_680, None) in rows(run, "op_total", give)


def test_a_step_trace_of_a_gpu_with_lines_of_different_lengths_is_refused(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", "a 1,2 3,4\nb 1,2\nc 1,2 3,4\n")
    with pytest.raises(SourceError, match="3 lines of 1, 2 steps"):
        import_path(path, tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "kind", "phase"),
    [
        ("Default/network-Net/embedding-Embedding/Gather-op3", "Gather", "forward"),
        ("Default/network-Net/Scatter-op1", None, "forward"),
        ("Default/CollectiveGather-op0", "CollectiveGather", "communication"),
        ("Default/AllReduce-op12", "AllReduce", "communication"),
        ("hcom_gather__586_0_1", None, "communication"),
        ("Gradients/Default/network-Net/fc-Dense/gradMatMul/MatMul-op1", "MatMul", "backward"),
    ],
)
def test_what_gathers_within_a_device_does_not_communicate(name, kind, phase):
    assert phase_of(name, kind) == phase
