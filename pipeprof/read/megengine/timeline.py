"""MegEngine's chrome timelines, three generations, to rows: operators, spans, counters, memory, flows.

v1.0 to 1.2: a list of B and E events; the thread is "host" or a device's text. Until mid 2021: devices are threads from
256 on, and a first event `Metadata` has localTime in us. Now: `{traceEvents, metadata: {localTime: "<ns>"}}`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read.megengine.events import (
    BATCH,
    FIRST_DEVICE,
    Args,
    Event,
    args_of,
    is_device,
    is_operator,
    ns_of,
)
from pipeprof.read.megengine.outcome import Outcome
from pipeprof.read.megengine.scan import Scan
from pipeprof.read.megengine.steps import MARK, Steps
from pipeprof.read.megengine.unpacked import Unpacked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MEMORY = "_alloc_mem"
_LARGEST = 2**62
_HUGE = 2**1023
_FLOW = {"s": "start", "t": "step", "f": "end"}


def read_timeline(path: Path) -> Outcome:
    """Rows of one process's timeline.

    A file that is damaged or ends too early gives what was read until then, with `damage` set; raises SourceError when
    nothing was.
    """
    reading = _Reading()
    with Unpacked(path) as file:
        scan = Scan(file, path)
        try:
            _read(scan, reading)
        except SourceError as error:
            reading.out.damage = error
    reading.finish()
    for text, count in scan.problems.items():
        reading.out.problems[text] = reading.out.problems.get(text, 0) + count
    if reading.out.damage is not None and not reading.out.rows:
        raise reading.out.damage
    return reading.out


def _read(scan: Scan, reading: _Reading) -> None:
    if scan.peek() == b"[":
        _events(scan, reading)
        return
    for key in scan.members():
        if key == "traceEvents":
            _events(scan, reading)
        elif key == "metadata" and scan.peek() == b"{":
            for inner in scan.members():
                if inner == "localTime" and scan.peek() not in b"{[":
                    reading.clock(scan.scalar(), 1)
                else:
                    scan.skip()
        else:
            scan.skip()


def _events(scan: Scan, reading: _Reading) -> None:
    for batch in scan.entries(*BATCH):
        for event in batch if isinstance(batch, list) else ():
            reading.take(event)


class _Open:
    """A begun event and the time that operators within it took."""

    __slots__ = ("event", "inner", "start")

    def __init__(self, event: Event, start: int) -> None:
        self.event = event
        self.start = start
        self.inner = 0


class _Reading:
    """The state while events go by. Rows wait until the end: the names of their threads may come last."""

    def __init__(self) -> None:
        self.out = Outcome()
        self._names: dict[str, str] = {}
        self._kernels: set[str] = set()
        self._first: int | None = None
        self._stops: list[int] = []
        self._open: dict[str, list[_Open]] = {}
        self._waiting: list[tuple[str, str, dict[str, Any]]] = []
        self._handlers: dict[Any, Callable[[Event], None]] = {
            "B": self._begin, "E": self._end, "X": self._whole, "C": self._counter, "M": self._meta,
            "i": self._instant, "I": self._instant, "s": self._flow, "t": self._flow, "f": self._flow,
        }  # fmt: skip

    def take(self, event: Event) -> None:
        """Use one event; what cannot be used is counted."""
        handler = self._handlers.get(event.ph)
        if handler is None:
            self.out.problem("events of a kind that is not known")
        else:
            handler(event)

    def clock(self, value: Any, factor: int) -> None:
        """Set the zero of the times from localTime, in units of `factor` ns since the epoch."""
        try:
            zero = int(value) * factor
        except (TypeError, ValueError, OverflowError):
            zero = -1
        if 0 <= zero < _LARGEST:
            self.out.zero_ns = zero
        else:
            self.out.problem("localTime that is no time")

    def finish(self) -> None:
        """Make the rows of what waits, and count what never ended."""
        for stack in self._open.values():
            for _ in stack:
                self.out.problem("events that never end")
        steps = Steps(self._first or 0, self._stops)
        steps.add_to(self.out)
        self._waiting.reverse()
        while self._waiting:
            table, track, row = self._waiting.pop()
            if table == "op":
                device = self._is_device(track)
                row["step"] = steps.of(row["start_ns"])
                row["side"] = "device" if device else "host"
                if device:
                    row["device_total_ns"], row["device_self_ns"] = row["dur_ns"], row["self_ns"]
            self.out.kept.add(table, track=self._names.get(track, track), **row)

    def _is_device(self, track: str) -> bool:
        """Whether operators on a thread ran on a device: by its number or text, and now by the category Kernel."""
        numbered = track.isdecimal() and len(track) < 9
        return track in self._kernels or (int(track) >= FIRST_DEVICE if numbered else is_device(track))

    def _time(self, event: Event) -> int | None:
        found = ns_of(event.ts)
        if found is None:
            self.out.problem("events without a time")
        else:
            self.out.end_ns = max(self.out.end_ns, found)
            self._first = found if self._first is None else min(self._first, found)
        return found

    def _begin(self, event: Event) -> None:
        start = self._time(event)
        if start is not None:
            self._open.setdefault(_text(event.tid), []).append(_Open(event, start))

    def _end(self, event: Event) -> None:
        end, stack = self._time(event), self._open.get(_text(event.tid))
        if end is None:
            return
        if not stack:
            self.out.problem("events that end but never begin")
            return
        begun = stack.pop()
        if end < begun.start:
            self.out.problem("events that end before they start")
            return
        args = args_of(event)
        if args.op_id is None and args.op_name is None:
            args = args_of(begun.event)
        inside = self._pair(begun.event, args, begun, end - begun.start)
        if stack:
            stack[-1].inner += inside

    def _whole(self, event: Event) -> None:
        start, dur = self._time(event), ns_of(event.dur if event.dur is not None else 0.0)
        if start is None:
            return
        if dur is None or dur < 0:
            self.out.problem("events that end before they start")
            return
        self.out.end_ns = max(self.out.end_ns, start + dur)
        self._pair(event, args_of(event), _Open(event, start), dur)

    def _pair(self, event: Event, args: Args, begun: _Open, dur: int) -> int:
        """Keep an interval; returns the time of operators in it."""
        track = _text(event.tid)
        if event.cat == "Kernel" and args.execution_time is None:
            self._kernels.add(track)
        if not is_operator(event, args, device=self._is_device(track)):
            self._span(track, event, begun.start, dur)
            return begun.inner
        name = _text(event.name)
        full = _text(args.op_name) if isinstance(args.op_name, str) and args.op_name else name
        number = self.out.kept.op_id(full, name, type=name)
        row = {"op_id": number, "start_ns": begun.start, "dur_ns": dur, "self_ns": max(dur - begun.inner, 0)}
        self._waiting.append(("op", track, row))
        return dur

    def _span(self, track: str, event: Event, start: int, dur: int) -> None:
        row = {"category": _text(event.cat), "name": _text(event.name), "start_ns": start, "dur_ns": dur}
        self._waiting.append(("span", track, row))

    def _instant(self, event: Event) -> None:
        if event.name == "Metadata":
            self.clock(args_of(event).local_time, 1000)
            return
        start = self._time(event)
        if start is None:
            return
        if event.name == MARK:
            self._stops.append(start)
        self._span(_text(event.tid), event, start, 0)

    def _counter(self, event: Event) -> None:
        at, value, name = self._time(event), args_of(event).value, _text(event.name)
        if at is None:
            return
        if not _is_number(value):
            self.out.problem("counters without a number")
        elif name.endswith(_MEMORY) and 0 <= value < _LARGEST:
            self.out.kept.add("memory", t_ns=at, device=name.removesuffix(_MEMORY), allocated_bytes=int(value))
        else:
            self.out.kept.add("counter", t_ns=at, track=_text(event.pid), name=name, series="value", value=float(value))

    def _meta(self, event: Event) -> None:
        name = args_of(event).name
        if event.name == "thread_name" and isinstance(name, str):
            self._names[_text(event.tid)] = name

    def _flow(self, event: Event) -> None:
        at = self._time(event)
        if at is not None:
            row = {
                "flow_id": _text(event.id), "category": _text(event.cat), "name": _text(event.name),
                "side": _FLOW[str(event.ph)], "t_ns": at,
            }  # fmt: skip
            self._waiting.append(("flow", _text(event.tid), row))


def _is_number(value: object) -> bool:
    """Whether a value is a number that a double can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < _HUGE


def _text(value: object) -> str:
    """A field as text; numbers of threads without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return str(int(value))
    return "" if value is None else str(value)
