"""Operations of gradients that C++ launches without shapes: those of their layers, where only one fits.

The launches are those of real PyNative trainings of the same networks, in their order.
"""

import pytest

from pipeprof.read.flops import Call, Tensor, bytes_of, flops_of
from pipeprof.read.mindspore_ops import Execution
from pipeprof.read.spool.amounts import gradient_calls
from pipeprof.read.spool.operators import place
from pipeprof.read.spool.step_rows import Step

FORWARD = ["MatMul", "BiasAdd", "ReLU", "MatMul", "MatMul", "ReLU", "MatMul", "BiasAdd", "MatMul", "BiasAdd"]
BACKWARD = [
    "Ones", "BiasAddGrad", "MatMul", "MatMul", "BiasAddGrad", "MatMul", "MatMul", "ReluGrad", "MatMul", "MatMul", "MatMul",
    "MatMul", "ReluGrad", "BiasAddGrad", "MatMul",
]  # fmt: skip
SIZES = ((64, 2048, 1024), (64, 1024, 1024), (64, 32, 32), (64, 1024, 512), (64, 512, 10))  # rows, inputs, outputs


def product(rows, inputs, outputs):
    return Call(
        "MatMul",
        (Tensor((rows, inputs), "float32"), Tensor((outputs, inputs), "float32")),
        (Tensor((rows, outputs), "float32"),),
    )


CALLS = {f"MatMul#{number}": product(*sizes) for number, sizes in enumerate(SIZES, 1)}
CALLS |= {"ReLU#1": Call("ReLU", (Tensor((64, 1024)),), (Tensor((64, 1024)),))}
OPERATIONS = [flops_of(CALLS[f"MatMul#{number}"]) for number in range(1, 6)]


def found(forward=FORWARD, backward=BACKWARD, calls=CALLS, steps=1):
    launched = [Execution(kind, time, 1, kind) for time, kind in enumerate((*forward, *backward) * steps)]
    length = len(launched) // steps
    at = [Step("train", number * length, (number + 1) * length) for number in range(steps)]
    placed = place(launched, at)
    return gradient_calls(placed, lambda item: calls.get(item.name))


def products(gradients):
    return [flops_of(call) for name, call in sorted(gradients.items(), key=_number) if name.startswith("MatMul")]


def _number(item):
    return int(item[0].partition("#")[2])


def test_each_layer_has_two_products_backward_and_the_first_one():
    one, two, three, four, five = OPERATIONS
    gradients = found()
    assert products(gradients) == [five, five, four, four, three, three, two, two, one]
    assert sum(products(gradients)) == 2 * sum(OPERATIONS) - one  # the rule of twice, but the data has no gradient


def test_their_traffic_is_that_of_the_layer_and_an_activation_has_its_shape():
    gradients = found()
    assert bytes_of(gradients["MatMul#14"]) == 4 * (64 * 2048 + 2048 * 1024 + 64 * 1024)
    assert flops_of(gradients["ReluGrad#2"]) == 64 * 1024
    assert "ReluGrad#1" not in gradients  # nothing is known of its layer


def test_gradients_of_convolutions_that_look_alike_are_told_apart_by_their_order():
    image = Tensor((1, 4, 8, 8))
    calls = {
        f"Conv2D#{number}": Call("Conv2D", (image, Tensor((4, 4, size, size))), (image,))
        for number, size in ((1, 3), (2, 1))
    }
    launched = ["Ones", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv2DBackpropFilter"]
    gradients = found(["Conv2D", "Conv2D"], launched, calls)
    assert [flops_of(gradients[f"Conv2DBackpropFilter#{number}"]) for number in (1, 2)] == [
        flops_of(calls["Conv2D#2"]),
        flops_of(calls["Conv2D#1"]),
    ]


def test_a_layer_whose_weight_is_frozen_leaves_only_its_neighbours_unknown():
    frozen = [*BACKWARD[:4], "MatMul", *BACKWARD[7:]]  # no gradient of the fourth layer's weight and bias
    one, two, three, _, _ = OPERATIONS
    assert products(found(backward=frozen)) == [three, three, two, two, one]


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (FORWARD, [*BACKWARD[:7], "BiasAdd", *BACKWARD[7:]]),  # a part of the forward pass runs again
        ([*FORWARD, "Einsum"], BACKWARD),  # its gradients are products, too
        (FORWARD, [*BACKWARD[:12], "BiasAddGrad", "ReluGrad", "MatMul"]),  # another order than that of the layers
    ],
)
def test_what_may_belong_to_something_else_is_not_known(forward, backward):
    assert not found(forward, backward)


def test_gradients_that_differ_from_step_to_step_are_not_known():
    assert len(found(steps=2)) == len(found())
    both = [*FORWARD, *BACKWARD, *FORWARD, *BACKWARD[:5], "Ones", *BACKWARD[6:]]
    length = len(FORWARD) + len(BACKWARD)
    placed = place(
        [Execution(kind, time, 1, kind) for time, kind in enumerate(both)],
        [Step("train", 0, length), Step("train", length, 2 * length)],
    )
    gradients = gradient_calls(placed, lambda item: CALLS.get(item.name))
    assert "MatMul#8" in gradients  # of the fourth layer in both steps
    assert "MatMul#9" not in gradients  # of the fourth and of the third


def test_layers_in_another_order_by_their_shapes_are_not_known():
    bias = {
        f"BiasAdd#{number}": Call("BiasAdd", (Tensor((64, size)),)) for number, size in enumerate((1024, 512, 10), 1)
    }
    right = {
        f"BiasAddGrad#{number}": Call("BiasAddGrad", (Tensor((64, size)),))
        for number, size in enumerate((10, 512, 1024), 1)
    }
    assert found(calls=CALLS | bias | right)
    assert not found(calls=CALLS | bias | right | {"BiasAddGrad#1": right["BiasAddGrad#2"]})


def test_layers_of_which_no_shape_was_recorded_are_taken_by_their_order():
    layers = {f"BiasAdd#{number}": Call("BiasAdd", ()) for number in (1, 2, 3)}
    gradients = {f"BiasAddGrad#{number}": Call("BiasAddGrad", (Tensor((64, 10)),)) for number in (1, 2, 3)}
    assert found(calls=CALLS | layers | gradients) == found()


def test_products_of_a_batch_and_a_matrix_in_one_place_are_not_told_apart():
    forward, backward = ["MatMul", "BatchMatMul"], ["Ones", "BatchMatMul", "MatMul", "MatMul"]
    batch = Call("BatchMatMul", (Tensor((4, 8, 8)), Tensor((1, 8, 8))), (Tensor((4, 8, 8)),))
    known = {"MatMul#1": product(8, 8, 8), "BatchMatMul#1": batch}
    assert not products(found(forward, backward, known))  # one may be of the batch's
    whole = found(forward, ["Ones", "BatchMatMul", "BatchMatMul", "MatMul", "MatMul"], known)
    assert flops_of(whole["BatchMatMul#2"]) == 2 * 4 * 8 * 8 * 8
    assert bytes_of(whole["BatchMatMul#2"]) is None  # the gradient of a repeated factor is larger
    assert products(whole)[0] == 2 * 8 * 8 * 8
