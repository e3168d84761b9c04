"""Which figures the operators of a training get: from graphs that were compiled, from calls, from launches."""

import gzip
from pathlib import Path

import pytest

from pipeprof.read.flops import Call, Tensor, flops_of
from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.amounts import Amounts, load_graphs, read_graph
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.operators import Placed
from pipeprof.read.spool.process import Process

RESNET50 = Path(__file__).parents[2] / "real" / "graphs" / "resnet50-2.10.anf.gz"
PUBLISHED = 8.2e9  # 4.1 billion multiply-adds of its convolutions


@pytest.fixture(scope="module")
def resnet50():
    return read_graph(gzip.decompress(RESNET50.read_bytes()))


def test_convolutions_of_resnet_50_have_the_published_operations(resnet50):
    convolutions = [call for call in resnet50.values() if call.type == "Conv2D"]
    assert len(convolutions) == 53
    assert sum(map(flops_of, convolutions)) == pytest.approx(PUBLISHED, rel=0.01)


def test_every_gradient_of_a_convolution_has_the_operations_of_its_layer(resnet50):
    sums = {
        kind: sum(flops_of(call) for call in resnet50.values() if call.type == kind)
        for kind in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")
    }
    first = 2 * 64 * 112 * 112 * 3 * 49  # the image has no gradient
    assert sums["Conv2DBackpropFilter"] == sums["Conv2D"] == sums["Conv2DBackpropInput"] + first


def test_operators_have_their_tensors_and_attributes(resnet50):
    assert resnet50["Default/network-WithLossCell/_backbone-ResNet50/head-Dense/MatMul-op0"] == Call(
        "MatMul",
        (Tensor((1, 2048), "float32"), Tensor((1000, 2048), "float32")),
        (Tensor((1, 1000), "float32"),),
    )
    norms = [call for call in resnet50.values() if call.type == "BatchNorm"]
    assert {call.attributes["is_training"] for call in norms} == {1}


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path, {"pid": 1, "started": 0}, [], [])


def placed(name, phase="forward", shapes=None, kind=None):
    return Placed(Execution(name.partition("#")[0], 0, 1, kind, shapes), 0, phase, name)


FLOAT = "float32"
LAYER = ["Conv2D", [[FLOAT, [1, 3, 8, 8]], [FLOAT, [8, 3, 3, 3]]], [[FLOAT, [1, 8, 4, 4]]], [["kernel_size", [3, 3]]]]
OTHER = ["Conv2D", [[FLOAT, [1, 3, 8, 8]], [FLOAT, [8, 3, 3, 3]]], [[FLOAT, [1, 8, 8, 8]]], []]
PRODUCT = ["MatMul", [[FLOAT, [1, 16]], [FLOAT, [4, 16]]], [[FLOAT, [1, 4]]], []]
OPERATIONS = 2 * 8 * 16 * 27
MOVED = 4 * (192 + 216 + 128)
LAUNCH = placed("Default/Conv2D-op0", shapes="[1, 3, 8, 8]; [8, 3, 3, 3]", kind="Conv2D")


def amounts(process, items, kinds=(), calls=()):
    process.events.append({"e": "operands", "t": 0, "kinds": list(kinds), "calls": list(calls)})
    found = Amounts(process, items)
    return [found.of(item) for item in items]


def test_a_launch_gets_the_output_of_the_call_with_its_shapes(process):
    assert amounts(process, [LAUNCH], [LAYER], [0, 0]) == [(OPERATIONS, MOVED)]


def test_a_launch_whose_shapes_two_calls_have_is_not_guessed(process):
    assert amounts(process, [LAUNCH], [LAYER, OTHER], [0, 1]) == [(None, None)]


def test_gradients_of_a_convolution_are_those_of_its_layer(process):
    items = [
        placed(
            "Default/Conv2DBackpropFilter-op0", "backward", "[1, 8, 4, 4]; [1, 3, 8, 8]; [4]", "Conv2DBackpropFilter"
        ),
        placed("Default/Conv2DBackpropInput-op0", "backward", "[1, 8, 4, 4]; [8, 3, 3, 3]; [4]", "Conv2DBackpropInput"),
    ]
    assert amounts(process, items, [LAYER, OTHER], [0, 1]) == [(OPERATIONS, MOVED)] * 2


def test_branches_whose_gradients_come_in_another_order_are_told_apart_by_their_shapes(process):
    items = [placed("Conv2D#1", kind="Conv2D"), placed("Conv2D#2", kind="Conv2D")]
    items += [
        placed(f"Default/{kind}-op0{number}", "backward", f"[1, 8, {size}, {size}]; [1, 3, 8, 8]; [4]", kind)
        for kind, number, size in (("Conv2DBackpropFilter", "", 4), ("Conv2DBackpropFilter", "#2", 8))
    ]
    assert amounts(process, items, [LAYER, OTHER], [0, 1])[2:] == [(OPERATIONS, MOVED), (4 * OPERATIONS, 4 * 920)]


def test_calls_are_those_launches_when_each_step_launched_as_many(process):
    items = [placed("MatMul#1"), placed("MatMul#2"), placed("Mul#1", "backward")]
    assert amounts(process, items, [PRODUCT], [0, 0]) == [(128, 4 * (16 + 64 + 4))] * 2 + [(None, None)]


def test_a_product_of_any_rank_is_launched_as_one_of_matrices_or_of_batches(process):
    batch = ["MatMulExt", [[FLOAT, [4, 1, 16]], [FLOAT, [1, 16, 8]]], [[FLOAT, [4, 1, 8]]], []]
    items = [placed("MatMul#1"), placed("MatMul#2"), placed("BatchMatMul#1")]
    calls = amounts(process, items, [PRODUCT, ["MatMulExt", *PRODUCT[1:]], batch], [0, 1, 2])
    assert [flops for flops, _ in calls] == [128, 128, 2 * 4 * 8 * 16]


def test_calls_are_not_shared_out_among_another_number_of_launches(process):
    assert amounts(process, [placed("MatMul#1"), placed("MatMul#2")], [PRODUCT], [0]) == [(None, None)] * 2


def test_without_calls_a_launch_has_what_its_inputs_say(process):
    items = [
        placed("Default/BiasAdd-op0", shapes="[4, 10]; [10]; NoShape", kind="BiasAdd"),
        placed("Default/Conv2D-op0", shapes="[1, 3, 8, 8]; [8, 3, 3, 3]", kind="Conv2D"),
        placed("ReLU#1"),
    ]
    assert amounts(process, items) == [(40, None), (None, None), (None, None)]


def test_an_operator_of_a_graph_is_found_by_its_name(process, resnet50):
    process.folder.joinpath("graph-1.anf").write_bytes(gzip.decompress(RESNET50.read_bytes()))
    name = next(name for name, call in resnet50.items() if call.type == "Conv2D")
    assert amounts(process, [placed(name)]) == [(flops_of(resnet50[name]), pytest.approx(3.67 * 2**20, rel=0.01))]
    assert amounts(process, [placed(name, shapes="[9, 3, 224, 224]", kind="Conv2D")]) == [(None, None)]  # another batch


def part(number, value):
    """One field of a message."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    assert len(data) < 0x80
    return bytes([number << 3 | 2, len(data)]) + data


def small_graph(*sizes, kind="ReLU", name="Default/a-op0"):
    """A graph of one operator whose output has one dimension; each has one of the sizes."""
    shape = b"".join(part(1, part(1, size)) for size in sizes)
    output = part(6, part(2, part(1, 11) + part(2, shape)))
    return part(4, part(1, part(2, "1") + part(3, kind) + part(8, name) + output))


def test_a_graph_of_one_operator():
    assert read_graph(small_graph(2, 5)) == {"Default/a-op0": Call("ReLU", (), (Tensor((2, 5), "float32"),))}


def test_a_name_that_two_graphs_have_for_different_operators_has_none(tmp_path):
    graphs = (
        small_graph(4),
        small_graph(5),
        small_graph(4, name="Default/b-op0"),
        small_graph(4, name="Default/b-op0"),
    )
    for number, data in enumerate(graphs):
        tmp_path.joinpath(f"graph-{number}.anf").write_bytes(data)
    assert list(load_graphs(tmp_path, SpoolNotes())) == ["Default/b-op0"]


@pytest.mark.parametrize("size", [1, 3, 1000, 300_001])
def test_a_graph_that_was_cut_is_damage_and_no_figures(process, size):
    process.folder.joinpath("graph-1.anf").write_bytes(gzip.decompress(RESNET50.read_bytes())[:size])
    assert amounts(process, [LAUNCH]) == [(None, None)]
    assert len(process.notes.damage) == 1
    assert "graph-1.anf" in process.notes.damage[0]


@pytest.mark.parametrize("data", [b"", b"\x00" * 50, b"\xff" * 50, b"{}"])
def test_what_is_no_graph_has_no_operators(process, data):
    process.folder.joinpath("graph-1.anf").write_bytes(data)
    assert amounts(process, [LAUNCH]) == [(None, None)]
