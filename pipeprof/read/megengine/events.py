"""One event of a MegEngine chrome timeline, and what it stands for.

Source: MegEngine's `imperative/src/impl/profiler/{chrome_timeline.cpp,events.h}` (2024) and its earlier Python writer.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from pipeprof.read.source.json_stream import of_list
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record.document import BAD_JSON

_LARGEST_US = 2.0**52
_LOCATOR = re.compile(
    r"(CompNode\(.*|(xpu|gpu|cpu|atlas|rocm|cambricon|multithread)[0-9a-z]*:[0-9A-Z_a-z:]+)", re.DOTALL
)
_TENSOR = re.compile(r"(Input|Output|Put|Drop|Del|RecFree|ReGen|GetValue) [0-9]+")
_HOST_WORDS = frozenset({"OpDispatch", "TensorWaitProp", "TensorGetProp", "AutoEvict", "StartProfile", "StopProfile"})
FIRST_DEVICE = 256  # thread numbers of devices began here until 2021


class Event(msgspec.Struct, gc=False):
    """An event as written; `args` is still JSON."""

    name: str | int | float | None = None
    cat: str | int | float | None = None
    ph: str | int | float | None = None
    tid: str | int | float | None = None
    pid: str | int | float | None = None
    id: str | int | float | None = None
    ts: float | str | None = None
    dur: float | str | None = None
    args: msgspec.Raw = msgspec.Raw(b"null")


class Args(msgspec.Struct):
    """The arguments that are used."""

    name: Any = None
    value: Any = None
    local_time: Any = msgspec.field(default=None, name="localTime")
    op_id: Any = msgspec.field(default=None, name="__id__")
    op_name: Any = msgspec.field(default=None, name="__name__")
    execution_time: Any = None


_args = msgspec.json.Decoder(Args)
BATCH = of_list(Event)


def args_of(event: Event) -> Args:
    """The event's arguments; empty when it has none or they are no object."""
    try:
        return _args.decode(event.args)
    except BAD_JSON:
        return Args()


def ns_of(us: float | str | None) -> int | None:
    """Whole ns of a time in us; None when it is no number that fits."""
    if not isinstance(us, float) or not math.isfinite(us) or abs(us) >= _LARGEST_US:
        return None
    return round(us * 1000)


def is_device(track: str) -> bool:
    """Whether a track's name is that of a computing device."""
    return _LOCATOR.fullmatch(track) is not None


def is_operator(event: Event, args: Args, *, device: bool) -> bool:
    """Whether a begin/end pair is the execution of an operator (a kernel of its own, seen by CUPTI, is not).

    `device`: the thread is known to be a device's. The first generation has operators only, on threads named by text.
    """
    name = str(event.name or "")
    if _TENSOR.fullmatch(name) or name in _HOST_WORDS or args.execution_time is not None:
        return False
    if args.op_id is not None or args.op_name is not None or event.cat == "Kernel":
        return True
    return device or event.tid == "host"


def text_of(value: object) -> str:
    """A field as text; numbers of threads without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return str(int(value))
    return "" if value is None else str(value)
