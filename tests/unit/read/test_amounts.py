"""Which figures the operators of a training get: from graphs that were compiled, from calls, from launches.

Gradients that C++ launches without shapes have those of their layers, where only one fits: the launches here are those
of real PyNative trainings of the same networks, in their order.
"""

import gzip
from pathlib import Path

import pytest

from pipeprof.read.flops import Call, Tensor, bytes_of, flops_of
from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.amounts import Amounts, gradient_calls, load_graphs, read_graph
from pipeprof.read.spool.lines import SpoolNotes
from pipeprof.read.spool.operators import Placed, place
from pipeprof.read.spool.process import Process
from pipeprof.read.spool.step_rows import Step

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
    kinds = ("Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv2D")
    weight, data, forward = (sum(flops_of(call) for call in resnet50.values() if call.type == kind) for kind in kinds)
    first = 2 * 64 * 112 * 112 * 3 * 49  # the image has no gradient
    assert weight == forward == data + first


def test_operators_have_their_tensors_and_attributes(resnet50):
    shapes = [(1, 2048), (1000, 2048), (1, 1000)]
    one, other, out = (Tensor(shape, "float32") for shape in shapes)
    name = "Default/network-WithLossCell/_backbone-ResNet50/head-Dense/MatMul-op0"
    assert resnet50[name] == Call("MatMul", (one, other), (out,))
    norms = [call for call in resnet50.values() if call.type == "BatchNorm"]
    assert {call.attributes["is_training"] for call in norms} == {1}


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path, {"pid": 1, "started": 0}, [], [])


def placed(name, phase="forward", shapes=None, kind=None):
    return Placed(Execution(name.partition("#")[0], 0, 1, kind, shapes), 0, phase, name)


def recorded(kind, *shapes, out, attributes=()):
    return [kind, [["float32", list(shape)] for shape in shapes], [["float32", list(out)]], list(attributes)]


def back(kind, shapes, number=""):
    return placed(f"Default/Conv2DBackprop{kind}-op0{number}", "backward", shapes, f"Conv2DBackprop{kind}")


LAYER = recorded("Conv2D", (1, 3, 8, 8), (8, 3, 3, 3), out=(1, 8, 4, 4), attributes=[["kernel_size", [3, 3]]])
OTHER = recorded("Conv2D", (1, 3, 8, 8), (8, 3, 3, 3), out=(1, 8, 8, 8))
PRODUCT = recorded("MatMul", (1, 16), (4, 16), out=(1, 4))
BATCH = recorded("MatMulExt", (4, 1, 16), (1, 16, 8), out=(4, 1, 8))
LAUNCH = placed("Default/Conv2D-op0", shapes="[1, 3, 8, 8]; [8, 3, 3, 3]", kind="Conv2D")
TWICE = [placed("MatMul#1"), placed("MatMul#2")]
MOVED = 4 * (192 + 216 + 128)
FIGURES, UNKNOWN = (2 * 8 * 16 * 27, MOVED), (None, None)
OF_PRODUCT = (128, 4 * (16 + 64 + 4))


def amounts(process, items, kinds=(), calls=()):
    process.events.append({"e": "operands", "t": 0, "kinds": list(kinds), "calls": list(calls)})
    found = Amounts(process, items)
    return [found.of(item) for item in items]


@pytest.mark.parametrize(
    ("items", "kinds", "calls", "expected"),
    [
        # a launch has the output of the call with its shapes; one whose shapes two calls have is not guessed
        ([LAUNCH], [LAYER], [0, 0], [FIGURES]),
        ([LAUNCH], [LAYER, OTHER], [0, 1], [UNKNOWN]),
        # gradients of a convolution are those of its layer
        ([back("Filter", "[1, 8, 4, 4]; [1, 3, 8, 8]; [4]"), back("Input", "[1, 8, 4, 4]; [8, 3, 3, 3]; [4]")],
         [LAYER, OTHER], [0, 1], [FIGURES] * 2),
        # branches whose gradients come in another order are told apart by their shapes
        ([placed("Conv2D#1", kind="Conv2D"), placed("Conv2D#2", kind="Conv2D"),
          back("Filter", "[1, 8, 4, 4]; [1, 3, 8, 8]; [4]"), back("Filter", "[1, 8, 8, 8]; [1, 3, 8, 8]; [4]", "#2")],
         [LAYER, OTHER], [0, 1], [FIGURES, (4 * FIGURES[0], 4 * 920)] * 2),
        # calls are those launches when each step launched as many; of any rank they are launched as one of two kinds
        ([*TWICE, placed("Mul#1", "backward")], [PRODUCT], [0, 0], [OF_PRODUCT] * 2 + [UNKNOWN]),
        (TWICE, [PRODUCT], [0], [UNKNOWN] * 2),
        ([*TWICE, placed("BatchMatMul#1")], [PRODUCT, ["MatMulExt", *PRODUCT[1:]], BATCH], [0, 1, 2],
         [OF_PRODUCT, OF_PRODUCT, (2 * 4 * 8 * 16, 4 * (64 + 128 + 32))]),
        # without calls a launch has what its inputs say
        ([placed("Default/BiasAdd-op0", shapes="[4, 10]; [10]; NoShape", kind="BiasAdd"), LAUNCH, placed("ReLU#1")],
         [], [], [(40, None), UNKNOWN, UNKNOWN]),
    ],
)  # fmt: skip
def test_a_launch_has_the_figures_of_the_call_that_fits(process, items, kinds, calls, expected):
    assert amounts(process, items, kinds, calls) == expected


def test_an_operator_of_a_graph_is_found_by_its_name(process, resnet50):
    process.folder.joinpath("graph-1.anf").write_bytes(gzip.decompress(RESNET50.read_bytes()))
    name = next(name for name, call in resnet50.items() if call.type == "Conv2D")
    assert amounts(process, [placed(name)]) == [(flops_of(resnet50[name]), pytest.approx(3.67 * 2**20, rel=0.01))]
    assert amounts(process, [placed(name, shapes="[9, 3, 224, 224]", kind="Conv2D")]) == [UNKNOWN]  # another batch


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
    graphs = (small_graph(4), small_graph(5), *[small_graph(4, name="Default/b-op0")] * 2)
    for number, data in enumerate(graphs):
        tmp_path.joinpath(f"graph-{number}.anf").write_bytes(data)
    assert list(load_graphs(tmp_path, SpoolNotes())) == ["Default/b-op0"]


@pytest.mark.parametrize("size", [1, 3, 1000, 300_001])
def test_a_graph_that_was_cut_is_damage_and_no_figures(process, size):
    process.folder.joinpath("graph-1.anf").write_bytes(gzip.decompress(RESNET50.read_bytes())[:size])
    assert amounts(process, [LAUNCH]) == [UNKNOWN]
    assert len(process.notes.damage) == 1


def kinds(text):
    return text.split()


FORWARD = kinds("MatMul BiasAdd ReLU MatMul MatMul ReLU MatMul BiasAdd MatMul BiasAdd")
BACKWARD = kinds("Ones BiasAddGrad MatMul MatMul BiasAddGrad MatMul MatMul ReluGrad MatMul MatMul MatMul MatMul")
BACKWARD += kinds("ReluGrad BiasAddGrad MatMul")
SIZES = ((64, 2048, 1024), (64, 1024, 1024), (64, 32, 32), (64, 1024, 512), (64, 512, 10))  # rows, inputs, outputs


def product(rows, inputs, outputs):
    one, other, out = (Tensor(shape, "float32") for shape in ((rows, inputs), (outputs, inputs), (rows, outputs)))
    return Call("MatMul", (one, other), (out,))


def layers(kind, *sizes):
    """Calls of one kind, each with an input of so many columns; None: of which no shape is known."""
    inputs = [() if size is None else (Tensor((64, size)),) for size in sizes]
    return {f"{kind}#{number}": Call(kind, tensors) for number, tensors in enumerate(inputs, 1)}


CALLS = {f"MatMul#{number}": product(*sizes) for number, sizes in enumerate(SIZES, 1)}
CALLS |= {"ReLU#1": Call("ReLU", (Tensor((64, 1024)),), (Tensor((64, 1024)),))}
OPERATIONS = [flops_of(CALLS[f"MatMul#{number}"]) for number in range(1, 6)]
ONE, SECOND, THIRD, FOURTH, FIFTH = OPERATIONS


def gradients(*steps, calls=CALLS):
    """Those of equally long steps, each as (forward, backward)."""
    steps = steps or [(FORWARD, BACKWARD)]
    launched = [kind for step in steps for kind in (*step[0], *step[1])]
    length = len(launched) // len(steps)
    at = [Step("train", number * length, (number + 1) * length) for number in range(len(steps))]
    executions = [Execution(kind, time, 1, kind) for time, kind in enumerate(launched)]
    return gradient_calls(place(executions, at), lambda item: calls.get(item.name))


def products(found):
    matmuls = {int(name.partition("#")[2]): call for name, call in found.items() if name.startswith("MatMul")}
    return [flops_of(matmuls[number]) for number in sorted(matmuls)]


def test_each_layer_has_two_products_backward_and_the_first_one():
    found = gradients()
    assert products(found) == [FIFTH, FIFTH, FOURTH, FOURTH, THIRD, THIRD, SECOND, SECOND, ONE]
    assert sum(products(found)) == 2 * sum(OPERATIONS) - ONE  # the rule of twice, but the data has no gradient
    assert bytes_of(found["MatMul#14"]) == 4 * (64 * 2048 + 2048 * 1024 + 64 * 1024)
    assert flops_of(found["ReluGrad#2"]) == 64 * 1024
    assert "ReluGrad#1" not in found  # nothing is known of its layer


def test_gradients_of_convolutions_that_look_alike_are_told_apart_by_their_order():
    image, weights = Tensor((1, 4, 8, 8)), [Tensor((4, 4, size, size)) for size in (3, 1)]
    calls = {f"Conv2D#{number}": Call("Conv2D", (image, weight), (image,)) for number, weight in enumerate(weights, 1)}
    launched = ["Ones", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv2DBackpropFilter"]
    found = gradients((["Conv2D", "Conv2D"], launched), calls=calls)
    assert [flops_of(found[f"Conv2DBackpropFilter#{number}"]) for number in (1, 2)] == [
        flops_of(calls[f"Conv2D#{number}"]) for number in (2, 1)
    ]


def test_a_layer_whose_weight_is_frozen_leaves_only_its_neighbours_unknown():
    frozen = [*BACKWARD[:4], "MatMul", *BACKWARD[7:]]  # no gradient of the fourth layer's weight and bias
    assert products(gradients((FORWARD, frozen))) == [THIRD, THIRD, SECOND, SECOND, ONE]


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (FORWARD, [*BACKWARD[:7], "BiasAdd", *BACKWARD[7:]]),  # a part of the forward pass runs again
        ([*FORWARD, "Einsum"], BACKWARD),  # its gradients are products, too
        (FORWARD, [*BACKWARD[:12], "BiasAddGrad", "ReluGrad", "MatMul"]),  # another order than that of the layers
    ],
)
def test_what_may_belong_to_something_else_is_not_known(forward, backward):
    assert not gradients((forward, backward))


def test_gradients_that_differ_from_step_to_step_are_not_known():
    step = (FORWARD, BACKWARD)
    assert len(gradients(step, step)) == len(gradients())
    found = gradients(step, (FORWARD, [*BACKWARD[:5], "Ones", *BACKWARD[6:]]))
    assert "MatMul#8" in found  # of the fourth layer in both steps
    assert "MatMul#9" not in found  # of the fourth and of the third


def test_layers_in_another_order_by_their_shapes_are_not_known_and_without_shapes_taken_by_their_order():
    bias, right = layers("BiasAdd", 1024, 512, 10), layers("BiasAddGrad", 10, 512, 1024)
    assert gradients(calls=CALLS | bias | right)
    assert not gradients(calls=CALLS | bias | right | {"BiasAddGrad#1": right["BiasAddGrad#2"]})
    unknown = layers("BiasAdd", None, None, None) | layers("BiasAddGrad", 10, 10, 10)
    assert gradients(calls=CALLS | unknown) == gradients()


def test_products_of_a_batch_and_a_matrix_in_one_place_are_not_told_apart():
    batch = Call("BatchMatMul", (Tensor((4, 8, 8)), Tensor((1, 8, 8))), (Tensor((4, 8, 8)),))
    forward, known = ["MatMul", "BatchMatMul"], {"MatMul#1": product(8, 8, 8), "BatchMatMul#1": batch}
    assert not products(gradients((forward, ["Ones", "BatchMatMul", "MatMul", "MatMul"]), calls=known))
    whole = gradients((forward, ["Ones", "BatchMatMul", "BatchMatMul", "MatMul", "MatMul"]), calls=known)
    assert flops_of(whole["BatchMatMul#2"]) == 2 * 4 * 8 * 8 * 8
    assert bytes_of(whole["BatchMatMul#2"]) is None  # the gradient of a repeated factor is larger
    assert products(whole)[0] == 2 * 8 * 8 * 8
