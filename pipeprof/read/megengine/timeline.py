"""MegEngine's chrome timelines, three generations, to rows: operators, spans, counters, memory, flows.

v1.0 to 1.2: a list of B and E events; the thread is "host" or a device's text. Until mid 2021: devices are threads from
256 on, and a first event `Metadata` has localTime in us. Now: `{traceEvents, metadata: {localTime: "<ns>"}}`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipeprof.read.megengine.events import (
    FIRST_DEVICE,
    LARGEST,
    Args,
    Event,
    args_of,
    is_device,
    is_operator,
    ns_of,
    text_of,
)
from pipeprof.read.megengine.outcome import Outcome
from pipeprof.read.megengine.steps import Steps
from pipeprof.read.megengine.survey import Survey, each_event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeprof.read.tables.rows import Rows

MOST_OPEN = 100_000  # events of a file that have begun and not ended
_MEMORY = "_alloc_mem"
_HUGE = 2**1023
_FLOW = {"s": "start", "t": "step", "f": "end"}


def read_timeline(path: Path, survey: Survey, kept: Rows) -> Outcome:
    """Rows of one process's timeline into `kept`.

    A file that is damaged or ends too early gives what was read until then, with `damage` set; raises SourceError when
    nothing was.
    """
    reading = _Reading(survey, kept)
    problems, damage = each_event(path, reading.take)
    reading.finish()
    out = reading.out
    for source in (problems, survey.problems):
        for text, count in source.items():
            out.problems[text] = out.problems.get(text, 0) + count
    out.damage = damage
    if damage is not None and not kept.counts:
        raise damage
    return out


class _Open:
    """A begun event and the time that operators within it took."""

    __slots__ = ("event", "inner", "start")

    def __init__(self, event: Event, start: int) -> None:
        self.event = event
        self.start = start
        self.inner = 0


class _Reading:
    """The state while events go by."""

    def __init__(self, survey: Survey, kept: Rows) -> None:
        self.out = Outcome(kept, survey.zero_ns)
        self._survey = survey
        self._devices: dict[str, bool] = {}
        self._steps = Steps(survey.first_ns or 0, survey.stops)
        self._open: dict[str, list[_Open]] = {}
        self._opened = 0
        self._handlers: dict[Any, Callable[[Event], None]] = {
            "B": self._begin, "E": self._end, "X": self._whole, "C": self._counter, "M": lambda _event: None,
            "i": self._instant, "I": self._instant, "s": self._flow, "t": self._flow, "f": self._flow,
        }  # fmt: skip

    def take(self, event: Event) -> None:
        """Use one event; what cannot be used is counted."""
        handler = self._handlers.get(event.ph)
        if handler is None:
            self.out.problem("events of a kind that is not known")
        else:
            handler(event)

    def finish(self) -> None:
        """Rows of the steps; count what never ended."""
        for stack in self._open.values():
            for _ in stack:
                self.out.problem("events that never end")
        self._steps.add_to(self.out)

    def _is_device(self, track: str) -> bool:
        """Whether operators on a thread ran on a device: by its number or text, and now by the category Kernel."""
        known = self._devices.get(track)
        if known is None:
            numbered = track.isdecimal() and len(track) < 9
            known = track in self._survey.kernels or (int(track) >= FIRST_DEVICE if numbered else is_device(track))
            if len(self._devices) < MOST_OPEN:
                self._devices[track] = known
        return known

    def _time(self, event: Event) -> int | None:
        found = ns_of(event.ts)
        if found is None:
            self.out.problem("events without a time")
        else:
            self.out.end_ns = max(self.out.end_ns, found)
        return found

    def _begin(self, event: Event) -> None:
        start = self._time(event)
        if start is None:
            return
        if self._opened >= MOST_OPEN:
            self.out.problem("events that begin within so many others")
            return
        self._opened += 1
        self._open.setdefault(text_of(event.tid), []).append(_Open(event, start))

    def _end(self, event: Event) -> None:
        end, stack = self._time(event), self._open.get(text_of(event.tid))
        if end is None:
            return
        if not stack:
            self.out.problem("events that end but never begin")
            return
        begun = stack.pop()
        self._opened -= 1
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
        track = text_of(event.tid)
        if not is_operator(event, args, device=self._is_device(track)):
            self._span(track, event, begun.start, dur)
            return begun.inner
        name = text_of(event.name)
        full = text_of(args.op_name) if isinstance(args.op_name, str) and args.op_name else name
        device, own = self._is_device(track), max(dur - begun.inner, 0)
        self.out.kept.add(
            "op", op_id=self.out.kept.op_id(full, None, type=name), start_ns=begun.start, dur_ns=dur, self_ns=own,
            step=self._steps.of(begun.start), side="device" if device else "host", track=self._shown(track),
            device_total_ns=dur if device else None, device_self_ns=own if device else None,
        )  # fmt: skip
        return dur

    def _span(self, track: str, event: Event, start: int, dur: int) -> None:
        self.out.kept.add(
            "span", track=self._shown(track), category=text_of(event.cat), name=text_of(event.name), start_ns=start,
            dur_ns=dur,
        )  # fmt: skip

    def _shown(self, track: str) -> str:
        return self._survey.names.get(track, track)

    def _instant(self, event: Event) -> None:
        if event.name == "Metadata":
            return
        start = self._time(event)
        if start is not None:
            self._span(text_of(event.tid), event, start, 0)

    def _counter(self, event: Event) -> None:
        at, value, name = self._time(event), args_of(event).value, text_of(event.name)
        if at is None:
            return
        if not _is_number(value):
            self.out.problem("counters without a number")
        elif name.endswith(_MEMORY) and 0 <= value < LARGEST:
            self.out.kept.add("memory", t_ns=at, device=name.removesuffix(_MEMORY), allocated_bytes=int(value))
        else:
            track = text_of(event.pid)
            self.out.kept.add("counter", t_ns=at, track=track, name=name, series="value", value=float(value))

    def _flow(self, event: Event) -> None:
        at = self._time(event)
        if at is not None:
            self.out.kept.add(
                "flow", track=self._shown(text_of(event.tid)), flow_id=text_of(event.id), category=text_of(event.cat),
                name=text_of(event.name), side=_FLOW[str(event.ph)], t_ns=at,
            )  # fmt: skip


def _is_number(value: object) -> bool:
    """Whether a value is a number that a double can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < _HUGE
