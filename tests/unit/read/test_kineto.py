"""Chrome traces of torch.profiler and its relatives become a run."""

import json

import pytest
from kineto_files import LOADER, imported, memory, op, ops_by_name, rows, step, training, write_trace
from stored_rows import rows as columns

from pipeprof.errors import RunError, SourceError
from pipeprof.read.chrome import reader
from pipeprof.read.chrome.reader import KINETO
from pipeprof.read.foreign import import_path
from pipeprof.record.run import Manifest, Run
from pipeprof.report.run_verdict import verdict_of

US = 1000


def each(run, *names):
    """{operator: its columns}, for operators that ran once."""
    found = {name: tuple(row[column] for column in names) for name, (row,) in ops_by_name(run).items()}
    return found if len(names) > 1 else {name: value for name, (value,) in found.items()}


def all_of(run, name, *names):
    return [tuple(row[column] for column in names) for row in ops_by_name(run)[name]]


def shown(run, asked):
    """Rows of a table: `step start_ns`, also `sorted`; of operators by name: `ops self_ns`; of one: `all a self_ns`."""
    kind, _, more = asked.partition(" ")
    if kind == "options":
        return run.manifest.options
    if kind == "ops":
        return each(run, *more.split())
    if kind == "all":
        return all_of(run, *more.split())
    return sorted(columns(run, *more.split(" ", 1))) if kind == "sorted" else columns(run, kind, more)


def said(run):
    return " ".join(warning.message for warning in run.manifest.warnings)


def frames_of(run):
    """{operator: the frame that it was called in}."""
    frames = dict(columns(run, "stack", "stack_id frame"))
    return {name: frames.get(stack) for name, stack in each(run, "stack_id").items()}


@pytest.mark.parametrize("form", ["torch", "flat", "list"])
@pytest.mark.parametrize("name", ["x.pt.trace.json", "x.pt.trace.json.gz"])
def test_every_form_of_the_file_gives_the_same_rows(tmp_path, form, name):
    path = write_trace(tmp_path / name, training(), form=form)
    assert KINETO.recognise(path)
    run = imported(tmp_path / "run", path)
    assert run.manifest.state == "complete"
    assert columns(run, "step", "source_step") == [(number,) for number in range(6)]
    assert {name: len(found) for name, found in ops_by_name(run).items()} == dict.fromkeys(
        ("ProfilerStep*", LOADER, "aten::conv2d"), 6
    )


@pytest.mark.parametrize("length", [(1 << 16) - 110, 1 << 16, 1 << 20])
def test_a_trace_with_a_long_header_is_one(tmp_path, length):
    groups = {"rank": 3, "pg_config": "x" * length}
    path = write_trace(tmp_path / "x.pt.trace.json.gz", training(), form="flat", distributedInfo=groups)
    assert KINETO.recognise(path)
    assert set(columns(imported(tmp_path / "run", path), "step", "rank")) == {(3,)}
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


@pytest.mark.parametrize(
    ("times", "base", "zero", "expected"),
    [
        ([("4329721189672.359", "0.001"), ("4329721189673.36", 2), ("4329721189680", "1.5e1")], 1790857026000000000,
         1790857026000000000 + 4329721189672359, [(0, 1), (1001, 2000), (7641, 15000)]),
        ([("@1713456789012345.678", "@0.125")], 0, 1713456789012345678, [(0, 125)]),  # numbers, since the epoch
    ],
)  # fmt: skip
def test_times_keep_every_digit(tmp_path, times, base, zero, expected):
    events = [op(f"{number}", start, dur) for number, (start, dur) in enumerate(times)]
    path = write_trace(tmp_path / "x.json", events, **({"baseTimeNanoseconds": base} if base else {}))
    path.write_text(
        path.read_text().replace('"@1713456789012345.678"', "1713456789012345.678").replace('"@0.125"', "0.125")
    )
    run = imported(tmp_path / "run", path)
    assert run.manifest.reps[0].zero_realtime_ns == zero
    assert list(each(run, "start_ns", "dur_ns").values()) == expected


def test_own_time_is_without_direct_callees(read):
    run = read([op("a", 0, 100), op("b", 10, 50), op("c", 20, 10), op("d", 70, 10), op("e", 0, 7, tid=2)])
    assert each(run, "self_ns") == {"a": 40_000, "b": 40_000, "c": 10_000, "d": 10_000, "e": 7_000}
    called, by = each(run, "exec_id"), each(run, "parent_id")
    assert (by["c"], by["a"]) == (called["b"], None)


def test_only_the_single_callee_of_the_same_name_is_folded(read, tmp_path):
    run = read([op("a", 0, 100), op("a", 10, 50), op("a", 20, 20), op("b", 25, 5), op("b", 31, 4)])
    assert all_of(run, "a", "dur_ns", "self_ns") == [(100_000, 91_000)]
    assert all_of(run, "b", "parent_id") == all_of(run, "a", "exec_id") * 2
    path = write_trace(tmp_path / "two.json", [op("a", 0, 100), op("a", 10, 50), op("b", 70, 5)])
    run = imported(tmp_path / "other", path)
    assert all_of(run, "a", "dur_ns", "self_ns") == [(100_000, 45_000), (50_000, 50_000)]


def test_the_order_in_the_file_does_not_matter(tmp_path):
    events = [op(f"n{number % 7}", number * 3 % 1000, 1 + number % 40, tid=number % 3) for number in range(900)]
    orders = events, events[::-1], sorted(events, key=lambda event: event["name"])
    sums = []
    for number, order in enumerate(orders):
        found = ops_by_name(imported(tmp_path / f"run{number}", write_trace(tmp_path / f"{number}.json", order)))
        sums.append({name: sum(row["dur_ns"] for row in rows_) for name, rows_ in found.items()})
        assert sum(map(len, found.values())) <= 900
    assert sums[0] == sums[1] == sums[2]


def test_memory_goes_to_what_was_open(read):
    events = [
        op("a", 0, 100), memory(5, 64, 1, total=64), op("b", 10, 50), memory(20, 32, 2, total=96),
        memory(30, -64, 1, total=32), memory(200, 8, 3, total=40),
    ]  # fmt: skip
    run = read(events, profile_memory=1)
    assert each(run, "memory_bytes", "self_memory_bytes") == {"a": (32, 64), "b": (-32, -32), "[memory]": (8, 8)}
    names = dict(columns(run, "op_info", "op_id name"))
    blocks = {row["address"]: row for row in rows(run, "allocation")}
    assert {address: names.get(row["op_id"]) for address, row in blocks.items()} == {1: "a", 2: "b", 3: None}
    assert (blocks[1]["produced_ns"], blocks[1]["released_ns"]) == (5 * US, 30 * US)
    assert (blocks[2]["bytes"], blocks[2]["released_ns"]) == (32, None)
    assert columns(run, "memory", "allocated_bytes") == [(64,), (96,), (32,), (40,)]


def kernel(name, ts, dur, link, correlation, cat="kernel", **args):
    ids = {"External id": link, "correlation": correlation, "stream": 7}
    return op(name, ts, dur, cat=cat, pid=0, tid=7, **ids, **args)


@pytest.mark.parametrize("linked", [True, False])
def test_device_work_belongs_to_the_operator_that_launched_it(read, linked):
    run = read([
        op("aten::linear", 0, 100, **{"External id": 1}),
        op("aten::mm", 10, 50, **{"External id": 2}),
        op("cudaLaunchKernel", 20, 5, cat="cuda_runtime", **{"External id": 2, "correlation": 901}),
        kernel("gemm", 300, 40, 2 if linked else 901, 901),
        kernel("Memcpy HtoD", 350, 6, 1 if linked else 902, 902, cat="gpu_memcpy", bytes=4096),
        op("cudaMemcpyAsync", 70, 5, cat="cuda_runtime", **{"External id": 1, "correlation": 902}),
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
    ])  # fmt: skip
    assert each(run, "side", "device_self_ns", "device_total_ns") == {
        "aten::linear": ("host", 6_000, 46_000), "aten::mm": ("host", 40_000, 40_000),
        "gemm": ("device", 40_000, 40_000), "Memcpy HtoD": ("device", 6_000, 6_000),
    }  # fmt: skip
    caller = each(run, "exec_id")["aten::mm"]
    assert each(run, "parent_id", "wait_ns", "device", "phase")["gemm"] == (caller, 280 * US, "GPU", "forward")


def test_backward_work_has_the_source_of_its_forward_operator(read):
    seq, engine = {"Sequence number": 5}, "autograd::engine::evaluate_function: MmBackward0"
    run = read([
        op("aten::mm", 0, 10, **seq, **{"Fwd thread id": 0, "Call stack": "linear.py(1): forward;train.py(9): main;"}),
        op(engine, 100, 50, tid=2, **seq, **{"Fwd thread id": 1}),
        op("MmBackward0", 110, 30, tid=2, **seq, **{"Fwd thread id": 1}),
        op("aten::t", 115, 5, tid=2),
    ])  # fmt: skip
    line = "linear.py(1): forward"
    assert frames_of(run) == {"aten::mm": line, engine: None, "MmBackward0": line, "aten::t": line}
    assert set(columns(run, "op_info", "phase")) == {("forward",), ("backward",)}


def test_ranks_come_from_the_traces(tmp_path):
    info = {rank: {"rank": rank, "world_size": 2} for rank in (1, 0)}
    paths = [write_trace(tmp_path / f"{rank}.json", training(2), distributedInfo=said) for rank, said in info.items()]
    run = imported(tmp_path / "run", *paths)
    assert set(columns(run, "step", "rank")) == {(0,), (1,)}
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


def test_numbers_that_json_does_not_have_become_null_and_negative_durations_are_left_out(tmp_path):
    copy = op("copy", 1, 2, cat="gpu_memcpy", pid=0, tid=7, **{"bytes": 8, "memory bandwidth (GB/s)": "@inf"})
    path = write_trace(tmp_path / "x.json", [copy, op("a", "@nan", 2), op("b", 4, 2), op("c", 5, -3)])
    path.write_text(path.read_text().replace('"@inf"', "inf").replace('"@nan"', "NaN"))
    run = imported(tmp_path / "run", path)
    assert set(ops_by_name(run)) == {"copy", "b"}
    assert "1 with no time or no duration" in said(run)
    assert "1 with negative duration" in said(run)


def test_a_file_without_any_time_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no event has a time"):
        imported(tmp_path / "run", write_trace(tmp_path / "x.json", [{"ph": "M", "name": "process_name", "pid": 1}]))


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


def test_events_that_begin_with_an_unknown_key_or_hold_others_are_cut_into_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeprof.read.chrome.container.CHUNK", 500)
    monkeypatch.setattr("pipeprof.read.chrome.container.LARGEST_EVENT", 1500)
    run = imported(tmp_path / "run", write_trace(tmp_path / "a.json", [{"zzz": 1, **event} for event in training(20)]))
    assert (run.manifest.state, len(rows(run, "step"))) == ("complete", 20)
    monkeypatch.undo()
    monkeypatch.setattr("pipeprof.read.chrome.container.CHUNK", 300)
    nested = op("a", 0, 5, list=[{"ph": "X", "name": "inner"}] * 30, text='},{"ph": "X"')
    path = write_trace(tmp_path / "b.json", [nested, op("b", 9, 1), step(3, 0, 20)], form="flat")
    found = set(ops_by_name(imported(tmp_path / "nested", path)))
    assert found >= {"b", "ProfilerStep*"}
    assert "inner" not in found


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    path = write_trace(tmp_path / "a.json", training(2))
    monkeypatch.setattr("pathlib.Path.mkdir", full)
    with pytest.raises(RunError, match="No space left on device"):
        reader.add_files([path], Run(tmp_path, Manifest(run_id="x", started_at="", pipeprof_version="0")), print)


@pytest.mark.parametrize("steps", [300, 3000])  # the smaller one is shorter than what is read at a time
def test_a_packed_trace_that_is_cut_off_is_known_and_read_up_to_the_cut(tmp_path, steps):
    path = write_trace(tmp_path / "cut.pt.trace.json.gz", training(steps))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    run = import_path(path, tmp_path / "run")
    assert run.manifest.state == "partial"
    assert "is damaged: the file ends too early" in run.manifest.reason
    assert steps / 3 < run.manifest.tables["step"] < steps


NODE, CALLED = {"host_name": "node"}, {"CallFrom": "x.py:1"}


@pytest.mark.parametrize(
    ("header", "args", "torch"),
    [({}, {}, "2.11 or earlier, or a relative"), (NODE, {}, "2.12 or 2.13"), (NODE, CALLED, "2.14 or later"),
     ({}, CALLED, "2.14 or later")],
)  # fmt: skip
def test_a_trace_with_python_functions_tells_its_torch_by_its_form(read, header, args, torch):
    events = [op("x.py(1): f", 1, 9, cat="python_function", **args), op("aten::mm", 2, 5)]
    assert read(events, **header).manifest.options == {"torch": torch}


def test_a_trace_without_python_functions_need_not_tell(read):
    assert "torch" not in read(training(), **NODE).manifest.options


def test_where_no_operator_has_its_stack_the_functions_around_it_are_its_stack(read):
    run = read([
        op("train.py(9): main", 0, 100, cat="python_function"), op("net.py(3): forward", 5, 60, cat="python_function"),
        op("<built-in method relu at 0x7f>", 6, 40, cat="python_function"),
        op("aten::relu", 10, 20, **{"External id": 7, "Sequence number": 3}), op("aten::add", 70, 5),
        op("ReluBackward0", 80, 9, tid=2, **{"Fwd thread id": 1, "Sequence number": 3}),
        op("relu_kernel", 30, 9, cat="kernel", tid=9, **{"External id": 7, "correlation": 70}),
    ])  # fmt: skip
    frames = {row["stack_id"]: row for row in rows(run, "stack")}
    found = each(run, "stack_id")
    assert frames_of(run)["aten::relu"] == "net.py(3): forward"
    assert frames[frames[found["aten::relu"]]["parent_id"]]["frame"] == "train.py(9): main"
    assert frames_of(run)["aten::add"] == "train.py(9): main"
    assert found["relu_kernel"] == found["ReluBackward0"] == found["aten::relu"]
    assert found["net.py(3): forward"] is None


def test_what_a_loader_calls_makes_batches_and_none_of_it_is_forward(read):
    """In the training's thread, in a thread that has the name of one of torch's, and in its own frames."""
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "thread 3 (pt_data_pin)"}}
    phases = each(read([
        *training(1), op("aten::stack", 20, 50), op("aten::pin_memory", 20, 50, tid=3), name,
        op("torch/utils/data/_utils/pin_memory.py(18): _pin_memory_loop", 5, 900, tid=4, cat="python_function"),
        op("aten::copy_", 20, 50, tid=4), op("aten::relu", 20, 50, tid=5),
    ]), "phase")  # fmt: skip
    assert {phases[f"aten::{loads}"] for loads in ("stack", "pin_memory", "copy_")} == {"data"}
    assert {phases[f"aten::{works}"] for works in ("conv2d", "relu")} == {"forward"}


def test_what_lies_between_steps_is_told_and_where_it_costs_most_it_leads(read):
    """Steps 16 ms long and 19 ms apart; between two whose numbers do not follow each other the profiler was off."""
    starts = {0: 0, 1: 19_000, 2: 38_000, 7: 900_000, 8: 919_000}
    run = read([step(number, start, 16_000) for number, start in starts.items()])
    assert sorted(columns(run, "run_part", "part count dur_ns")) == [
        ("between_steps", 3, 9_000_000), ("training", 5, 80_000_000),
    ]  # fmt: skip
    lead = verdict_of(run).verdict.lead
    assert (lead.code, lead.detail, lead.share) == ("part", "between_steps", pytest.approx(9 / 89))


NCCL = {"In msg nelems": 100, "dtype": "Float", "Process Group Name": "default_pg", "Group size": 8}
DIMS = [[[2, 3], []], [[[3], [3]], [], [4]], "4,4;\r\n4", [["x"]], None]
OCCUPANCY = "est. achieved occupancy %"
NPU = {1: "Python", 10: "Ascend Hardware", 11: "HCCL", 12: "Overlap Analysis", 13: "CANN"}
MARKS = [op(f"ProfilerStep#{n}", 100 * n, 80, cat="gpu_user_annotation", tid=7) for n in (1, 2)]
MARKS += [op("kernel", 100 * n + 5, 60, cat="kernel", tid=7, correlation=n) for n in (1, 2)]


def of_npu(name, pid, ts):
    return {"ph": "X", "name": name, "pid": pid, "tid": 2, "ts": f"{ts}.250", "dur": 4.5, "args": {}}


@pytest.mark.parametrize(
    ("events", "header", "expected", "warned"),
    [
        # an event that overlaps another partly is no callee; a filtered utility is a span
        ([op("a", 0, 100), op("b", 50, 100), op("c", 60, 10), op("d", 150, 5)], {},
         {"ops self_ns": {"a": 100 * US, "b": 90 * US, "c": 10 * US, "d": 5 * US}}, ["1 events overlap"]),
        ([op("a", 0, 10), op("aten::is_leaf", 2, 1)], {},
         {"ops self_ns": {"a": 10 * US}, "span name": [("aten::is_leaf",)]}, []),
        # blocks shared with workers of a loader have no total
        ([memory(1, 100, 1, total=100), memory(2, 64, 2), memory(3, -64, 2), memory(4, 1, 3, total=101),
          memory(5, -101, 4, total=0), memory(6, 7, 5, device=1, total=0), memory(7, 8, 6, device=1, total=8)],
         {"profile_memory": 1},
         {"memory device allocated_bytes": [("CPU", 100), ("CPU", 101), ("CPU", 0), ("CUDA:-1", 8)],
          "sorted allocation bytes device":
              [(1, "CPU"), (7, "CUDA:-1"), (8, "CUDA:-1"), (64, "CPU"), (100, "CPU"), (101, "CPU")]}, []),
        # collectives have kind, group and bytes
        ([op("aten::mm", 0, 9), kernel("ncclDevKernel_AllReduce_Sum_f32", 20, 4, 5, 6, **NCCL)], {},
         {"collective kind group_name bytes dur_ns": [("all_reduce", "default_pg", 400, 4 * US)]},
         ["1 device events without the call"]),
        # a data loader is known by its name; a wait in two categories counts once; workers may make batches ahead
        *((training(3, 70, cat=cat), {}, {"step data_wait_ns": [(70 * US,)] * 3, "options": {"made_ahead": True},
                                          "fetch step wait_ns": [(0, 70 * US), (1, 70 * US), (2, 70 * US)]}, [])
          for cat in ("cpu_op", "user_annotation")),
        ([*training(2, 70), op(LOADER, 16, 60, cat="cpu_op")], {}, {"step data_wait_ns": [(70 * US,)] * 2}, []),
        (json.loads(json.dumps(training()).replace("_MultiProcessing", "_SingleProcess")), {}, {"options": {}}, []),
        # a step on the device is no second step, unless the host has none; operators know theirs
        ([*training(2), op("ProfilerStep#0", 500, 10, cat="gpu_user_annotation", pid=0, tid=7), op("late", 99_000, 1)],
         {},
         {"step source_step": [(0,), (1,)], "span category": [("gpu_user_annotation",)],
          "all aten::conv2d step": [(0,), (1,)], "all late step": [(None,)]}, []),
        (MARKS, {}, {"step source_step": [(1,), (2,)], "all kernel step": [(0,), (1,)]}, []),
        ([step(0, 0, 500), *MARKS], {}, {"step source_step": [(0,)], "all kernel step": [(0,), (0,)]}, []),
        # steps that follow each other have nothing between them
        ([step(number, number * 16_000, 16_000) for number in range(4)], {}, {"run_part part": []}, []),
        # counters, flows and unknown categories are kept
        ([op("a", 0, 1), op("mystery", 5, 2, cat="brand_new"),
          {"ph": "C", "name": "HBM", "pid": 3, "tid": 0, "ts": "7.5", "args": {"Read": 1.5, "Write": 2, "unit": "MB"}},
          {"ph": "s", "id": 2**60 + 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 0.5},
          {"ph": "f", "id": "0x1f", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 0.75, "bp": "e"},
          {"ph": "b", "id": 1, "cat": "async", "name": "z", "pid": 1, "tid": 1, "ts": 1}], {},
         {"counter series value t_ns": [("Read", 1.5, 7500), ("Write", 2.0, 7500)],
          "flow flow_id side": [(str(2**60 + 1), "start"), ("0x1f", "end")],
          "span category name": [("brand_new", "mystery")]},
         ["1 with a begin and no end"]),
        # rows of an NPU are told by their process
        ([op("aten::mm", "1.5", 2, **{"Input Dims": "4,4;\r\n4,4"}), of_npu("MatMul", 10, 5),
          of_npu("hcom_allReduce_", 11, 6), of_npu("Computing", 12, 5), of_npu("AscendCL@launch", 13, 2),
          *({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": n}} for pid, n in NPU.items())],
         {"form": "list"},
         {"all MatMul side device phase parent_id": [("device", "NPU", "other", None)],
          "all hcom_allReduce_ side device phase": [("device", "NPU", "communication")],
          "all aten::mm in_shapes": [("4,4;\r\n4,4",)], "collective kind": [("all_reduce",)],
          "sorted span category name": [("CANN", "AscendCL@launch"), ("Overlap Analysis", "Computing")]}, []),
        # shapes are those of the profiler's own table
        ([op("aten::cat", 10 * at, 1, **{"Input Dims": value}) for at, value in enumerate(DIMS)], {},
         {"all aten::cat in_shapes": [("[[2, 3], []]",), ("[[], [], [4]]",), ("4,4;\r\n4",), ('[["x"]]',), ("null",)]}, []),
        # a kernel has the occupancy that the profiler estimates
        ([op("whole", 5, 9, cat="kernel", tid=7, **{OCCUPANCY: 100}),
          op("part", 15, 9, cat="kernel", tid=7, **{OCCUPANCY: "31"}), op("none", 25, 9, cat="kernel", tid=7), op("odd", 35, 9, cat="kernel", tid=7, **{OCCUPANCY: 900})], {},
         {"ops occupancy_ratio": {"whole": 1.0, "part": 0.31, "none": None, "odd": None}}, []),
    ],
)  # fmt: skip
def test_a_trace_becomes_these_rows(read, events, header, expected, warned):
    run = read(events, **header)
    assert {asked: shown(run, asked) for asked in expected} == expected
    for text in warned:
        assert text in said(run)
