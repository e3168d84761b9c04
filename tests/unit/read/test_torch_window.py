"""Windows of PyTorch's profiler: own times, phases, what gradients belong to, and operations, from a trace of one thread."""

import json

import pytest

from pipeprof.errors import SourceError
from pipeprof.read.spool.torch_window import read_windows

BASE = 1_790_000_000_000_000_000


def event(name, start_us, dur_us, cat="cpu_op", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": dur_us, "args": args}


def written(folder, *events, number=1):
    path = folder / f"torch-{number}.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": list(events)}))
    return path


STEP = (
    event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50, "user_annotation"),
    event("aten::stack", 10, 20),
    event("aten::linear", 100, 40.5, **{"Sequence number": 7}),
    event("aten::addmm", 110, 30, **{
        "Sequence number": 7, "Input Dims": [[4], [2, 3], [3, 4], [], []], "Input type": ["float", "float", "float", "", ""],
    }),
    event("gloo:all_reduce", 150, 10),
    event("autograd::engine::evaluate_function: AddmmBackward0", 200, 60, **{"Sequence number": 7, "Fwd thread id": 1}),
    event("AddmmBackward0", 201, 50, **{"Sequence number": 7, "Fwd thread id": 1}),
    event("aten::mm", 210, 20, **{"Sequence number": 9}),
    event("Optimizer.step#Adam.step", 300, 100, "user_annotation"),
    event("aten::mul_", 310, 5),
)  # fmt: skip


def test_an_execution_has_its_own_time_and_phase_and_a_gradient_the_number_of_its_forward_operator(tmp_path):
    written(tmp_path, *STEP[5:], number=1)
    written(tmp_path, *STEP[:5], number=2)  # the order of the files says nothing
    found = read_windows(tmp_path)
    assert [(one.name, one.phase, one.self_ns, one.sequence) for one in found] == [
        ("aten::stack", "data", 20_000, None), ("aten::linear", None, 10_500, 7), ("aten::addmm", None, 30_000, 7),
        ("gloo:all_reduce", "communication", 10_000, None), ("AddmmBackward0", "backward", 30_000, 7),
        ("aten::mm", "backward", 20_000, 7), ("aten::mul_", "optimizer", 5_000, None),
    ]  # fmt: skip
    assert (found[1].start_ns, found[1].dur_ns) == (BASE + 100_000, 40_500)
    assert (found[2].flops, found[2].shapes) == (2 * 2 * 3 * 4, "[[4], [2, 3], [3, 4], [], []]")


def test_a_folder_without_a_trace_has_none(tmp_path):
    assert read_windows(tmp_path) == []


@pytest.mark.parametrize("kept", [0.5, 0.98])
def test_a_trace_that_ends_too_early_is_damaged(tmp_path, kept):
    path = written(tmp_path, *STEP)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(SourceError, match="damaged"):
        read_windows(tmp_path)
