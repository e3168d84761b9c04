"""JSON of rocprofv3: kernels, copies, calls of HIP, ranges of roctx; several agents."""

import json

import pytest
from rocprof_files import document, kernel, written
from stored_rows import rows

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path, recognise
from pipeprof.report.run_verdict import verdict_of


@pytest.mark.parametrize("name", ["7_results.json", "7_results.json.gz"])
def test_records_become_operators_of_host_and_devices_with_what_launched_them(tmp_path, name):
    path = written(tmp_path / name, document())
    assert recognise(path) == "rocprof"
    run = import_path(path, tmp_path / "run", step="train step ([0-9]+)")
    assert (run.manifest.state, run.manifest.reps[0].ranks[0].host) == ("complete", "here")
    infos = {row[0]: row[1:] for row in rows(run, "op_info", "op_id", "name", "phase", "category")}
    ops = rows(run, "op", "op_id", "side", "track", "start_ns", "dur_ns", "exec_id", "parent_id", "wait_ns", "step")
    launches = {row[5]: infos[row[0]][0] for row in ops if row[1] == "host"}
    device = [(infos[row[0]][0], *row[2:5], launches.get(row[6]), *row[7:]) for row in ops if row[1] == "device"]
    assert sorted(device, key=lambda row: (row[2], row[0])) == [
        (name, f"{track} / queue 1", at + 1_000, 3_000, "hipLaunchKernel", wait, step)
        if name != "Memcpy HOST_TO_DEVICE"
        else (name, f"{track} / copies", at + 5_000, 1_000, None, None, step)
        for step, at in enumerate((0, 10_000))
        for name, track, wait in (
            ("gemm<4>(int)", "GPU 0", 900), ("ncclDevKernel_Generic_1", "GPU 1", 700), ("Memcpy HOST_TO_DEVICE", "GPU 0", 0),
        )
    ]  # fmt: skip
    assert dict(rows(run, "op_info", "name", "phase"))["ncclDevKernel_Generic_1"] == "communication"
    assert rows(run, "step", "source_step start_ns end_ns") == [(0, 0, 8_000), (1, 10_000, 18_000)]
    assert verdict_of(run).verdict.lead.detail == "between_steps"


@pytest.mark.parametrize(
    "content",
    [
        b'{"rocprofiler-sdk-tool": [', b'{"rocprofiler-sdk-tool": [7]}', b'{"rocprofiler-sdk-tool": [{"buffer_records": 3}]}',
        b'{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"kind": "x"}, 1]}}]}',
        b'{"rocprofiler-sdk-tool": [{"metadata": [], "agents": {"a": 1}}]}',
    ],
)  # fmt: skip
def test_bad_input_is_one_error_that_names_the_file(tmp_path, content):
    path = written(tmp_path / "bad.json", content)
    with pytest.raises(SourceError) as raised:
        import_path(path, tmp_path / "run")
    assert "bad.json" in raised.value.message
    assert "\n" not in raised.value.message


def test_what_was_read_before_the_damage_is_kept(tmp_path):
    whole = json.dumps(document()).encode()
    at = whole.index(b'"memory_copy"')
    run = import_path(written(tmp_path / "cut.json", whole[:at]), tmp_path / "run")
    assert run.manifest.state == "partial"
    assert len(rows(run, "op", "op_id")) == 8


def test_records_of_another_form_are_left_out_and_counted(tmp_path):
    content = document()
    records = content["rocprofiler-sdk-tool"][0]["buffer_records"]
    records["kernel_dispatch"] += [{"start_timestamp": "soon"}, kernel(2**70, 2**71, 1), kernel(900, 800, 1)]
    del records["kernel_dispatch"][0]["dispatch_info"]
    run = import_path(written(tmp_path / "odd.json", content), tmp_path / "run")
    assert run.manifest.state == "partial"
    names = dict(rows(run, "op_info", "op_id", "name"))
    assert sum(names[row[0]].startswith(("gemm", "nccl")) for row in rows(run, "op", "op_id")) == 3
