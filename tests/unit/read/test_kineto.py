"""Chrome traces of torch.profiler and its relatives become a run."""

import json

import pytest
from kineto_files import LOADER, imported, memory, op, ops_by_name, rows, step, training, write_trace

from pipeprof.errors import RunError, SourceError
from pipeprof.read.chrome import reader
from pipeprof.read.chrome.reader import KINETO
from pipeprof.read.foreign import import_path
from pipeprof.record.run import Manifest, Run
from pipeprof.report.run_verdict import verdict_of

US = 1000


@pytest.fixture
def read(tmp_path):
    def of(events, name="x.pt.trace.json", **header):
        return imported(tmp_path / "run", write_trace(tmp_path / name, events, **header))

    return of


@pytest.mark.parametrize("form", ["torch", "flat", "list"])
@pytest.mark.parametrize("name", ["x.pt.trace.json", "x.pt.trace.json.gz"])
def test_every_form_of_the_file_gives_the_same_rows(tmp_path, form, name):
    path = write_trace(tmp_path / name, training(), form=form)
    assert KINETO.recognise(path)
    run = imported(tmp_path / "run", path)
    assert run.manifest.state == "complete"
    assert [row["source_step"] for row in rows(run, "step")] == [0, 1, 2, 3, 4, 5]
    assert {name: len(found) for name, found in ops_by_name(run).items()} == {
        "ProfilerStep*": 6,
        LOADER: 6,
        "aten::conv2d": 6,
    }


@pytest.mark.parametrize("length", [(1 << 16) - 110, 1 << 16, 1 << 20])
def test_a_trace_with_a_long_header_is_one(tmp_path, length):
    groups = {"rank": 3, "pg_config": "x" * length}
    path = write_trace(tmp_path / "x.pt.trace.json.gz", training(), form="flat", distributedInfo=groups)
    assert KINETO.recognise(path)
    assert {row["rank"] for row in rows(imported(tmp_path / "run", path), "step")} == {3}
    path.write_bytes(b'{"schemaVersion": 1, "other": "' + b"x" * length + b'"}')
    assert not KINETO.recognise(path)


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "{", "[1, 2]", '{"traceEvents": []}', '[{"ph": "X", "name": "Mul"}]', "schemaVersion", "\x00\x01"],
)
def test_other_files_are_not_recognised(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    assert not KINETO.recognise(path)


def test_times_are_exact(read):
    events = [
        op("a", "4329721189672.359", "0.001"),
        op("b", "4329721189673.36", 2),
        op("c", "4329721189680", "1.5e1"),
    ]
    run = read(events, baseTimeNanoseconds=1790857026000000000)
    zero = run.manifest.reps[0].zero_realtime_ns
    assert zero == 1790857026000000000 + 4329721189672359
    found = {name: (row["start_ns"], row["dur_ns"]) for name, (row,) in ops_by_name(run).items()}
    assert found == {"a": (0, 1), "b": (1001, 2000), "c": (7641, 15000)}


def test_microseconds_since_the_epoch_with_a_fraction_keep_their_digits(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1,'
        ' "ts": 1713456789012345.678, "dur": 0.125}]}'
    )
    run = imported(tmp_path / "run", path)
    assert run.manifest.reps[0].zero_realtime_ns == 1713456789012345678
    assert rows(run, "op")[0]["dur_ns"] == 125


def test_own_time_is_without_direct_callees(read):
    found = ops_by_name(
        read([op("a", 0, 100), op("b", 10, 50), op("c", 20, 10), op("d", 70, 10), op("e", 0, 7, tid=2)])
    )
    own = {name: row["self_ns"] // US for name, (row,) in found.items()}
    assert own == {"a": 40, "b": 40, "c": 10, "d": 10, "e": 7}
    assert found["c"][0]["parent_id"] == found["b"][0]["exec_id"]
    assert found["a"][0]["parent_id"] is None


def test_an_event_that_overlaps_another_partly_is_no_callee_and_is_counted(read):
    run = read([op("a", 0, 100), op("b", 50, 100), op("c", 60, 10), op("d", 150, 5)])
    assert ["1 events overlap" in warning.message for warning in run.manifest.warnings] == [True]
    found = ops_by_name(run)
    own = {name: row["self_ns"] // US for name, (row,) in found.items()}
    assert own == {"a": 100, "b": 90, "c": 10, "d": 5}


def test_the_only_callee_of_the_same_name_is_folded(read):
    events = [op("a", 0, 100), op("a", 10, 50), op("a", 20, 20), op("b", 25, 5), op("b", 31, 4)]
    found = ops_by_name(read(events))
    assert [(row["dur_ns"] // US, row["self_ns"] // US) for row in found["a"]] == [(100, 91)]
    assert {row["parent_id"] for row in found["b"]} == {found["a"][0]["exec_id"]}


def test_one_of_two_callees_of_the_same_name_is_not_folded(read):
    found = ops_by_name(read([op("a", 0, 100), op("a", 10, 50), op("b", 70, 5)]))
    assert [(row["dur_ns"] // US, row["self_ns"] // US) for row in found["a"]] == [(100, 45), (50, 50)]


def test_the_order_in_the_file_does_not_matter(tmp_path):
    events = [op(f"n{number % 7}", number * 3 % 1000, 1 + number % 40, tid=number % 3) for number in range(900)]
    orders = events, events[::-1], sorted(events, key=lambda event: event["name"])
    sums = []
    for number, order in enumerate(orders):
        run = imported(tmp_path / f"run{number}", write_trace(tmp_path / f"{number}.json", order))
        sums.append({name: sum(row["dur_ns"] for row in found) for name, found in ops_by_name(run).items()})
        assert sum(len(found) for found in ops_by_name(run).values()) <= 900
    assert sums[0] == sums[1] == sums[2]


def test_memory_goes_to_what_was_open(read):
    events = [
        op("a", 0, 100), memory(5, 64, 1, total=64), op("b", 10, 50), memory(20, 32, 2, total=96),
        memory(30, -64, 1, total=32), memory(200, 8, 3, total=40),
    ]  # fmt: skip
    run = read(events, profile_memory=1)
    found = {name: (row["memory_bytes"], row["self_memory_bytes"]) for name, (row,) in ops_by_name(run).items()}
    assert found == {"a": (32, 64), "b": (-32, -32), "[memory]": (8, 8)}
    names = {info["op_id"]: info["name"] for info in rows(run, "op_info")}
    blocks = {row["address"]: row for row in rows(run, "allocation")}
    assert {address: names.get(row["op_id"]) for address, row in blocks.items()} == {1: "a", 2: "b", 3: None}
    assert (blocks[1]["produced_ns"], blocks[1]["released_ns"]) == (5 * US, 30 * US)
    assert (blocks[2]["bytes"], blocks[2]["released_ns"]) == (32, None)
    assert [row["allocated_bytes"] for row in rows(run, "memory")] == [64, 96, 32, 40]


def test_blocks_shared_with_loader_workers_have_no_total(read):
    events = [
        memory(1, 100, 1, total=100), memory(2, 64, 2), memory(3, -64, 2), memory(4, 1, 3, total=101),
        memory(5, -101, 4, total=0), memory(6, 7, 5, device=1, total=0), memory(7, 8, 6, device=1, total=8),
    ]  # fmt: skip
    run = read(events, profile_memory=1)
    found = [(row["device"], row["allocated_bytes"]) for row in rows(run, "memory")]
    assert found == [("CPU", 100), ("CPU", 101), ("CPU", 0), ("CUDA:-1", 8)]
    assert sorted((row["bytes"], row["device"]) for row in rows(run, "allocation")) == [
        (1, "CPU"), (7, "CUDA:-1"), (8, "CUDA:-1"), (64, "CPU"), (100, "CPU"), (101, "CPU"),
    ]  # fmt: skip


def test_without_memory_events_nothing_is_known_about_memory(read):
    run = read([op("a", 0, 1)])
    assert rows(run, "op")[0]["memory_bytes"] is None
    assert "memory" in {item.what for item in run.manifest.not_measured}


def kernel(name, ts, dur, link, correlation, cat="kernel", **args):
    return op(
        name, ts, dur, cat=cat, pid=0, tid=7, **{"External id": link, "correlation": correlation, "stream": 7, **args}
    )


@pytest.mark.parametrize("linked", [True, False])
def test_device_work_belongs_to_the_operator_that_launched_it(read, linked):
    events = [
        op("aten::linear", 0, 100, **{"External id": 1}),
        op("aten::mm", 10, 50, **{"External id": 2}),
        op("cudaLaunchKernel", 20, 5, cat="cuda_runtime", **{"External id": 2, "correlation": 901}),
        kernel("gemm", 300, 40, 2 if linked else 901, 901),
        kernel("Memcpy HtoD", 350, 6, 1 if linked else 902, 902, cat="gpu_memcpy", bytes=4096),
        op("cudaMemcpyAsync", 70, 5, cat="cuda_runtime", **{"External id": 1, "correlation": 902}),
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
    ]
    found = {name: row for name, (row,) in ops_by_name(read(events)).items()}
    time = {name: (row["device_self_ns"] // US, row["device_total_ns"] // US) for name, row in found.items()}
    assert time == {"aten::linear": (6, 46), "aten::mm": (40, 40), "gemm": (40, 40), "Memcpy HtoD": (6, 6)}
    assert found["gemm"]["parent_id"] == found["aten::mm"]["exec_id"]
    assert found["gemm"]["wait_ns"] == 280 * US
    assert {name: row["side"] for name, row in found.items()} == {
        "aten::linear": "host", "aten::mm": "host", "gemm": "device", "Memcpy HtoD": "device",
    }  # fmt: skip
    assert found["gemm"]["device"] == "GPU"
    assert found["gemm"]["phase"] == "forward"


def test_collectives_have_kind_group_and_bytes(read):
    args = {"In msg nelems": 100, "dtype": "Float", "Process Group Name": "default_pg", "Group size": 8}
    run = read([op("aten::mm", 0, 9), kernel("ncclDevKernel_AllReduce_Sum_f32", 20, 4, 5, 6, **args)])
    (found,) = rows(run, "collective")
    assert (found["kind"], found["group_name"], found["bytes"], found["dur_ns"]) == (
        "all_reduce",
        "default_pg",
        400,
        4 * US,
    )
    assert "1 device events without the call" in " ".join(warning.message for warning in run.manifest.warnings)


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_a_data_loader_is_known_by_its_name(read, cat):
    run = read(training(steps=3, wait_us=70, cat=cat))
    assert [row["data_wait_ns"] for row in rows(run, "step")] == [70 * US] * 3
    assert [(row["step"], row["wait_ns"]) for row in rows(run, "fetch")] == [(0, 70 * US), (1, 70 * US), (2, 70 * US)]


def test_a_wait_in_two_categories_counts_once(read):
    run = read([*training(2, 70), op(LOADER, 16, 60, cat="cpu_op")])
    assert [row["data_wait_ns"] for row in rows(run, "step")] == [70 * US] * 2


def test_a_step_on_the_device_is_no_second_step(read):
    events = [*training(steps=2), op("ProfilerStep#0", 500, 10, cat="gpu_user_annotation", pid=0, tid=7)]
    run = read(events)
    assert len(rows(run, "step")) == 2
    assert [row["category"] for row in rows(run, "span")] == ["gpu_user_annotation"]


def test_operators_know_their_step(read):
    found = ops_by_name(read([*training(steps=2), op("late", 99_000, 1)]))
    assert [row["step"] for row in found["aten::conv2d"]] == [0, 1]
    assert found["late"][0]["step"] is None


def test_backward_work_has_the_source_of_its_forward_operator(read):
    seq = {"Sequence number": 5}
    events = [
        op("aten::mm", 0, 10, **seq, **{"Fwd thread id": 0, "Call stack": "linear.py(1): forward;train.py(9): main;"}),
        op("autograd::engine::evaluate_function: MmBackward0", 100, 50, tid=2, **seq, **{"Fwd thread id": 1}),
        op("MmBackward0", 110, 30, tid=2, **seq, **{"Fwd thread id": 1}),
        op("aten::t", 115, 5, tid=2),
    ]
    run = read(events)
    frames = {row["stack_id"]: row["frame"] for row in rows(run, "stack")}
    found = {name: frames.get(row["stack_id"]) for name, (row,) in ops_by_name(run).items()}
    assert found == {
        "aten::mm": "linear.py(1): forward",
        "autograd::engine::evaluate_function: MmBackward0": None,
        "MmBackward0": "linear.py(1): forward",
        "aten::t": "linear.py(1): forward",
    }
    assert {row["phase"] for row in rows(run, "op_info")} == {"forward", "backward"}


def test_counters_flows_and_unknown_categories_are_kept(read):
    events = [
        op("a", 0, 1),
        op("mystery", 5, 2, cat="brand_new"),
        {"ph": "C", "name": "HBM", "pid": 3, "tid": 0, "ts": "7.5", "args": {"Read": 1.5, "Write": 2, "unit": "MB"}},
        {"ph": "s", "id": 2**60 + 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 0.5},
        {"ph": "f", "id": "0x1f", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 0.75, "bp": "e"},
        {"ph": "b", "id": 1, "cat": "async", "name": "z", "pid": 1, "tid": 1, "ts": 1},
    ]
    run = read(events)
    assert [(row["series"], row["value"], row["t_ns"]) for row in rows(run, "counter")] == [
        ("Read", 1.5, 7500),
        ("Write", 2.0, 7500),
    ]
    assert [(row["flow_id"], row["side"]) for row in rows(run, "flow")] == [(str(2**60 + 1), "start"), ("0x1f", "end")]
    assert [(row["category"], row["name"]) for row in rows(run, "span")] == [("brand_new", "mystery")]
    assert any("1 with a begin and no end" in warning.message for warning in run.manifest.warnings)


def test_rows_of_an_npu_are_told_by_their_process(read):
    def meta(pid, name):
        return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}

    def row(name, pid, ts):
        return {"ph": "X", "name": name, "pid": pid, "tid": 2, "ts": f"{ts}.250", "dur": 4.5, "args": {}}

    events = [
        op("aten::mm", "1.5", 2, **{"Input Dims": "4,4;\r\n4,4"}),
        row("MatMul", 10, 5), row("hcom_allReduce_", 11, 6), row("Computing", 12, 5), row("AscendCL@launch", 13, 2),
        meta(1, "Python"), meta(10, "Ascend Hardware"), meta(11, "HCCL"), meta(12, "Overlap Analysis"), meta(13, "CANN"),
    ]  # fmt: skip
    run = read(events, form="list")
    found = {name: (row["side"], row["device"], row["phase"]) for name, (row,) in ops_by_name(run).items()}
    assert found["MatMul"] == ("device", "NPU", "other")
    assert found["hcom_allReduce_"] == ("device", "NPU", "communication")
    assert {row["category"]: row["name"] for row in rows(run, "span")} == {
        "Overlap Analysis": "Computing",
        "CANN": "AscendCL@launch",
    }
    assert [row["kind"] for row in rows(run, "collective")] == ["all_reduce"]
    assert ops_by_name(run)["MatMul"][0]["parent_id"] is None
    assert ops_by_name(run)["aten::mm"][0]["in_shapes"] == "4,4;\r\n4,4"


def test_ranks_come_from_the_traces(tmp_path):
    paths = [
        write_trace(tmp_path / f"{rank}.json", training(2), distributedInfo={"rank": rank, "world_size": 2})
        for rank in (1, 0)
    ]
    run = imported(tmp_path / "run", *paths)
    assert sorted({row["rank"] for row in rows(run, "step")}) == [0, 1]
    assert [entry.rank for entry in run.manifest.reps[0].ranks] == [0, 1]


@pytest.mark.parametrize("damage", [b'"\xff"', b"NaN", b"-inf"])
def test_a_header_with_what_is_no_json_still_says_rank_and_base(tmp_path, damage):
    path = write_trace(tmp_path / "a.json", training(2), baseTimeNanoseconds=7, distributedInfo={"rank": 3}, host="@")
    path.write_bytes(path.read_bytes().replace(b'"@"', damage))
    rep = imported(tmp_path / "run", path).manifest.reps[0]
    assert ([rank.rank for rank in rep.ranks], rep.zero_realtime_ns % 1000) == ([3], 7)


def test_two_traces_of_one_time_and_rank_are_refused(tmp_path):
    paths = [write_trace(tmp_path / name, training(2)) for name in ("a.json", "b.json")]
    with pytest.raises(SourceError, match="overlap in time"):
        imported(tmp_path / "run", *paths)


def test_a_cut_off_file_is_a_partial_run(tmp_path):
    path = write_trace(tmp_path / "x.json", training())
    path.write_bytes(path.read_bytes()[:-700])
    run = imported(tmp_path / "run", path)
    assert run.manifest.state == "partial"
    assert "x.json" in run.manifest.reason
    assert "at byte" in run.manifest.reason
    assert len(rows(run, "op")) >= 14


@pytest.mark.parametrize(
    "bad",
    ['{"ph": "X", "name": ', '{"ph": "X", "name": "\\x"}', "nonsense", '{"ph": 3}', '{"ph": "X", "name": {"a": 1}}'],
)
def test_a_damaged_event_does_not_take_the_others_with_it(tmp_path, bad):
    path = tmp_path / "x.json"
    good = [json.dumps(event) for event in training(3)]
    path.write_text('{"schemaVersion": 1, "traceEvents": [' + ",\n".join([*good[:4], bad, *good[4:]]) + "]}")
    run = imported(tmp_path / "run", path)
    assert run.manifest.state == "partial"
    assert len(rows(run, "op")) >= 8


def test_numbers_that_json_does_not_have_become_null(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "gpu_memcpy", "name": "copy", "pid": 0, "tid": 7, "ts": 1,'
        ' "dur": 2, "args": {"bytes": 8, "memory bandwidth (GB/s)": inf}}, {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1,'
        ' "tid": 1, "ts": NaN, "dur": 2}, {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 4, "dur": 2}]}'
    )
    run = imported(tmp_path / "run", path)
    assert set(ops_by_name(run)) == {"copy", "b"}
    assert any("no time or no duration" in warning.message for warning in run.manifest.warnings)


def test_negative_durations_are_left_out_and_counted(read):
    run = read([op("a", 0, 1), op("b", 5, -3)])
    assert set(ops_by_name(run)) == {"a"}
    assert any("1 with negative duration" in warning.message for warning in run.manifest.warnings)


def test_a_file_without_any_time_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no event has a time"):
        imported(tmp_path / "run", write_trace(tmp_path / "x.json", [{"ph": "M", "name": "process_name", "pid": 1}]))


def test_filtered_utilities_are_spans(read):
    run = read([op("a", 0, 10), op("aten::is_leaf", 2, 1)])
    assert ops_by_name(run)["a"][0]["self_ns"] == 10 * US
    assert [row["name"] for row in rows(run, "span")] == ["aten::is_leaf"]


def test_many_batches_are_one_trace(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeprof.read.chrome.container.CHUNK", 700)
    monkeypatch.setattr("pipeprof.read.chrome.container._WINDOW", 200)
    monkeypatch.setattr("pipeprof.read.chrome.tree.FLUSH", 5)
    whole = imported(tmp_path / "small", write_trace(tmp_path / "a.json", training(40), baseTimeNanoseconds=5))
    monkeypatch.undo()
    once = imported(tmp_path / "large", write_trace(tmp_path / "b.json", training(40), baseTimeNanoseconds=5))
    for table in once.manifest.tables:
        assert sorted(map(str, rows(whole, table))) == sorted(map(str, rows(once, table))), table
    assert whole.manifest.state == "complete"


def test_events_that_begin_with_an_unknown_key_are_cut_into_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeprof.read.chrome.container.CHUNK", 500)
    monkeypatch.setattr("pipeprof.read.chrome.container.LARGEST_EVENT", 1500)
    events = [{"zzz": 1, **event} for event in training(20)]
    run = imported(tmp_path / "run", write_trace(tmp_path / "a.json", events))
    assert run.manifest.state == "complete"
    assert len(rows(run, "step")) == 20


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    path = write_trace(tmp_path / "a.json", training(2))
    monkeypatch.setattr("pathlib.Path.mkdir", full)
    with pytest.raises(RunError, match="No space left on device"):
        reader.add_files([path], Run(tmp_path, Manifest(run_id="x", started_at="", pipeprof_version="0")), print)


def test_an_event_with_nested_objects_is_read_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeprof.read.chrome.container.CHUNK", 300)
    nested = op("a", 0, 5, list=[{"ph": "X", "name": "inner"}] * 30, text='},{"ph": "X"')
    run = imported(
        tmp_path / "run", write_trace(tmp_path / "a.json", [nested, op("b", 9, 1), step(3, 0, 20)], form="flat")
    )
    assert set(ops_by_name(run)) >= {"b", "ProfilerStep*"}
    assert "inner" not in ops_by_name(run)


def test_shapes_are_those_of_the_profilers_own_table(read):
    dims = [[[2, 3], []], [[[3], [3]], [], [4]], "4,4;\r\n4", [["x"]], None]
    run = read([op("aten::cat", 10 * at, 1, **{"Input Dims": value}) for at, value in enumerate(dims)])
    found = [row["in_shapes"] for row in ops_by_name(run)["aten::cat"]]
    assert found[:3] == ["[[2, 3], []]", "[[], [], [4]]", "4,4;\r\n4"]


@pytest.mark.parametrize("steps", [300, 3000])  # the smaller one is shorter than what is read at a time
def test_a_packed_trace_that_is_cut_off_is_known_and_read_up_to_the_cut(tmp_path, steps):
    path = write_trace(tmp_path / "cut.pt.trace.json.gz", training(steps))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert "is damaged: the file ends too early" in run.manifest.reason
    assert steps / 3 < run.manifest.tables["step"] < steps


@pytest.mark.parametrize(
    ("header", "args", "torch"),
    [
        ({}, {}, "2.11 or earlier, or a relative"),
        ({"host_name": "node"}, {}, "2.12 or 2.13"),
        ({"host_name": "node"}, {"CallFrom": "x.py:1"}, "2.14 or later"),
        ({}, {"CallFrom": "x.py:1"}, "2.14 or later"),
    ],
)
def test_a_trace_with_python_functions_tells_its_torch_by_its_form(read, header, args, torch):
    events = [op("x.py(1): f", 1, 9, cat="python_function", **args), op("aten::mm", 2, 5)]
    assert read(events, **header).manifest.options == {"torch": torch}


def test_a_trace_without_python_functions_need_not_tell(read):
    assert "torch" not in read(training(), host_name="node").manifest.options


def test_where_no_operator_has_its_stack_the_functions_around_it_are_its_stack(read):
    events = [
        op("train.py(9): main", 0, 100, cat="python_function"), op("net.py(3): forward", 5, 60, cat="python_function"),
        op("<built-in method relu at 0x7f>", 6, 40, cat="python_function"),
        op("aten::relu", 10, 20, **{"External id": 7, "Sequence number": 3}), op("aten::add", 70, 5),
        op("ReluBackward0", 80, 9, tid=2, **{"Fwd thread id": 1, "Sequence number": 3}),
        op("relu_kernel", 30, 9, cat="kernel", tid=9, **{"External id": 7, "correlation": 70}),
    ]  # fmt: skip
    run = read(events)
    frames = {row["stack_id"]: row for row in rows(run, "stack")}
    found = {name: ops[0]["stack_id"] for name, ops in ops_by_name(run).items()}
    assert frames[found["aten::relu"]]["frame"] == "net.py(3): forward"
    assert frames[frames[found["aten::relu"]]["parent_id"]]["frame"] == "train.py(9): main"
    assert frames[found["aten::add"]]["frame"] == "train.py(9): main"
    assert found["relu_kernel"] == found["ReluBackward0"] == found["aten::relu"]
    assert found["net.py(3): forward"] is None


def test_what_a_loader_calls_makes_batches_and_none_of_it_is_forward(read):
    """In the training's thread, in a thread that has the name of one of torch's, and in its own frames."""
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "thread 3 (pt_data_pin)"}}
    events = [
        *training(1), op("aten::stack", 20, 50), op("aten::pin_memory", 20, 50, tid=3), name,
        op("torch/utils/data/_utils/pin_memory.py(18): _pin_memory_loop", 5, 900, tid=4, cat="python_function"),
        op("aten::copy_", 20, 50, tid=4), op("aten::relu", 20, 50, tid=5),
    ]  # fmt: skip
    phases = {name: ops[0]["phase"] for name, ops in ops_by_name(read(events)).items()}
    assert {phases[f"aten::{loads}"] for loads in ("stack", "pin_memory", "copy_")} == {"data"}
    assert {phases[f"aten::{works}"] for works in ("conv2d", "relu")} == {"forward"}


@pytest.mark.parametrize(("loader", "expected"), [("_MultiProcessing", {"made_ahead": True}), ("_SingleProcess", {})])
def test_whether_worker_processes_make_batches_ahead_is_noted(read, loader, expected):
    events = json.loads(json.dumps(training()).replace("_MultiProcessing", loader))
    assert read(events).manifest.options == expected


def test_what_lies_between_steps_is_told_and_where_it_costs_most_it_leads(read):
    """Steps 16 ms long and 19 ms apart; between two whose numbers do not follow each other the profiler was off."""
    starts = [0, 19_000, 38_000, 900_000, 919_000]
    run = read([step(number, start, 16_000) for number, start in zip((0, 1, 2, 7, 8), starts, strict=True)])
    parts = {row["part"]: (row["count"], row["dur_ns"]) for row in rows(run, "run_part")}
    assert parts == {"training": (5, 80_000_000), "between_steps": (3, 9_000_000)}
    lead = verdict_of(run).verdict.lead
    assert (lead.code, lead.detail, lead.share) == ("part", "between_steps", pytest.approx(9 / 89))


def test_steps_that_follow_each_other_without_a_gap_have_nothing_between_them(read):
    assert rows(read([step(number, number * 16_000, 16_000) for number in range(4)]), "run_part") == []


@pytest.mark.parametrize(("host", "numbers", "at"), [([], [1, 2], [0, 1]), ([step(0, 0, 500)], [0], [0, 0])])
def test_where_the_host_has_no_steps_those_of_the_device_are_steps(read, host, numbers, at):
    marks = [op(f"ProfilerStep#{n}", 100 * n, 80, cat="gpu_user_annotation", tid=7) for n in (1, 2)]
    work = [op("kernel", 100 * n + 5, 60, cat="kernel", tid=7, correlation=n) for n in (1, 2)]
    run = read([*host, *marks, *work])
    assert [row["source_step"] for row in rows(run, "step")] == numbers
    assert [row["step"] for row in ops_by_name(run)["kernel"]] == at


def test_a_kernel_has_the_occupancy_that_the_profiler_estimates(tmp_path):
    said = {"whole": 100, "part": "31", "none": None, "odd": 900}
    work = [
        op(
            name,
            100 * n + 5,
            60,
            cat="kernel",
            tid=7,
            **({} if value is None else {"est. achieved occupancy %": value}),
        )
        for n, (name, value) in enumerate(said.items(), 1)
    ]
    run = imported(tmp_path / "run", write_trace(tmp_path / "t.json", [step(1, 0, 999), *work]))
    found = {
        name: [row["occupancy_ratio"] for row in rows_] for name, rows_ in ops_by_name(run).items() if name in said
    }
    assert found == {"whole": [1.0], "part": [0.31], "none": [None], "odd": [None]}
