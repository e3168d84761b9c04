"""What differs between the programs that write Chrome traces: their events by category and name, calls and steps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from pipeprof.errors import BAD_PATTERN, UsageError
from pipeprof.read.chrome.events import UNREADABLE, text_of

CALLS = frozenset({"cpu_op", "user_annotation", "python_function"})
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "mtia_workload", "hpu_op"})
# What the first traces of Kineto (torch 1.8 to 1.10) called them, and the legacy profiler's processes.
OLD_CATEGORIES = {
    "Operator": "cpu_op", "operator": "cpu_op", "Python": "python_function", "Runtime": "cuda_runtime",
    "runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
}  # fmt: skip
OLD_PROCESSES = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
API = frozenset({"hip_api", "rccl_api"})  # calls of rocprofv3, which launch work and are operators
HOST_CALLS = ("_runtime", "_driver")
LAUNCHER = "LaunchKernel_"  # torch_dipu's: what is called in it, such as the allocation of the result, is its callee
STEP, STEPS, LOADER = "ProfilerStep#", "ProfilerStep*", "enumerate(DataLoader)#"
AHEAD = "_MultiProcessing"  # in a loader's name: it has worker processes, which make batches ahead
# Calls of data loaders and readers: frames of torch's, and DLIO's and DFTracer's own names.
LOADING = re.compile(
    r"(?:\S*/)?torch/utils/data/\S+\.py\(|(?:\w*DataLoader|\w*Dataset|\w*Reader)\.\w|data(?:loader)?\.(?!py)\w"
)
LOADER_THREAD = re.compile(r"pt_data|pin_memory|data_?loader|prefetch", re.IGNORECASE)
COMPUTING = re.compile(r"\w+\.compute|compute\.(?:step|compute|forward|backward)")  # of DLIO and DFTracer
MEMORY = "[memory]"
# Lines of a device as XLA names them: its steps, and its operators, which it has as streams, too, on a GPU.
DEVICE_PROCESS, STEP_LINE, WORK_LINE, STREAM = "/device:", "Steps", "XLA Ops", "Stream"
SIDES = {"s": 0, "t": 1, "f": 2}
# What the framework's own operator table leaves out (torch/autograd/profiler_util.py, _filter_name).
UNLISTED = frozenset(
    {
        "[OutOfMemory]", "profiler::_record_function_enter", "profiler::_record_function_enter_new",
        "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version",
    }
)  # fmt: skip
PLAIN = DEVICE | {"gpu_user_annotation", "cuda_sync", "overhead"}  # certainly no calls

_shapes = msgspec.json.Decoder(list[list[Any]])


class Info(NamedTuple):
    """What events of one operator have in common; the arguments are JSON text.

    `extra` is what the number of operations needs beside the shapes: itself in digits, or the values of the arguments.
    """

    category: str
    name: str
    dims: bytes
    types: bytes
    stack: bytes
    extra: bytes = b""


class Marks(NamedTuple):
    """A step or a data loader's wait: number of the step, or number of the name; file times."""

    number: int
    start: int
    end: int


def shown(raw: bytes) -> str | None:
    """A JSON argument as text for people; None when there is none."""
    return text_of(msgspec.Raw(raw)) if raw else None


def shapes_shown(raw: bytes) -> str | None:
    """`Input Dims` as `[[8, 16], []]`, written in one way; `[]` for a list of tensors, as torch's own table has it.

    Other forms than JSON stay as they are; None for none.
    """
    try:
        shapes = _shapes.decode(raw)
    except UNREADABLE:
        return shown(raw)
    return json.dumps([[] if any(isinstance(size, list) for size in shape) else shape for shape in shapes])


LINES, RECORDS, PLANES = "lines", "records", "planes"
_LONGEST = 18  # digits of a step's number


@dataclass(frozen=True)
class Dialect:
    """`calls`: the categories of what is called and calls; None: all that are not certainly others.

    `step`: what a step is named, if the user has said so. `form`: events | lines (each is an event, as DFTracer
    writes them) | records (of rocprofv3) | planes (of XLA's profiler).
    """

    calls: frozenset[str] | None
    step: re.Pattern[str] | None = None
    form: str = "events"

    @property
    def lines(self) -> bool:
        """Whether it is DFTracer's, whose steps are found by what computes."""
        return self.form == LINES

    def step_of(self, name: str) -> tuple[int | None, str] | None:
        """The number of the step that an event of this name is, and the name that all steps share; None for no step."""
        if self.step is None:
            return (_number(name[len(STEP) :]), STEPS) if name.startswith(STEP) else None
        match = self.step.fullmatch(name)
        if match is None:
            return None
        if not self.step.groups or match[1] is None:
            return None, name
        begin, end = match.span(1)
        return _number(match[1]), f"{name[:begin]}*{name[end:]}"


TORCH = Dialect(CALLS)  # torch.profiler and its relatives


def pattern(text: str | None) -> re.Pattern[str] | None:
    """What `--step` means. Raises UsageError for what is no regular expression."""
    if text is None:
        return None
    try:
        return re.compile(text)
    except BAD_PATTERN as error:
        raise UsageError(
            f"`{text}` is not a regular expression: {error}", "such as --step 'train_step ([0-9]+)'"
        ) from error


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < _LONGEST else None
