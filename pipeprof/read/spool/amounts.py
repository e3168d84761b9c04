"""Operations and bytes of the operators of a training: from compiled graphs, the calls of a step, or launches.

What gradients work on that C++ launches without shapes in PyNative: the tensors of their forward operators.

The backward pass runs the forward operators in reverse order. A product gives two products at most, one for each
factor, over the same three tensors: which is which changes neither operations nor bytes. Operators that always give
one gradient of a type of its own divide both passes; between two of them only what fits in one way counts. All else is
not known.

Graphs as MindSpore compiled them (`graph-N.anf`): tensors and attributes of each operator, by its full name.

The files are protocol buffers of MindSpore's anf_ir.proto, of which only the fields below are read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.read.flops import Call, Tensor, bytes_of, flops_of
from pipeprof.read.mindspore_ops import op_type
from pipeprof.read.source.wire import BAD, fields, signed, varint
from pipeprof.read.spool.lines import SpoolNotes, content, shown

if TYPE_CHECKING:
    from pipeprof.read.spool.operators import Placed
    from pipeprof.read.spool.process import Process

    Lookup = Callable[[Placed], Call | None]

_ORDINAL = re.compile(r"([^/]+)#(\d+)")
_GRADIENTS = {
    "Conv2DBackpropInput": "Conv2D", "Conv2DBackpropFilter": "Conv2D",
    "Conv3DBackpropInput": "Conv3D", "Conv3DBackpropFilter": "Conv3D",
}  # fmt: skip


class Amounts:
    """Operations and bytes of each operator of a process."""

    def __init__(self, process: Process, placed: Sequence[Placed]) -> None:
        self._graphs = load_graphs(process.folder, process.notes)
        self._calls = [call for event in process.all("operands") for call in _called(event)]
        self._numbered = _numbered(self._calls, placed)
        self._gradients: dict[str, Call] = {}
        self._gradients = gradient_calls(placed, self._call)
        self._amounts: dict[tuple[str, str | None], tuple[int | None, int | None]] = {}

    def of(self, item: Placed) -> tuple[int | None, int | None]:
        """Operations and bytes of one execution; None for what cannot be told."""
        if item.execution.is_of_torch:
            return item.execution.flops, None
        key = (item.name, item.execution.shapes)
        if key not in self._amounts:
            call = self._call(item)
            self._amounts[key] = (None, None) if call is None else (flops_of(call), bytes_of(call))
        return self._amounts[key]

    def shapes_of(self, item: Placed) -> tuple[str | None, str | None]:
        """Shapes of inputs and outputs: of inputs as the launch list has them, else as Python called the operator."""
        call = None if item.execution.is_of_torch else self._call(item)
        inputs, outputs = ("", "") if call is None else (_text(call.inputs), _text(call.outputs))
        return item.execution.shapes if item.execution.shapes is not None else inputs or None, outputs or None

    def written_by(self, item: Placed) -> list[int]:
        """Bytes of each tensor that an execution writes, as far as they are known."""
        call = self._call(item)
        return [] if call is None else [size for tensor in call.outputs if (size := tensor.size) is not None]

    def parameters_of(self, item: Placed) -> tuple[str, ...]:
        """Names of the parameters that an operator of a graph reads (`head.fc.weight`)."""
        call = self._graphs.get(item.name)
        return () if call is None else call.parameters

    def _call(self, item: Placed) -> Call | None:
        listed = _listed(item)
        call = self._graphs.get(item.name) or self._numbered.get(item.name)
        if call is not None:
            return call if listed is None or _agree(call, listed) else listed
        call = self._gradients.get(item.name)
        if call is not None and (listed is None or _agree(call, listed)):
            return call
        return None if listed is None else self._completed(listed)

    def _completed(self, listed: Call) -> Call:
        """A launch with what the call of its shapes, or of its layer, adds; as it is where several calls fit."""
        forward = _GRADIENTS.get(listed.type)
        if forward is None:
            calls = {call for call in self._calls if call.type == listed.type and _agree(call, listed)}
            return calls.pop() if len(calls) == 1 else listed
        layers = {call for call in self._calls if call.type == forward and _is_gradient(listed, call)}
        return _gradient(listed, layers.pop()) if len(layers) == 1 else listed


def _called(event: Mapping[str, object]) -> list[Call]:
    """The calls of the recorded step, in order."""
    kinds = [
        Call(
            name, _tensors(inputs), _tensors(outputs),
            {key: value if isinstance(value, int) else tuple(value) for key, value in attributes},
        )
        for name, inputs, outputs, attributes in event["kinds"]  # type: ignore[attr-defined]
    ]  # fmt: skip
    return [kinds[number] for number in event["calls"] if number < len(kinds)]  # type: ignore[attr-defined]


def _tensors(forms: Sequence[tuple[str, Sequence[int]]]) -> tuple[Tensor, ...]:
    return tuple(Tensor(tuple(shape), dtype) for dtype, shape in forms)


def _numbered(calls: Sequence[Call], placed: Sequence[Placed]) -> dict[str, Call]:
    """Calls by the name of their operator, for types of which every forward pass launched as many as Python called."""
    launched: dict[str, set[int]] = defaultdict(set)
    for item in placed:
        match = _ORDINAL.fullmatch(item.name)
        if match and item.phase == "forward":
            launched[match[1]].add(int(match[2]))
    renamed = [call if call.type in launched else _as_product(call) for call in calls]
    return _in_order(renamed, launched) | _in_order(calls, launched)


def _as_product(call: Call) -> Call:
    """A function for products of any rank, under the type that the CPU launches it as."""
    if call.type not in ("MatMulExt", "BatchMatMulExt"):
        return call
    flat = all(len(tensor.shape or ()) == 2 for tensor in call.inputs)
    return replace(call, type="MatMul" if flat else "BatchMatMul")


def _in_order(calls: Sequence[Call], launched: Mapping[str, set[int]]) -> dict[str, Call]:
    called = Counter(call.type for call in calls)
    seen: Counter[str] = Counter()
    named = {}
    for call in calls:
        seen[call.type] += 1
        if launched.get(call.type) == set(range(1, called[call.type] + 1)):
            named[f"{call.type}#{seen[call.type]}"] = call
    return named


def _listed(item: Placed) -> Call | None:
    """An execution as the launch list has it: shapes of inputs, the last of which may be attributes."""
    if item.execution.shapes is None:
        return None
    inputs = []
    for text in item.execution.shapes.split("; "):
        sizes = text.strip("[]").split(", ") if text.startswith("[") and text != "[]" else []
        if not sizes or not all(size.isdigit() and len(size) < 16 for size in sizes):
            break
        inputs.append(Tensor(tuple(map(int, sizes))))
    kind = item.execution.type or op_type(item.execution.name)
    listed = Call(kind, tuple(inputs))
    return replace(listed, outputs=listed.inputs[:1]) if kind in _AS_ITS_INPUT and inputs else listed


_AS_ITS_INPUT = frozenset({"BiasAdd", "ReLU", "ReluGrad"})  # the output has the shape of the first input


def _text(tensors: Sequence[Tensor]) -> str:
    """Their shapes, as the launch list writes them."""
    return "; ".join("unknown" if tensor.shape is None else str(list(tensor.shape)) for tensor in tensors)


def _agree(call: Call, listed: Call) -> bool:
    """Whether the tensors that both know have the same shapes."""
    return all(one.shape == two.shape for one, two in zip(call.inputs, listed.inputs, strict=False))


def _is_gradient(listed: Call, layer: Call) -> bool:
    """Whether a launch is one of a layer's: the gradient of its output, and its weight or its input."""
    other = 1 if listed.type.endswith("Input") else 0
    return (
        len(listed.inputs) > 1 < len(layer.inputs)
        and bool(layer.outputs)
        and listed.inputs[0].shape == layer.outputs[0].shape
        and listed.inputs[1].shape == layer.inputs[other].shape
    )


def _gradient(listed: Call, layer: Call) -> Call:
    result = 0 if listed.type.endswith("Input") else 1
    inputs = (layer.outputs[0], layer.inputs[1 - result])
    return Call(listed.type, inputs, (layer.inputs[result],))


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
                call = None if layer is None else _of_gradient(kind, layer)
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


def _of_gradient(kind: str, layer: Call) -> Call | None:
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


MOST_FILES = 64
_DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 43: "complex64", 44: "complex128", 46: "bfloat16",
}  # fmt: skip
_ATTRIBUTES = ("kernel_size", "is_training")
_GIVEN = {"BatchNorm": (5, "is_training")}  # attributes that are still inputs in a graph that has not run yet
_LOAD = "Load"  # reads a parameter, and gives it on
_DEEPEST = 20  # tuples in tuples

# Field numbers of the messages.
_MODEL_GRAPH = 4
_GRAPH_NODE, _GRAPH_PARAMETER, _GRAPH_CONSTANT = 1, 3, 5
_NODE_INPUT, _NODE_NAME, _NODE_KIND, _NODE_ATTRIBUTE, _NODE_OUTPUT, _NODE_FULL_NAME = 1, 2, 3, 5, 6, 8
_NAME, _VALUE = 1, 2
_VALUE_BOOL, _VALUE_INT, _VALUE_TENSOR, _VALUE_VALUES = 2, 3, 8, 18
_TYPE_TENSOR, _TYPE_SEQUENCE = 2, 3


def load_graphs(folder: Path, notes: SpoolNotes) -> dict[str, Call]:
    """Operators of all graphs of a process by full name. Where two graphs differ in one, the name has none."""
    merged: dict[str, Call | None] = {}
    for path in sorted(folder.glob("graph-*.anf"))[:MOST_FILES]:
        try:
            calls = read_graph(content(path, notes))
        except BAD:
            notes.damaged(
                f"{shown(path)} is not a graph as MindSpore writes it: amounts of its operators are not known"
            )
            continue
        for name, call in calls.items():
            merged[name] = call if merged.get(name, call) == call else None
    return {name: call for name, call in merged.items() if call is not None}


def read_graph(data: bytes) -> dict[str, Call]:
    """Operators of one graph by full name. Raises ValueError, IndexError or UnicodeDecodeError for anything else."""
    nodes: list[bytes] = []
    parameters: dict[str, str] = {}  # by the name of what reads it as it is
    tensors: dict[str, tuple[Tensor, ...]] = {}
    constants: dict[str, Any] = {}
    for graph in _each(data, _MODEL_GRAPH):
        for number, value in fields(graph):
            if number == _GRAPH_NODE:
                nodes.append(value)
            elif number == _GRAPH_PARAMETER:
                tensors[_text_of(value, _NAME)] = _typed(_first(value, _VALUE))
                parameters[_text_of(value, _NAME)] = _text_of(value, _NAME)
            elif number == _GRAPH_CONSTANT:
                tensors[_text_of(value, _NAME)] = _constant(_first(value, _VALUE))
                constants[_text_of(value, _NAME)] = _plain(_first(value, _VALUE))
    tensors.update((_text_of(node, _NODE_NAME), _typed(_first(node, _NODE_OUTPUT))) for node in nodes)
    for node in nodes:
        read = next(_each(node, _NODE_INPUT), b"") if _text_of(node, _NODE_KIND) == _LOAD else b""
        if read and (name := _text_of(read, _NAME)) in parameters:
            parameters[_text_of(node, _NODE_NAME)] = parameters[name]
    return {
        name: _call(node, tensors, constants, parameters) for node in nodes if (name := _text_of(node, _NODE_FULL_NAME))
    }


def _call(
    node: bytes, tensors: dict[str, tuple[Tensor, ...]], constants: dict[str, Any], parameters: dict[str, str]
) -> Call:
    kind, names = _text_of(node, _NODE_KIND), [_text_of(given, _NAME) for given in _each(node, _NODE_INPUT)]
    inputs = [tensor for name in names for tensor in tensors.get(name, ())]  # what is no tensor has none
    attributes = {
        name: _plain(_first(one, _VALUE))
        for one in _each(node, _NODE_ATTRIBUTE)
        if (name := _text_of(one, _NAME)) in _ATTRIBUTES
    }
    at, given = _GIVEN.get(kind, (0, ""))
    if given and len(names) > at and names[at] in constants:
        attributes.setdefault(given, constants[names[at]])
    read = tuple(parameters[name] for name in names if "." in parameters.get(name, ""))
    return Call(kind, tuple(inputs), _typed(_first(node, _NODE_OUTPUT)), attributes, read)


def _typed(message: bytes, depth: int = 0) -> tuple[Tensor, ...]:
    """The tensors of a TypeProto: one, those of a tuple, or none."""
    tensors: list[Tensor] = []
    for number, value in fields(message):
        if number == _TYPE_TENSOR:
            sizes = [_number(size, 1) for dims in _each(value, 2) for size in _each(dims, 1)]
            shaped = bool(sizes) or not depth  # a part of a tuple has its type alone
            tensors.append(Tensor(tuple(sizes) if shaped else None, _DTYPES.get(_number(value, 1))))
        elif number == _TYPE_SEQUENCE and depth < _DEEPEST:
            tensors += [tensor for part in _each(value, 1) for tensor in _typed(part, depth + 1)]
    return tuple(tensors)


def _constant(value: bytes) -> tuple[Tensor, ...]:
    """The tensor that a constant is; plain numbers and tuples are no tensors."""
    return tuple(Tensor(tuple(_varints(one, 1)), _DTYPES.get(_number(one, 2))) for one in _each(value, _VALUE_TENSOR))


def _plain(value: bytes, depth: int = 0) -> Any:
    """A number, a truth or a tuple of them."""
    parts = [_plain(one, depth + 1) for one in _each(value, _VALUE_VALUES)] if depth < _DEEPEST else []
    numbers = [number for field in (_VALUE_INT, _VALUE_BOOL) for number in _varints(value, field)]
    return tuple(parts) if parts else next(iter(numbers), 0)


def _text_of(message: bytes, field: int) -> str:
    return _first(message, field).decode()


def _first(message: bytes, field: int) -> bytes:
    return next(_each(message, field), b"")


def _number(message: bytes, field: int) -> int:
    return next(iter(_varints(message, field)), 0)


def _varints(message: bytes, field: int) -> Iterator[int]:
    """Numbers of a field, whether each stands alone or all are packed into one."""
    for number, value in fields(message):
        if number != field:
            continue
        if isinstance(value, int):
            yield signed(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            yield signed(one)


def _each(message: bytes, field: int) -> Iterator[bytes]:
    """The messages, or texts, of a field."""
    return (value for number, value in fields(message) if number == field and not isinstance(value, int))
