"""Operations and bytes of operators: of PyTorch from its shapes and values, of MindSpore beside what others print."""

import json

import pytest
from every import every
from kineto_files import op, ops_by_name

from pipeprof.read.chrome import ops as torch_flops
from pipeprof.read.chrome.dialect import Info
from pipeprof.read.flops import FORMULAS, Call, Tensor, bytes_of, flops_of

MIB = 2**20


def call(kind, *shapes, out=(), **attributes):
    tensors = [Tensor(shape, "float32") for shape in shapes]
    return Call(kind, tuple(tensors), tuple(Tensor(shape, "float32") for shape in out), attributes)


def convolution(image, weight, out):
    return call("Conv2D", image, weight, out=[out])


def counted(name, dims, values=()):
    return torch_flops.flops_of(
        Info("cpu_op", name, json.dumps(dims).encode(), b"", b"", json.dumps(list(values)).encode())
    )


@pytest.mark.parametrize(
    ("layer", "mega", "mebibytes"),
    [
        (convolution((1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112)), 236.03, 3.67),
        (convolution((1, 512, 14, 14), (512, 512, 3, 3), (1, 512, 7, 7)), 231.21, 9.48),
        (convolution((1, 512, 7, 7), (512, 512, 3, 3), (1, 512, 7, 7)), 231.21, 9.19),
    ],
)
def test_a_convolution_has_the_figures_that_megengine_prints(layer, mega, mebibytes):
    assert (round(flops_of(layer) / 1e6, 2), round(bytes_of(layer) / MIB, 2)) == (mega, mebibytes)


VALUES = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"]
GROUPED = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "4"]


@pytest.mark.parametrize(
    ("name", "dims", "values", "ours"),
    [
        ("aten::conv2d", [[2, 8, 14, 14], [16, 2, 3, 3]], GROUPED,
         convolution((2, 8, 14, 14), (16, 2, 3, 3), (2, 16, 7, 7))),
        ("aten::mm", [[8, 16], [16, 10]], [], call("MatMul", (8, 16), (16, 10), out=[(8, 10)])),
        ("aten::bmm", [[4, 8, 16], [4, 16, 10]], [], call("BatchMatMul", (4, 8, 16), (4, 16, 10), out=[(4, 8, 10)])),
        ("aten::mul", [[8, 3, 5], [1]], [], call("Mul", (8, 3, 5), (1,), out=[(8, 3, 5)])),
    ],
)  # fmt: skip
def test_a_layer_has_the_operations_that_torch_counts(name, dims, values, ours):
    assert flops_of(ours) == counted(name, dims, values)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (call("MatMul", (16, 8), (16, 10), out=[(8, 10)]), 2 * 8 * 10 * 16),  # transposed
        (call("MatMul", (8, 16), (10, 16), out=[(8, 10)]), 2 * 8 * 10 * 16),
        (call("MatMulExt", (8, 16), (16,), out=[(8,)]), 2 * 8 * 16),
        (call("BatchMatMul", (2, 3, 8, 16), (16, 10), out=[(2, 3, 8, 10)]), 2 * 6 * 8 * 10 * 16),
        (call("Conv2DBackpropInput", (1, 64, 7, 7), (64, 3, 3, 3), out=[(1, 3, 7, 7)]), 2 * 64 * 49 * 27),
        (call("Conv2DBackpropFilter", (1, 64, 7, 7), (1, 3, 7, 7), out=[(64, 3, 3, 3)]), 2 * 64 * 49 * 27),
        (call("Conv2DTranspose", (1, 8, 7, 7), (8, 4, 2, 2), out=[(1, 4, 14, 14)]), 2 * 8 * 49 * 16),
        (call("LSTM", (5, 3, 8), (1, 3, 16), out=[(5, 3, 16)]), 2 * 5 * 3 * 4 * 16 * 24),
        (call("LSTM", (5, 3, 8), (2, 3, 16), out=[(5, 3, 32)]), None),  # two directions, or layers
        (call("BiasAdd", (4, 10), (10,), out=[(4, 10)]), 40),
        (call("AddN", (4,), (4,), (4,), out=[(4,)]), 8),
        (call("ReduceSum", (4, 10), out=[(4,)]), 40),
        (call("MaxPool", (1, 8, 8, 8), out=[(1, 8, 4, 4)], kernel_size=(1, 1, 3, 2)), 8 * 16 * 6),
        (call("AvgPool", (1, 8, 8, 8), out=[(1, 8, 4, 4)], kernel_size=3), 8 * 16 * 9),
        (call("BatchNorm", (2, 8, 4, 4), (8,), out=[(2, 8, 4, 4)], is_training=1), 5 * 256),
        (call("BatchNorm", (2, 8, 4, 4), (8,), out=[(2, 8, 4, 4)], is_training=0), 2 * 256),
        (call("LayerNorm", (2, 8), (8,), (8,), out=[(2, 8)]), 80),
        # what is not known has no figure
        (call("Reshape", (4, 10), out=[(40,)]), None),
        (call("Conv2D", (1, 3, 8, 8), (8, 3, 3, 3)), None),
        (call("Conv2D", (1, 3, 8, 8), (8, 3, 3, 3), out=[None]), None),
        (call("Conv2D", (1, 3, 8, 8), (8, 3, 3, 3), out=[(1, 8, -1, -1)]), None),
        (call("Conv2D", (1, 3, 8, 8), (0, 3, 3, 3), out=[(1, 0, 8, 8)]), None),
        (call("MaxPool", (1, 8, 8, 8), out=[(1, 8, 4, 4)]), None),
        (call("MaxPool", (1, 8, 8, 8), out=[(1, 8, 4, 4)], kernel_size="large"), None),
        (call("Add", (2**40,), out=[(2**40, 2**40)]), None),
    ],
)
def test_formulas(one, expected):
    assert flops_of(one) == expected


@every(FORMULAS)
def test_no_formula_makes_up_a_figure(kind):
    assert flops_of(call(kind)) is None


@pytest.mark.parametrize(
    "tensor", [Tensor(None, "float32"), Tensor((4,)), Tensor((4,), "string"), Tensor((-1,), "int8")]
)
def test_bytes_need_every_shape_and_type(tensor):
    known = Tensor((4,), "float16")
    assert bytes_of(Call("Add", (known, known), (known,))) == 24
    assert bytes_of(Call("Add", (known, tensor), (known,))) is None
    assert bytes_of(Call("Add", (known, known))) is None


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
def test_torch_counts(name, dims, count):
    assert counted(name, dims, VALUES) == count


@pytest.mark.parametrize(
    ("values", "count"),
    [
        (["[1, 1]", "[0, 0]", "[2, 2]", "1"], 2 * 4 * 4 * 4 * 8 * 9),
        (["[1, 1]", "[1, 1]", "[1, 1]", "4"], 2 * 8 * 8 * 4 * 8 * 9 // 4),
        (["[0, 1]", "[1, 1]", "[1, 1]", "1"], None),
        (["[1, 1]", "[1, 1]", "[1, 1]", "0"], None),
        (["[1, 1]", "same", "[1, 1]", "1"], None),
        (None, None),
    ],
)
def test_a_convolution_needs_stride_padding_dilation_and_groups(values, count):
    values = ["", "", "", *values] if values else []
    assert counted("aten::conv2d", [[1, 4, 8, 8], [8, 4, 3, 3], [], [], [], [], []], values) == count


@pytest.mark.parametrize(("kind", "count"), [(b'["float", "Scalar"]', 1), (b'["Scalar", "float"]', None), (b"", None)])
def test_a_tensor_without_dimensions_has_one_element(kind, count):
    assert torch_flops.flops_of(Info("cpu_op", "aten::mul", b"[[], []]", kind, b"")) == count


def test_what_the_trace_says_counts(read):
    dims = {"Input Dims": [[8, 16], [16, 10]]}
    found = ops_by_name(read([
        op("aten::mm", 0, 1, flops=77, **dims), op("aten::mm", 2, 1, **dims), op("custom", 4, 1, flops="123"),
        op("aten::mm", 6, 1, flops="many", **{"Input Dims": "8,16;\r\n16,10"}),
    ]))  # fmt: skip
    assert [row["flops"] for row in found["aten::mm"] + found["custom"]] == [77, 2560, None, 123]
