"""Operations and traffic of one execution of an operator, from its type, its shapes and its data types.

All formulas are in `FORMULAS`. A multiply-add is two operations and a bias is not counted, as in the other programs
whose figures stand beside these: torch (torch/csrc/profiler/util.cpp, computeFlops), MegEngine
(src/plugin/impl/opr_footprint.cpp) and fvcore (fvcore/nn/jit_handles.py). What a row follows is said beside it. A type
without a row has no figure: N/A is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_LARGEST = 1 << 62
SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """Shape and data type (`float32`) of a tensor; None where it is not known."""

    shape: tuple[int, ...] | None
    dtype: str | None = None

    @property
    def elements(self) -> int:
        """Number of elements. Raises ValueError when a size is not known."""
        if self.shape is None or any(size < 0 for size in self.shape):
            raise ValueError(self.shape)
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Its size. Raises ValueError or KeyError when it cannot be told."""
        return self.elements * SIZES[str(self.dtype)]

    @property
    def size(self) -> int | None:
        """Its size in bytes; of a tensor without a known type that of the most, 4 bytes each. None without a shape."""
        if self.shape is None or any(size < 0 for size in self.shape):
            return None
        return self.elements * SIZES.get(str(self.dtype), 4)


@dataclass(frozen=True)
class Call:
    """An operator with its tensors, and what else its formula needs: `kernel_size`, `is_training`.

    `parameters`: names of those of its inputs that are parameters of a graph.
    """

    type: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    parameters: tuple[str, ...] = field(default=(), compare=False)


def flops_of(call: Call) -> int | None:
    """Floating-point operations of one execution; None when there is no formula, or a shape is missing."""
    formula = FORMULAS.get(call.type)
    try:
        return None if formula is None else fitting(formula(call))
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError):
        return None


def bytes_of(call: Call) -> int | None:
    """Bytes of all tensors that go in and come out, each once; None when one is not known. Caches are not looked at."""
    if not call.inputs or not call.outputs:
        return None
    try:
        return fitting(sum(tensor.bytes for tensor in (*call.inputs, *call.outputs)))
    except (ValueError, KeyError):
        return None


def fitting(count: int) -> int | None:
    """A number of operations or bytes; None for one that no table takes."""
    return count if 0 <= count < _LARGEST else None


def _shape(tensor: Tensor) -> tuple[int, ...]:
    if tensor.shape is None or not tensor.shape:
        raise ValueError(tensor.shape)
    return tensor.shape


def _taps(weight: Tensor) -> int:
    """Multiply-adds for one output element of a convolution: channels of a group by the size of the kernel."""
    return weight.elements // _shape(weight)[0]


def _convolution(call: Call) -> int:
    return 2 * call.outputs[0].elements * _taps(call.inputs[1])


def _gradient_of_input(call: Call) -> int:
    """Also a transposed convolution. Inputs: gradient of the output, weight."""
    return 2 * call.inputs[0].elements * _taps(call.inputs[1])


def _gradient_of_weight(call: Call) -> int:
    """Inputs: gradient of the output, input; the output has the shape of the weight."""
    return 2 * call.inputs[0].elements * _taps(call.outputs[0])


def _product(call: Call) -> int:
    """Matrices, or batches of them, transposed or not: m and k are the last two sizes of the first in some order."""
    one, two = _shape(call.inputs[0]), _shape(call.inputs[1])
    if len(one) == 1 or len(two) == 1:
        inner = one[0] if len(one) == 1 else two[0]
    else:
        inner = one[-1] * one[-2] // _shape(call.outputs[0])[-2]
    return 2 * call.outputs[0].elements * inner


def _lstm(call: Call) -> int:
    """One layer in one direction, all that CPUs take: four gates of the input and the hidden state, at each time."""
    (time, batch, size), (layers, _, hidden) = _shape(call.inputs[0]), _shape(call.inputs[1])
    if layers != 1:
        raise ValueError(layers)
    return 2 * time * batch * 4 * hidden * (size + hidden)


def _pooling(call: Call) -> int:
    """Elements under the window, for each output element."""
    kernel = call.attributes["kernel_size"]
    area = math.prod(kernel) if isinstance(kernel, (list, tuple)) else int(kernel) ** 2
    return call.outputs[0].elements * area


_ELEMENTWISE = (
    "Add", "Sub", "Mul", "Div", "RealDiv", "BiasAdd", "Neg", "Square", "Maximum", "Minimum", "ReLU", "ReluGrad",
)  # fmt: skip
_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "SumExt", "MeanExt", "BiasAddGrad")

FORMULAS: dict[str, Callable[[Call], int]] = {
    # torch and MegEngine: 2 x outputs x channels of a group x kernel
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "DepthwiseConv2dNative": _convolution,
    # the same sum, taken from the other side
    "Conv2DBackpropInput": _gradient_of_input,
    "Conv3DBackpropInput": _gradient_of_input,
    "Conv2DTranspose": _gradient_of_input,
    "Conv3DTranspose": _gradient_of_input,
    "Conv2DBackpropFilter": _gradient_of_weight,
    "Conv3DBackpropFilter": _gradient_of_weight,
    # torch and MegEngine: 2 x m x n x k, by batch
    "MatMul": _product,
    "BatchMatMul": _product,
    "MatMulExt": _product,
    "BatchMatMulExt": _product,
    "Dense": _product,
    # torch: the products of its gates
    "LSTM": _lstm,
    "LSTMGrad": lambda call: 2 * _lstm(call),  # of each product one for either factor; its inputs begin as those
    # torch (add and mul) and MegEngine (the others): one for each element
    **dict.fromkeys(_ELEMENTWISE, lambda call: call.outputs[0].elements),
    "AddN": lambda call: call.outputs[0].elements * (len(call.inputs) - 1),
    # MegEngine: Pooling is outputs x window; Reduce is its input
    "MaxPool": _pooling,
    "AvgPool": _pooling,
    **dict.fromkeys(_REDUCTIONS, lambda call: call.inputs[0].elements),
    # fvcore: mean, variance, centre, scale and shift; with statistics that are given, only scale and shift
    "BatchNorm": lambda call: call.inputs[0].elements * (5 if call.attributes["is_training"] else 2),
    "LayerNorm": lambda call: call.inputs[0].elements * 5,
}
