"""Events of one batch to rows of numbers: calls, memory, device work, flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeprof.read.kineto.events import NOTHING, Args, text_of, whole
from pipeprof.read.kineto.spill import ALLOCATE, CALL, LAUNCH, NONE
from pipeprof.read.kineto.texts import shortened
from pipeprof.read.kineto.times import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pipeprof.read.kineto.events import Event, Loose
    from pipeprof.read.kineto.gather import Gathered

CALLS = frozenset({"cpu_op", "user_annotation", "python_function"})
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "mtia_workload", "hpu_op"})
STEP, STEPS, LOADER = "ProfilerStep#", "ProfilerStep*", "enumerate(DataLoader)#"
MEMORY = "[memory]"
SIDES = {"s": 0, "t": 1, "f": 2}
# What the framework's own operator table leaves out (torch/autograd/profiler_util.py, _filter_name).
UNLISTED = frozenset(
    {
        "[OutOfMemory]", "profiler::_record_function_enter", "profiler::_record_function_enter_new",
        "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version",
    }
)  # fmt: skip
_NO_ARGS = Args()
_ELEMENT_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "long": 8, "int": 4, "short": 2, "byte": 1, "char": 1, "bool": 1,
}  # fmt: skip
_Rows = list[tuple[int, ...]]


class Info(NamedTuple):
    """What events of one operator have in common; the arguments are JSON text."""

    category: str
    name: str
    dims: bytes
    types: bytes
    stack: bytes


class Marks(NamedTuple):
    """A step or a data loader's wait: number of the step, or number of the name; file times."""

    number: int
    start: int
    end: int


class BatchRows:
    """Sorts the events of one batch into rows."""

    def __init__(self, found: Gathered, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.found = found
        self.starts = starts.tolist()
        self.ends = ends.tolist()
        self.calls: _Rows = []
        self.others: _Rows = []
        self.flows: _Rows = []
        self.readings: _Rows = []

    def add(self, events: Sequence[Event]) -> None:
        """Route every event, then write the rows."""
        starts, ends, dropped = self.starts, self.ends, self.found.dropped
        for number, event in enumerate(events):
            phase = event.ph
            start, end = starts[number], ends[number]
            if phase == "X":
                if end == MISSING:
                    continue
                if event.cat in CALLS and event.name not in UNLISTED:
                    self._call(event, start, end)
                else:
                    self._other(event, start, end)
            elif phase == "M":
                self.found.tracks.describe(event)
            elif phase != "C":
                if start == MISSING:
                    dropped["no time"] += 1
                elif not self._moment(event, start):
                    dropped[f"kind `{phase[:8]}`"] += 1
        self._write()

    def _moment(self, event: Event, start: int) -> bool:
        """An event without a duration; False when its kind is not known."""
        if event.ph in SIDES:
            self._flow(event, start)
        elif event.name == MEMORY:
            self._allocate(event, start)
        elif event.ph in ("i", "I", "R"):
            self._other(event, start, start)
        else:
            return False
        return True

    def _call(self, event: Event, start: int, end: int) -> None:
        found, name, args = self.found, event.name, event.args or _NO_ARGS
        if name[:1] in "Pe":
            name = self._marked(name, start, end)
        stack = b"" if args.stack is NOTHING else bytes(args.stack)
        dims = b"" if args.dims is NOTHING else bytes(args.dims)
        types = b"" if args.types is NOTHING else bytes(args.types)
        key = (event.cat, name, dims, types, stack)  # equal to an Info, and made faster
        info = found.infos.numbers.get(key)  # type: ignore[call-overload]
        if info is None:
            info = self._new_info(Info(event.cat or "", name, dims, types, stack))
        link = NONE if args.external_id is None else _number(args.external_id)
        sequence = NONE if args.sequence is None else _number(args.sequence)
        backward = self._is_backward(name, args)
        track = found.tracks.number(event.pid, event.tid)
        self.calls.append((CALL, start, end, track, info, link, sequence, backward, 0, 0, 0))

    @staticmethod
    def _is_backward(name: str, args: Args) -> bool:
        """Whether it is a node of the backward graph itself: those have their forward operator's thread."""
        return args.forward_thread not in (None, 0, "0") and not name.startswith("autograd::engine::")

    def _marked(self, name: str, start: int, end: int) -> str:
        """Note a step or a loader's wait; the name that all steps share."""
        if name.startswith(STEP):
            number = name[len(STEP) :]
            self.found.steps.append(Marks(int(number) if number.isdecimal() and len(number) < 18 else NONE, start, end))
            return STEPS
        if name.startswith(LOADER):
            self.found.loads.append(Marks(self.found.texts.number(name), start, end))
        return name

    def _new_info(self, key: Info) -> int:
        found = self.found
        if len(key.stack) > 2:
            found.with_stacks = True
        kept = key._replace(name=shortened(key.name), dims=key.dims[:8000], types=key.types[:8000])
        if kept in found.infos.numbers:
            return found.infos.numbers[kept]
        return found.infos.add(kept, sum(map(len, kept)))

    def _other(self, event: Event, start: int, end: int) -> None:
        found, args, category = self.found, event.args or _NO_ARGS, event.cat or ""
        track = found.tracks.number(event.pid, event.tid)
        link = NONE if args.external_id is None else _number(args.external_id)
        correlation = NONE if args.correlation is None else _number(args.correlation)
        if category in DEVICE:
            found.launches.add(link, correlation, end - start)
        elif correlation != NONE and category.endswith(("_runtime", "_driver")):
            self.calls.append((LAUNCH, start, start, track, 0, correlation, NONE, False, 0, 0, 0))
        number = found.texts.number
        group = NONE if args.group is None else number(str(args.group))
        size = _payload(args)
        name = number(event.name)
        self.others.append((start, end - start, track, number(category), name, link, correlation, size, group))

    def _flow(self, event: Event, start: int) -> None:
        found = self.found
        number = whole(event.id)
        text = NONE if number is not None else found.texts.number("" if event.id is None else str(event.id))
        self.flows.append(
            (
                number or 0, text, found.texts.number(event.cat or ""), found.texts.number(event.name), SIDES[event.ph],
                start, found.tracks.number(event.pid, event.tid),
            )
        )  # fmt: skip

    def _allocate(self, event: Event, start: int) -> None:
        found, args = self.found, event.args or _NO_ARGS
        delta = whole(args.delta)
        if delta is None or abs(delta) >= 2**60:
            found.dropped["memory without a size"] += 1
            return
        kind, index = whole(args.device_type) or 0, whole(args.device_id)
        on_host = kind in _HOST
        device = found.texts.number("CPU" if on_host else f"{_DEVICES.get(kind, f'device {kind}')}:{index or 0}")
        address = whole(args.address)
        track = found.tracks.number(event.pid, event.tid)
        self.calls.append((ALLOCATE, start, start, track, 0, NONE, NONE, False, delta, address or 0, device))
        found.memory.add(start, delta, on_host=on_host)
        allocated, reserved = whole(args.allocated), whole(args.reserved)
        if allocated is not None:
            self.readings.append((start, device, allocated, NONE if reserved is None else reserved))

    def _write(self) -> None:
        spill = self.found.spill
        spill.add("call", self.calls)
        spill.add("other", self.others)
        spill.add("flow", self.flows)
        spill.add("reading", self.readings)


# c10/core/DeviceType.h: CPU, MKLDNN, IDEEP; and the others
_HOST = frozenset({0, 2, 5})
_DEVICES = {1: "CUDA", 6: "HIP", 9: "XLA", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA", 20: "NPU"}


def _number(value: Loose) -> int:
    number = whole(value)
    return NONE if number is None else number


def _payload(args: Args) -> int:
    """Bytes that were copied or sent; NONE when it does not say."""
    for value in (args.moved_bytes, args.size):
        number = whole(value)
        if number is not None and number >= 0:
            return number
    elements = whole(args.elements)
    width = _ELEMENT_BYTES.get(str(args.element_type).lower()) if elements is not None else None
    return elements * width if elements is not None and width and 0 <= elements < 2**56 else NONE


def shown(raw: bytes) -> str | None:
    """A JSON argument as text for people; None when there is none."""
    return text_of(msgspec.Raw(raw)) if raw else None
