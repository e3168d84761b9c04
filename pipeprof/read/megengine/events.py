"""One event of a MegEngine timeline and what it stands for, and what to know first: names of threads may come last.

Source: MegEngine's `imperative/src/impl/profiler/{chrome_timeline.cpp,events.h}` (2024) and its earlier Python writer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.source.content import Content
from pipeprof.read.source.json_stream import Scan, of_list
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


MARK = "StopStep"  # the event that step() of the profiler leaves at the end of each step
THREADS = 100_000  # whose names are kept
MARKS = 1_000_000  # ends of steps that are kept
PROCESSES = 1_000  # of one file that are told apart
_NAME = 200


@dataclass
class Survey:
    """Names of threads, threads of kernels, the first time and the ends of steps (ns), ns since the epoch at time 0.

    `pids` are the processes of the intervals; with a `pid`, it is of that process alone.
    """

    names: dict[str, str] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    first_ns: int | None = None
    stops: list[int] = field(default_factory=list)
    zero_ns: int | None = None
    pid: str | int | float | None = None
    pids: set[str | int | float] = field(default_factory=set)
    problems: Counter[str] = field(default_factory=Counter)

    def take(self, event: Event) -> None:
        """Remember what matters of an event."""
        if event.ph in ("B", "X") and event.pid is not None and len(self.pids) <= PROCESSES:
            self.pids.add(event.pid)
        if event.ph == "M":
            self._name(event)
            return
        at = ns_of(event.ts)
        if at is not None and (self.first_ns is None or at < self.first_ns):
            self.first_ns = at
        if event.ph in ("i", "I"):
            self._instant(event, at)
        elif event.cat == "Kernel" and event.ph in ("E", "X") and len(self.kernels) < THREADS:
            track = text_of(event.tid)
            if track not in self.kernels and args_of(event).execution_time is None:
                self.kernels.add(track)

    def clock(self, value: Any, factor: int) -> None:
        """Set the zero of the times from localTime, in units of `factor` ns since the epoch."""
        try:
            zero = int(value) * factor
        except (TypeError, ValueError, OverflowError):
            zero = -1
        if 0 <= zero < LARGEST:
            self.zero_ns = zero
        else:
            self.problems["localTime that is not a time"] += 1

    def _name(self, event: Event) -> None:
        name = args_of(event).name
        if event.name != "thread_name" or not isinstance(name, str):
            return
        if len(self.names) < THREADS:
            self.names[text_of(event.tid)] = name[:_NAME]
        else:
            self.problems["names of threads after so many others"] += 1

    def _instant(self, event: Event, at: int | None) -> None:
        if event.name == "Metadata":
            self.clock(args_of(event).local_time, 1000)
        elif event.name == MARK and at is not None:
            if len(self.stops) < MARKS:
                self.stops.append(at)
            else:
                self.problems["ends of steps after so many others"] += 1


def survey(path: Path) -> Survey:
    """Read a timeline through. What is damaged or cut off is left for the reader of its rows to say."""
    result = Survey()
    each_event(path, result.take, result.clock)
    return result


def by_process(path: Path, whole: Survey) -> list[Survey]:
    """One for each process of a timeline that MegEngine's tool has merged of several; any other as it is."""
    if not 1 < len(whole.pids) <= PROCESSES:
        return [whole]
    pids = sorted(whole.pids, key=lambda pid: (len(text_of(pid)), text_of(pid)))
    parts = {pid: Survey(pid=pid, zero_ns=whole.zero_ns) for pid in pids}

    def take(event: Event) -> None:
        part = None if event.pid is None else parts.get(event.pid)
        if part is None:
            parts[pids[0]].problems["events of no process, beside several"] += 1
        else:
            part.take(event)

    each_event(path, take)
    return list(parts.values())


def each_event(
    path: Path, take: Callable[[Event], None], clock: Callable[[Any, int], None] = lambda _value, _factor: None
) -> tuple[Counter[str], SourceError | None]:
    """Hand out a timeline's events in the order of the file, and its localTime.

    Returns how many entries were left out, by what was wrong with them, and what ended the file too early. Raises
    SourceError for a file that cannot be opened.
    """
    with Content(path) as file:
        scan = Scan(file, path)
        try:
            _read(scan, take, clock)
        except SourceError as error:
            return scan.problems, error
    return scan.problems, None


def _read(scan: Scan, take: Callable[[Event], None], clock: Callable[[Any, int], None]) -> None:
    if scan.peek() == b"[":
        _events(scan, take)
        return
    for key in scan.members():
        if key == "traceEvents":
            _events(scan, take)
        elif key == "metadata" and scan.peek() == b"{":
            for inner in scan.members():
                if inner == "localTime" and scan.peek() not in b"{[":
                    clock(scan.scalar(), 1)
                else:
                    scan.skip()
        else:
            scan.skip()


def _events(scan: Scan, take: Callable[[Event], None]) -> None:
    for batch in scan.entries(*BATCH):
        for event in batch if isinstance(batch, list) else ():
            take(event)
