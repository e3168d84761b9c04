"""Formulas for the operators of one's own trainings against what torch counts for the same layers.

What torch 2.13 counted is stored; `make test-torch` asks the torch that is installed, too.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from captured import CAPTURES

from pipeprof.read.flops import Call, Tensor, flops_of

SCRIPT = Path(__file__).with_name("torch_flops.py")
PROFILER_LEAVES_OUT = {"three-dimensional", "transposed"}  # with_flops has no formula for them


def op(kind, *shapes, out):
    return Call(kind, tuple(map(Tensor, shapes)), (Tensor(out),))


def convolution(image, weight, out, dimensions="2D"):
    """A layer and its two gradients, as MindSpore launches them: layer, gradient of the input, of the weight."""
    return (
        op(f"Conv{dimensions}", image, weight, out=out),
        op(f"Conv{dimensions}BackpropInput", out, weight, out=image),
        op(f"Conv{dimensions}BackpropFilter", out, image, out=weight),
    )


def product(one, two, out, kind="MatMul"):
    """A product and its gradients: each is of the gradient of the output and of the other factor."""
    return op(kind, one, two, out=out), op(kind, out, two, out=one), op(kind, one, out, out=two)


def dense(x, weight, y):
    """The weight is transposed in the layer, the gradient of the output in that of the weight."""
    return op("MatMul", x, weight, out=y), op("MatMul", y, weight, out=x), op("MatMul", y, x, out=weight)


def transposed(image, weight, out):
    """A transposed convolution is the gradient of the convolution that makes its input from its output."""
    layer, _, weight_gradient = convolution(out, weight, image)
    return op("Conv2DTranspose", image, weight, out=out), layer, weight_gradient


def lstm(x, h, y):
    return op("LSTM", x, h, h, out=y), op("LSTMGrad", x, h, h, out=x)


LAYERS = {
    "convolution": convolution((4, 3, 17, 15), (8, 3, 3, 3), (4, 8, 9, 8)),
    "one by one": convolution((2, 16, 7, 7), (32, 16, 1, 1), (2, 32, 7, 7)),
    "grouped": convolution((2, 8, 20, 22), (12, 2, 3, 5), (2, 12, 16, 14)),
    "depthwise": convolution((3, 6, 9, 9), (6, 1, 3, 3), (3, 6, 9, 9)),
    "three-dimensional": convolution((2, 2, 7, 8, 9), (4, 2, 3, 3, 3), (2, 4, 5, 6, 7), "3D"),
    "transposed": transposed((2, 5, 6, 6), (5, 7, 3, 3), (2, 7, 13, 13)),
    "dense": dense((6, 24), (10, 24), (6, 10)),
    "dense of a sequence": product((6, 5, 24), (10, 24), (6, 5, 10), "Dense")[:1],
    "product": product((5, 7), (7, 9), (5, 9)),
    "batched product": product((4, 5, 7), (4, 7, 9), (4, 5, 9), "BatchMatMul"),
    "product of heads": product((2, 3, 5, 7), (2, 3, 7, 5), (2, 3, 5, 5), "BatchMatMul"),
    "lstm": lstm((5, 3, 8), (1, 3, 16), (5, 3, 16)),
}
GROUPS = {"grouped": 4, "depthwise": 6}


SAID = ["stored", *(["live"] if importlib.util.find_spec("torch") else [])]


@pytest.fixture(scope="module", params=SAID)
def counted(request):
    if request.param == "stored":
        return json.loads((CAPTURES / "torch_flops.json").read_text(encoding="utf-8"))
    done = subprocess.run([sys.executable, SCRIPT], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_has_the_operations_that_torch_counts(counted, layer):
    ours, theirs = flops_of(LAYERS[layer][0]), counted[layer]
    assert ours
    assert ours == theirs["forward"]
    assert theirs["profiler"] == (0 if layer in PROFILER_LEAVES_OUT else ours)


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if len(LAYERS[layer]) > 1])
def test_its_gradients_have_those_of_the_backward_pass(counted, layer):
    """Torch counts the gradient of a grouped weight as if the groups were one; what is computed is a part of it."""
    groups = GROUPS.get(layer, 1)
    gradients = [flops_of(gradient) for gradient in LAYERS[layer][1:]]
    assert sum(gradients) + (groups - 1) * gradients[-1] == counted[layer]["backward"]
