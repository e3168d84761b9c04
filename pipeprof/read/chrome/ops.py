"""Operators, one per name, arguments, phase and source location: their rows in op_info, frames and operations.

Operations of one execution are as the trace says, else from its shapes, for the operators that PyTorch counts. The
formulas are those of torch/csrc/profiler/util.cpp (computeFlops): a multiply-add is two operations, the bias of a
convolution or a matrix product is not counted. Operators that it does not count have none here either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pipeprof.read.chrome.dialect import COMPUTING, LOADER, LOADING, Info, shapes_shown, shown
from pipeprof.read.chrome.events import UNREADABLE, text_of
from pipeprof.read.chrome.numbering import MOST, shortened
from pipeprof.read.flops import fitting

_BETWEEN_FRAMES = re.compile(r";(?:\r?\n)?")
# Frames that the framework's own operator table leaves out (torch/autograd/profiler_util.py, _filter_stack_entry).
_HIDDEN = (
    ("autograd/__init__", "_make_grads"), ("autograd/__init__", "backward"), ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"), ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)  # fmt: skip


class Stacks:
    """Frames numbered from 0: each with the number of its caller."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int | None, str]] = []
        self._numbers: dict[tuple[int | None, str], int] = {}
        self._texts: dict[bytes, int | None] = {}

    def number(self, raw: bytes) -> int | None:
        """The innermost frame of a `Call stack` (frames separated by `;`, innermost first); None for no frame."""
        if len(raw) <= 2:
            return None
        if raw not in self._texts:
            frames = [frame.strip() for frame in _BETWEEN_FRAMES.split(text_of(msgspec.Raw(raw)))]
            at: int | None = None
            for frame in reversed(frames):
                if frame and not any(file in frame and function in frame for file, function in _HIDDEN):
                    at = self.inside(at, shortened(frame))
            self._texts[raw] = at
        return self._texts[raw]

    def inside(self, at: int | None, frame: str) -> int | None:
        """The number of a frame that another one called; the caller's where there are too many."""
        key = (at, frame)
        if key not in self._numbers:
            if len(self.rows) >= MOST:
                return at
            self._numbers[key] = len(self.rows)
            self.rows.append((len(self.rows), at, frame))
        return self._numbers[key]


CONVOLUTION = "aten::conv2d"  # the one for which shapes are not enough
_NO_TENSORS = ("Scalar", "ScalarList", "None", "")  # among the types of arguments
_shapes = msgspec.json.Decoder(list[list[int]])
_values = msgspec.json.Decoder(list[Any])
_lists = msgspec.json.Decoder(list[int])


def flops_of(info: Info) -> int | None:
    """Operations of one execution; None when it cannot be told."""
    if info.extra.isdigit():
        return fitting(int(info.extra)) if len(info.extra) < 20 else None
    count = _COUNTED.get(info.name)
    if count is None or not info.dims:
        return None
    try:
        shapes = _shapes.decode(info.dims)
        if count is _elements and not shapes[0] and _values.decode(info.types)[0] in _NO_TENSORS:
            return None
        return fitting(count(shapes, info.extra))
    except (*UNREADABLE, IndexError, ZeroDivisionError):
        return None


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


OTHER, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, DATA, UNKNOWN = range(7)
PHASES = ("other", "forward", "backward", "optimizer", "communication", "data", None)
HANDED_DOWN = frozenset({BACKWARD, OPTIMIZER, COMMUNICATION, DATA})
_COMMUNICATION = re.compile(r"(?:^|[^a-z])(?:nccl|rccl|hccl|gloo|c10d|oneccl)|record_param_comms|^hcom_", re.IGNORECASE)
COLLECTIVE_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"all_?reduce", "all_reduce"), (r"reduce_?scatter", "reduce_scatter"), (r"all_?gather", "all_gather"),
        (r"all_?to_?all", "all_to_all"), (r"broadcast", "broadcast"), (r"send_?recv", "all_to_all"),
        (r"send", "send"), (r"rece?i?ve?", "receive"), (r"barrier", "barrier"), (r"reduce", "reduce"),
        (r"gather", "gather"), (r"scatter", "scatter"),
    )
)  # fmt: skip


def is_communication(name: str) -> bool:
    """Whether a name is that of a communication library's operator or kernel."""
    return _COMMUNICATION.search(name) is not None


def collective_by_pattern(name: str) -> str | None:
    """all_reduce, send, ... by the name; None when it does not say."""
    return next((kind for pattern, kind in COLLECTIVE_KINDS if pattern.search(name)), None)


def own_phase(info: Info) -> int | None:
    """The phase that an operator's name tells; None when it tells none."""
    name = info.name
    if name.startswith(LOADER) or LOADING.match(name):
        return DATA
    if info.category != "cpu_op" and COMPUTING.fullmatch(name):
        return OTHER
    if info.category != "python_function" and is_communication(name):
        return COMMUNICATION
    if name.startswith("Optimizer."):
        return OPTIMIZER
    if name.startswith(("autograd::engine::", "torch::autograd::AccumulateGrad")):
        return BACKWARD
    return None


class Ops:
    """Operators of a rank, numbered from 0."""

    def __init__(self, stacks: Stacks) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.stacks = stacks
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, info: Info, phase: int, stack_id: int | None, device: str = "CPU") -> int:
        """The number of an operator; its row is made the first time."""
        key: tuple[object, ...] = (info, PHASES[phase], stack_id, device)
        op_id = self._numbers.get(key)
        if op_id is None:
            if len(self.rows) >= 2 * MOST:
                key = (info.category, "(other)", PHASES[phase], device)
                if key in self._numbers:
                    return self._numbers[key]
                info, stack_id = info._replace(name="(other)", dims=b"", types=b"", extra=b""), None
            op_id = self._numbers[key] = len(self.rows)
            self.rows.append((
                op_id, info.name, info.name, PHASES[phase], device, shapes_shown(info.dims), shown(info.types),
                stack_id, info.category or None, flops_of(info),
            ))  # fmt: skip
        return op_id

    def stack_of(self, op_id: int) -> int | None:
        """The source location of an operator; None where it is not known."""
        return self.rows[op_id][self.COLUMNS.index("stack_id")]  # type: ignore[return-value]

    COLUMNS = ("op_id", "name", "type", "phase", "device", "in_shapes", "in_types", "stack_id", "category", "flops")
