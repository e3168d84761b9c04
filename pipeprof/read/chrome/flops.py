"""Operations of one execution: as the trace says, else from its shapes, for the operators that PyTorch counts.

The formulas are those of torch/csrc/profiler/util.cpp (computeFlops): a multiply-add is two operations, the bias of a
convolution or a matrix product is not counted. Operators that it does not count have none here either.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.read.chrome.events import UNREADABLE
from pipeprof.read.source.numbers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeprof.read.chrome.kinds import Info

CONVOLUTION = "aten::conv2d"  # the one for which shapes are not enough
_NO_TENSORS = ("Scalar", "ScalarList", "None", "")  # among the types of arguments
_shapes = msgspec.json.Decoder(list[list[int]])
_values = msgspec.json.Decoder(list[Any])
_lists = msgspec.json.Decoder(list[int])


def flops_of(info: Info) -> int | None:
    """Operations of one execution; None when it cannot be told."""
    if info.extra.isdigit():
        return _fitting(int(info.extra)) if len(info.extra) < 20 else None
    count = _COUNTED.get(info.name)
    if count is None or not info.dims:
        return None
    try:
        shapes = _shapes.decode(info.dims)
        if count is _elements and not shapes[0] and _values.decode(info.types)[0] in _NO_TENSORS:
            return None
        return _fitting(count(shapes, info.extra))
    except (*UNREADABLE, IndexError, ZeroDivisionError):
        return None


def _fitting(count: int) -> int | None:
    return count if 0 <= count < LARGEST else None


def _elements(shapes: Sequence[Sequence[int]], _extra: bytes) -> int:
    return math.prod(shapes[0])


def _product(shapes: Sequence[Sequence[int]], _extra: bytes) -> int:
    """Of the matrices (or batches of them) at the end of the tensors: [.., m, k] x [.., k, n]."""
    one, two = shapes[0], shapes[1]
    batch = one[0] if len(one) == 3 else 1
    return 2 * math.prod(one) // one[-1] // batch * math.prod(two)


def _sum_and_product(shapes: Sequence[Sequence[int]], extra: bytes) -> int:
    return _product(shapes[1:], extra)


def _convolution(shapes: Sequence[Sequence[int]], extra: bytes) -> int:
    """Stride, padding, dilation and groups are among the values of the arguments, as text."""
    given = _values.decode(extra)
    stride, padding, dilation = (_lists.decode(given[index]) for index in (3, 4, 5))
    batch, channels, *image = shapes[0]
    out_channels, _, *kernel = shapes[1]
    if len(image) != 2 or len(kernel) != 2:
        raise IndexError
    size = [
        (image[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
        for axis in (0, 1)
    ]
    return 2 * batch * math.prod(size) * math.prod(kernel) * channels * out_channels // int(given[6])


_COUNTED: dict[str, Callable[[Sequence[Sequence[int]], bytes], int]] = {
    CONVOLUTION: _convolution,
    "aten::mm": _product,
    "aten::bmm": _product,
    "aten::addmm": _sum_and_product,
    "aten::baddbmm": _sum_and_product,
    "aten::mul": _elements,
    "aten::add": _elements,
}
