"""Operations of operators that PyTorch counts, from their shapes and values."""

import json

import pytest
from kineto_files import imported, op, ops_by_name, write_trace

from pipeprof.read.chrome.dialect import Info
from pipeprof.read.chrome.ops import flops_of

VALUES = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"]


def counted(name, dims, values=()):
    return flops_of(Info("cpu_op", name, json.dumps(dims).encode(), b"", b"", json.dumps(list(values)).encode()))


@pytest.mark.parametrize(
    ("name", "dims", "count"),
    [
        ("aten::mm", [[8, 16], [16, 10]], 2 * 8 * 16 * 10),
        ("aten::addmm", [[10], [8, 16], [16, 10], [], []], 2 * 8 * 16 * 10),
        ("aten::bmm", [[4, 8, 16], [4, 16, 10]], 2 * 4 * 8 * 16 * 10),
        ("aten::baddbmm", [[4, 8, 10], [4, 8, 16], [4, 16, 10], [], []], 2 * 4 * 8 * 16 * 10),
        ("aten::mul", [[8, 3, 5], [1]], 120),
        ("aten::add", [[8, 16], [8, 16], []], 128),
        ("aten::relu", [[8, 16]], None),
        ("aten::mm", [], None),
        ("aten::mm", [[8, 16]], None),
        ("aten::mm", [[8, 0], [0, 3]], None),
        ("aten::mul", [[2**40, 2**40], []], None),
        ("aten::conv2d", [[2, 3, 224, 224], [64, 3, 7, 7], [64], [], [], [], []], 2 * 2 * 64 * 112 * 112 * 3 * 49),
        ("aten::conv2d", [[2, 3, 224], [64, 3, 7], [64], [], [], [], []], None),
    ],
)
def test_counts(name, dims, count):
    assert counted(name, dims, VALUES) == count


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (["", "", "", "[1, 1]", "[0, 0]", "[2, 2]", "1"], 2 * 4 * 4 * 4 * 8 * 9),
        (["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "4"], 2 * 8 * 8 * 4 * 8 * 9 // 4),
        (["", "", "", "[0, 1]", "[1, 1]", "[1, 1]", "1"], None),
        (["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "0"], None),
        (["", "", "", "[1, 1]", "same", "[1, 1]", "1"], None),
        ([], None),
    ],
)
def test_a_convolution_needs_stride_padding_dilation_and_groups(values, count):
    assert counted("aten::conv2d", [[1, 4, 8, 8], [8, 4, 3, 3], [], [], [], [], []], values) == count


@pytest.mark.parametrize(("kind", "count"), [(b'["float", "Scalar"]', 1), (b'["Scalar", "float"]', None), (b"", None)])
def test_a_tensor_without_dimensions_has_one_element(kind, count):
    assert flops_of(Info("cpu_op", "aten::mul", b"[[], []]", kind, b"")) == count


def test_what_the_trace_says_counts(tmp_path):
    events = [
        op("aten::mm", 0, 1, flops=77, **{"Input Dims": [[8, 16], [16, 10]]}),
        op("aten::mm", 2, 1, **{"Input Dims": [[8, 16], [16, 10]]}),
        op("custom", 4, 1, flops="123"),
        op("aten::mm", 6, 1, flops="many", **{"Input Dims": "8,16;\r\n16,10"}),
    ]
    found = ops_by_name(imported(tmp_path / "run", write_trace(tmp_path / "x.json", events)))
    assert [row["flops"] for row in found["aten::mm"]] == [77, 2560, None]
    assert [row["flops"] for row in found["custom"]] == [123]
