"""Which forward operator each backward operator of a PyNative step belongs to, so that it has the line of that one.

The backward pass goes through the forward operators in reverse order, and each gives a few gradients, one after the
other. So the backward operators are cut into stretches, one for each forward operator; of all ways to do that the one
counts whose types fit best. What does not fit belongs to nobody: views, for one, are no operators of the forward pass.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeprof.read.mindspore_ops import op_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeprof.read.mindspore_ops import Execution

MOST_GRADIENTS = 10  # of one forward operator
MOST_WORK = 2_000_000  # stretches that are compared; longer steps are left
# How well a gradient fits: it is of this type alone, of the same type, often so, of whatever it is, not.
OWN, SAME, LIKELY, ANY, ODD = 4, 3, 2, 0, -1
USED = 1  # that a forward operator has a gradient at all
ALIKE = 2  # gradients of one type that one forward operator has, such as the products for both factors

_VARIANT = re.compile(r"(Ext|V\d+|D)+$")
_EXPANDED = re.compile(r"/_([A-Za-z0-9]+?)(?:Backward|Grad)/")  # operators of C++ that stand for one gradient
_OWN = re.compile(r"Grad|Backprop|Backward")
_NAMES = {"RealDiv": "Div", "Sum": "ReduceSum", "Mean": "ReduceMean", "BMM": "BatchMatMul", "AddN": "Add"}
_ANYWHERE = frozenset({"Add", "Ones", "OnesLike", "ZerosLike", "Zeros"})  # sums of tensors used twice, and seeds
_SUMS, _PRODUCTS, _SPREAD = {"ReduceSum"}, {"MatMul", "BatchMatMul", "Transpose"}, {"Tile", "BroadcastTo"}
_GIVES: dict[str, set[str]] = {
    "Add": _SUMS, "Sub": {"Neg", *_SUMS}, "Mul": {"Mul", *_SUMS}, "Div": {"Div", "Neg", "Mul", *_SUMS},
    "ReduceSum": _SPREAD, "ReduceMean": {"Div", "Mul", *_SPREAD}, "ReduceMax": {"Equal", "Div", "Mul", *_SUMS},
    "ReduceMin": {"Equal", "Div", "Mul", *_SUMS}, "Exp": {"Mul"}, "Log": {"Div"}, "Square": {"Mul"},
    "Pow": {"Mul", "Pow", "Log"}, "Sqrt": {"Div", "Mul"}, "Erf": {"Pow", "Square", "Neg", "Exp", "Mul"},
    "Softmax": {"Mul", "Sub", *_SUMS}, "LogSoftmax": {"Exp", "Mul", "Sub", *_SUMS}, "Tile": _SUMS,
    "BroadcastTo": _SUMS, "MaskedFill": {"MaskedFill", *_SUMS}, "Select": {"Select", "Mul", *_SUMS},
    "Gather": {"UnsortedSegmentSum"}, "StridedSlice": {"Pad"}, "Concat": {"Slice", "Split"}, "Split": {"Concat"},
    "Dropout": {"Mul"}, "MatMul": _PRODUCTS, "BatchMatMul": _PRODUCTS, "Dense": {"BiasAddGrad", *_PRODUCTS, *_SUMS},
}  # fmt: skip


def forward_of(forward: Sequence[Execution], backward: Sequence[Execution]) -> list[int | None]:
    """The index of its forward operator for each backward operator; both in order of start.

    None for all where there are too many to compare.
    """
    if len(forward) * len(backward) * MOST_GRADIENTS > MOST_WORK:
        return [None] * len(backward)
    reversed_types = [_type(one) for one in reversed(forward)]
    gradients = [(_type(one), one.name) for one in backward]
    owners: list[int | None] = [None] * len(backward)
    for number, begin, end in _stretches(reversed_types, gradients):
        fits = [_fit(reversed_types[number], *gradient) for gradient in gradients[begin:end]]
        if max(fits) > ANY:
            owners[begin:end] = [None if fit == ODD else len(forward) - 1 - number for fit in fits]
    return owners


def _stretches(forward: Sequence[str], gradients: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int, int]]:
    """(forward operator, begin, end) of each stretch that is not empty, the last first."""
    worst = -(1 << 30)
    best = [0, *[worst] * len(gradients)]  # by how many gradients the forward operators so far have
    chosen: list[list[int]] = []  # for each forward operator: how many of the first `end` come before its own
    for kind in forward:
        following, begins = list(best), list(range(len(best)))
        fits = [_fit(kind, *gradient) for gradient in gradients]
        for end in range(1, len(best)):
            value = 0
            seen: list[str] = []
            for begin in range(end - 1, max(-1, end - 1 - MOST_GRADIENTS), -1):
                fit, gradient = fits[begin], gradients[begin][0]
                value += fit if fit <= ANY or seen.count(gradient) < ALIKE else ODD
                if fit > ANY:
                    seen.append(gradient)
                total = best[begin] + value + (USED if seen else 0)
                if total > following[end]:
                    following[end], begins[end] = total, begin
        best = following
        chosen.append(begins)
    end = len(gradients)
    if best[end] <= worst // 2:  # more gradients than the forward operators can have
        return
    for number in range(len(forward) - 1, -1, -1):
        begin = chosen[number][end]
        if begin < end:
            yield number, begin, end
        end = begin


def _fit(forward: str, gradient: str, name: str) -> int:
    """How well a gradient fits a forward operator, by types; `name`: the gradient's full one."""
    if gradient in _ANYWHERE:
        return ANY
    expanded = _EXPANDED.search(f"/{name}")
    if expanded is not None:
        return OWN if _plain(expanded[1]) == forward else ODD
    if _OWN.search(gradient):
        if _plain(_OWN.split(gradient)[0]).lower() == forward.lower():  # ReluGrad is of ReLU
            return OWN
    elif gradient == forward:
        return SAME
    if gradient in _GIVES.get(forward, ()):
        return LIKELY
    return ANY if gradient == "Cast" else ODD


def _type(execution: Execution) -> str:
    kind = execution.type or op_type(execution.name)
    return kind if _OWN.search(kind) else _plain(kind)


def _plain(kind: str) -> str:
    """A type without what tells its variants apart: `SumExt` and `ReduceSum` have the same gradients."""
    plain = _VARIANT.sub("", kind) or kind
    return _NAMES.get(plain, plain)
