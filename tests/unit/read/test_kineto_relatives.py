"""Traces of Kineto's relatives and of its first versions: what ties device work to operators, and what is a call."""

import pytest
from kineto_files import op
from stored_rows import rows

from pipeprof.read.chrome.reader import KINETO
from pipeprof.report.ops.answer import answer
from pipeprof.report.ops.question import Question
from tests.unit.read.test_kineto import each, frames_of

US = 1000


def process(pid, name):
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def flow(side, category, number, pid, tid, ts):
    return {"ph": side, "bp": "e", "name": "x", "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": category}


def work(name, ts, dur, pid=10, tid=2):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {"Stream Id": tid}}


PROCESSES = [process(1, "Python"), process(10, "Ascend Hardware"), process(11, "HCCL"), process(13, "CANN")]


def npu():
    """An operator that launches a kernel of 5 us, and an operator in it that launches two of 7 and 2 us."""
    at = "1736408883000{:03d}.250".format
    events = [op("aten::linear", at(0), 30), op("aten::addmm", at(10), 12)]
    for number, (begin, queued, start, dur) in enumerate([(0, 3, 40, 5), (10, 13, 50, 7), (10, 15, 60, 2)]):
        big = str(2**61 + number) if number % 2 else 2**61 + number
        events += [
            work(f"kernel{number}", at(start), dur),
            flow("s", "async_npu", big, 1, 1, at(begin)),
            flow("f", "async_npu", big, 10, 2, at(start)),
            flow("s", "HostToDevice", str(number), 13, 5, at(queued)),
            flow("f", "HostToDevice", str(number), 10, 2, at(start)),
        ]
    events.append(work("alone", at(90), 1))
    return events


@pytest.mark.parametrize("order", [1, -1])
def test_flows_tie_the_work_of_an_npu_to_its_operators(read, order):
    run = read([*npu(), *PROCESSES][::order], form="list")
    assert each(run, "device_self_ns", "device_total_ns", "wait_ns") == {
        "aten::linear": (5_000, 14_000, None), "aten::addmm": (9_000, 9_000, None), "alone": (1_000, 1_000, None),
        "kernel0": (5_000, 5_000, 37_000), "kernel1": (7_000, 7_000, 37_000), "kernel2": (2_000, 2_000, 45_000),
    }  # fmt: skip
    called, by = each(run, "exec_id"), each(run, "parent_id")
    assert [by[name] for name in ("kernel0", "kernel1", "kernel2", "alone")] == [
        called["aten::linear"], called["aten::addmm"], called["aten::addmm"], None,
    ]  # fmt: skip
    assert not run.manifest.warnings


def test_work_on_another_stream_at_the_same_time_is_not_tied(read):
    run = read([*npu(), *PROCESSES, work("other", "1736408883000050.250", 3, tid=3)], form="list")
    assert each(run, "parent_id")["other"] is None
    assert each(run, "device_self_ns")["aten::addmm"] == 9 * US


def test_a_collective_is_one_operator_and_its_parts_are_spans(read):
    events = [
        op("HcclAllreduce", "1.5", 4), work("hcom_allReduce__586_0_1", "10.5", 20, pid=11, tid=0),
        flow("s", "async_npu", 7, 1, 1, "1.5"), flow("f", "async_npu", 7, 11, 0, "10.5"),
        *(work(name, f"{11 + at}.5", 1, pid=11, tid=1) for at, name in enumerate(
            ["Notify_Wait", "Notify Record", "Memcpy", "Reduce_Inline", "RDMASend"]
        )),
    ]  # fmt: skip
    run = read([*events, *PROCESSES], form="list")
    assert each(run, "device_total_ns") == {"HcclAllreduce": 20 * US, "hcom_allReduce__586_0_1": 20 * US}
    assert (len(rows(run, "collective", "step")), len(rows(run, "span", "name"))) == (1, 5)


def dipu():
    """A convolution of torch_dipu: its launcher is a call of the runtime, and allocates the result."""

    def one(name, ts, dur, link, cat="cpu_op", **more):
        return op(name, ts, dur, cat=cat, **{"External id": link}, **more)

    name, device = "convolution_overrideable", {"cat": "kernel", "pid": 0, "tid": 7}
    return [
        one("aten::conv2d", 0, 100, 1), one(f"aten::{name}", 5, 90, 2),
        one(f"LaunchKernel_dipu_{name}", 10, 80, 2, "cuda_runtime", correlation=11), one("aten::empty", 20, 30, 3),
        one("dipuMalloc", 22, 5, 3, "cuda_runtime", correlation=12),
        one(f"dipu_{name}", 200, 45, 2, correlation=11, **device),
        one("wrapper_DIPU_empty_memory_format", 150, 18, 3, correlation=12, **device),
    ]  # fmt: skip


def test_launchers_of_torch_dipu_are_calls(read):
    """As in the tables of its guide: the launcher has what it calls, the operator has the kernel."""
    run = read(dipu())
    found = each(run, "side", "self_ns", "dur_ns", "device_self_ns", "device_total_ns")
    assert {name: tuple(time // US for time in times) for name, (side, *times) in found.items() if side == "host"} == {
        "aten::conv2d": (10, 100, 0, 63), "aten::convolution_overrideable": (10, 90, 45, 63),
        "LaunchKernel_dipu_convolution_overrideable": (50, 80, 0, 18), "aten::empty": (30, 30, 18, 18),
    }  # fmt: skip
    assert rows(run, "span", "name") == [("dipuMalloc",)]


def test_shares_of_kernels_within_kernels_are_of_what_operators_launched(read):
    inner = op("diopiConvolution2d", 201, 38, cat="kernel", pid=0, tid=7, correlation=99)
    run = read([*dipu(), inner])
    content = answer(run, Question(group_by="name", top=0))
    shares = {row["name"]: row["device_share"] for row in content.parts[0].rows}
    assert shares["aten::convolution_overrideable"] == shares["dipu_convolution_overrideable"] == 45 / 63
    assert shares["diopiConvolution2d"] == 38 / 63
    assert content.total["device_self_ns"] == 63 * US


def test_kernels_have_the_source_location_of_what_launched_them(read):
    events = dipu()
    events[1]["args"] |= {"Call stack": "conv.py(454): _conv_forward;nn.Module: Conv2d_0"}
    events[3]["args"] |= {"Call stack": "empty;resnet"}
    found = frames_of(read(events))
    assert found["dipu_convolution_overrideable"] == "conv.py(454): _conv_forward"
    assert found["wrapper_DIPU_empty_memory_format"] == "empty"
    assert found["aten::conv2d"] is None


def test_without_external_ids_the_kernel_belongs_to_who_called_the_launcher(read):
    events = dipu()
    for event in events:
        del event["args"]["External id"]
    own = each(read(events), "device_self_ns")
    assert own["aten::convolution_overrideable"] == 45 * US
    assert own["LaunchKernel_dipu_convolution_overrideable"] == 0


def test_the_first_versions_of_kineto_had_other_categories(read):
    kernel = {"correlation": 5, "external id": 2, "stream": 7}
    events = [
        op("ProfilerStep#3", 0, 100, cat="Operator", **{"External id": 1}),
        op("aten::mm", 10, 50, cat="Operator", **{"External id": 2, "Input Dims": [[1, 2], [2, 3]]}),
        op("cudaLaunchKernel", 20, 5, cat="Runtime", correlation=5, **{"external id": 2}),
        op("gemm", 70, 9, cat="Kernel", pid=0, tid="stream 7", **kernel),
        op("Memset (Device)", 80, 1, cat="Memset", pid=0, tid="stream 7", correlation=6, bytes=4),
    ]
    run = read(events)
    assert each(run, "category", "side") == {
        "ProfilerStep*": ("cpu_op", "host"), "aten::mm": ("cpu_op", "host"), "gemm": ("kernel", "device"),
        "Memset (Device)": ("gpu_memset", "device"),
    }  # fmt: skip
    assert each(run, "device_self_ns")["aten::mm"] == 9 * US
    assert rows(run, "step", "source_step") == [(3,)]


def test_processes_tell_the_kind_where_the_legacy_profiler_wrote_no_category(read, tmp_path):
    events = [
        {"ph": "X", "name": "aten::mm", "pid": "CPU functions", "tid": 0, "ts": 1, "dur": 4, "args": {}},
        {"ph": "X", "name": "gemm", "pid": "CUDA functions", "tid": 0, "ts": 9, "dur": 2, "args": {}},
    ]
    assert each(read(events, form="list"), "side") == {"aten::mm": "host", "gemm": "device"}
    assert KINETO.recognise(tmp_path / "x.pt.trace.json")
