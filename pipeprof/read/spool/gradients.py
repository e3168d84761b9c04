"""What gradients work on that C++ launches without shapes in PyNative: the tensors of their forward operators.

The backward pass runs the forward operators in reverse order. A product gives two products at most, one for each
factor, over the same three tensors: which is which changes neither operations nor bytes. Operators that always give
one gradient of a type of its own divide both passes; between two of them only what fits in one way counts. All else is
not known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from pipeprof.read.flops import Call, Tensor
from pipeprof.read.mindspore_ops import op_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeprof.read.spool.operators import Placed

    Lookup = Callable[[Placed], Call | None]

PRODUCTS = ("MatMul", "BatchMatMul")
GRADIENTS = {
    "BiasAdd": "BiasAddGrad", "ReLU": "ReluGrad", "Conv2D": "Conv2DBackpropFilter", "Conv3D": "Conv3DBackpropFilter",
    "MaxPool": "MaxPoolGrad", "BatchNorm": "BatchNormGrad", "LayerNorm": "LayerNormGrad", "Tanh": "TanhGrad",
    "Sigmoid": "SigmoidGrad",
}  # fmt: skip
# Their gradients may launch products, too: nothing can be told apart then.
_OTHER_PRODUCTS = frozenset({"Dense", "Addmm", "Addmv", "Addbmm", "Baddbmm", "Einsum", "LSTM", "GRUV2", "DynamicRNN"})
_OF_A_LAYER = tuple(GRADIENTS[kind] for kind in ("ReLU", "Conv2D", "Conv3D"))
_SAME_TENSOR = {"BiasAddGrad": (0, 0), "Conv2DBackpropFilter": (0, 1), "Conv3DBackpropFilter": (0, 1)}


def gradient_calls(placed: Sequence[Placed], call_of: Lookup) -> dict[str, Call]:
    """By name, the gradients that belong to the same call in every step.

    `placed` in order of start; `call_of`: what is known of an execution without this.
    """
    calls: dict[str, Call | None] = {}
    for forward, backward in _passes(placed):
        layers = _layers(forward, backward, call_of)
        for item in backward:
            kind = _kind(item)
            if kind in (*PRODUCTS, *_OF_A_LAYER):
                layer = layers.get(id(item))
                call = None if layer is None else _gradient(kind, layer)
                calls[item.name] = call if calls.get(item.name, call) == call else None
    return {name: call for name, call in calls.items() if call is not None}


def _passes(placed: Sequence[Placed]) -> Iterator[tuple[list[Placed], list[Placed]]]:
    """Each forward pass with the backward pass behind it."""
    parted = [item for item in placed if item.step is not None and item.phase in ("forward", "backward")]
    parted.sort(key=lambda item: item.step or 0)  # stable: in order of start within a step
    forward: list[Placed] = []
    for (_, phase), items in groupby(parted, key=lambda item: (item.step, item.phase)):
        if phase == "forward":
            forward = list(items)
        elif forward:
            yield forward, list(items)
            forward = []


def _layers(forward: Sequence[Placed], backward: Sequence[Placed], call_of: Lookup) -> dict[int, Call]:
    """The forward call of each gradient, by its id(), where only one fits."""
    first, second = Counter(map(_kind, forward)), Counter(map(_kind, backward))
    if _OTHER_PRODUCTS & first.keys() or GRADIENTS.keys() & second.keys():  # the latter: a recomputed forward pass
        return {}
    paired = {grad: kind for kind, grad in GRADIENTS.items() if 0 < first[kind] == second[grad]}
    before, layers_of = _divided(reversed(forward), frozenset(paired.values()))
    behind, gradients = _divided(backward, frozenset(paired))
    if not _fit(layers_of, gradients, call_of):
        return {}
    calls = {id(two): call_of(one) for one, two in zip(layers_of, gradients, strict=True)}
    for some, others in zip(before, behind, strict=True):
        for kind, other in (PRODUCTS, PRODUCTS[::-1]):
            mine = [item for item in others if _kind(item) == kind]
            if _is_whole(other, some, others):
                calls |= _of_products([call_of(item) for item in some if _kind(item) == kind], mine)
    return {item: call for item, call in calls.items() if call is not None}


def _divided(
    items: Iterator[Placed] | Sequence[Placed], dividers: frozenset[str]
) -> tuple[list[list[Placed]], list[Placed]]:
    """What lies between the operators of some types, and these."""
    between: list[list[Placed]] = [[]]
    at: list[Placed] = []
    for item in items:
        if _kind(item) in dividers:
            at.append(item)
            between.append([])
        else:
            between[-1].append(item)
    return between, at


def _fit(layers: Sequence[Placed], gradients: Sequence[Placed], call_of: Lookup) -> bool:
    """Whether gradients come in the order of their layers, reversed, by type and by the shapes that are known."""
    for one, two in zip(layers, gradients, strict=True):
        kind = _kind(two)
        if GRADIENTS[_kind(one)] != kind:
            return False
        layer, gradient = call_of(one), call_of(two)
        places = _SAME_TENSOR.get(kind)
        if places is None or layer is None or gradient is None:
            continue
        ours, theirs = layer.inputs[places[0] :], gradient.inputs[places[1] :]  # empty where no shape was recorded
        if ours and theirs and ours[0].shape != theirs[0].shape:
            return False
    return True


def _is_whole(kind: str, layers: Sequence[Placed], gradients: Sequence[Placed]) -> bool:
    """Whether a type of products gave both its gradients as that type, and so none as the other one."""
    return 2 * sum(_kind(item) == kind for item in layers) == sum(_kind(item) == kind for item in gradients)


def _of_products(layers: Sequence[Call | None], gradients: Sequence[Placed]) -> dict[int, Call | None]:
    """Of products between the same neighbours: two for each, or one for the only one, or all are alike."""
    if len(gradients) == 2 * len(layers):
        return {id(item): layers[index // 2] for index, item in enumerate(gradients)}
    if layers and len(gradients) < 2 * len(layers) and all(layer == layers[0] for layer in layers):
        return {id(item): layers[0] for item in gradients}
    return {}


def _gradient(kind: str, layer: Call) -> Call | None:
    if kind == GRADIENTS["ReLU"]:
        return Call(kind, layer.outputs * 2, layer.outputs)
    if kind in _OF_A_LAYER:
        inputs = layer.inputs
        return Call(kind, (*layer.outputs, inputs[0]), (inputs[1],)) if layer.outputs and len(inputs) > 1 else None
    ranks = {len(tensor.shape or ()) for tensor in layer.inputs[:2]}
    batches = {(tensor.shape or ())[:-2] for tensor in layer.inputs[:2]}
    if len(ranks) == len(batches) == 1:
        return layer
    # A factor that was repeated over a batch has a larger gradient, of which the sum is taken behind: bytes not known.
    return replace(
        layer,
        inputs=tuple(Tensor(tensor.shape) for tensor in layer.inputs),
        outputs=tuple(Tensor(tensor.shape) for tensor in layer.outputs),
    )


def _kind(item: Placed) -> str:
    return item.execution.type or op_type(item.execution.name)
