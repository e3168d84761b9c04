"""One event of a trace as typed fields, and begin and end events to complete intervals.

What is not named here is skipped without being built. `B` and `E` are paired within a thread, the last that began
first; `b` and `e` (of old: `S` and `F`) by category, scope and id, and by process where the id is a process's own.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any

import msgspec

from pipeprof.read.source.numbers import raw_ns

NOTHING = msgspec.Raw(b"")

Loose = int | float | str | None  # ids and numbers: producers write them as numbers and as text
_NO_NUMBER = re.compile(rb"(?<=[:,\[])(\s*)[-+]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)


class Args(msgspec.Struct, gc=False):
    """The arguments that are kept. Shapes, types and stacks stay as text, as they are in the file."""

    external_id: Loose = msgspec.field(default=None, name="External id")
    old_external_id: Loose = msgspec.field(default=None, name="external id")
    sequence: Loose = msgspec.field(default=None, name="Sequence number")
    forward_thread: Loose = msgspec.field(default=None, name="Fwd thread id")
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    concrete: msgspec.Raw = msgspec.field(default=NOTHING, name="Concrete Inputs")
    flops: Loose = None
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    stack: msgspec.Raw = msgspec.field(default=NOTHING, name="Call stack")
    correlation: Loose = None
    moved_bytes: Loose = msgspec.field(default=None, name="bytes")
    delta: Loose = msgspec.field(default=None, name="Bytes")
    address: Loose = msgspec.field(default=None, name="Addr")
    device_type: Loose = msgspec.field(default=None, name="Device Type")
    device_id: Loose = msgspec.field(default=None, name="Device Id")
    allocated: Loose = msgspec.field(default=None, name="Total Allocated")
    reserved: Loose = msgspec.field(default=None, name="Total Reserved")
    elements: Loose = msgspec.field(default=None, name="In msg nelems")
    element_type: Loose = msgspec.field(default=None, name="dtype")
    group: Loose = msgspec.field(default=None, name="Process Group Name")
    size: Loose = msgspec.field(default=None, name="size(Byte)")
    occupancy: Loose = msgspec.field(default=None, name="est. achieved occupancy %")
    name: Loose = None
    labels: Loose = None


class Event(msgspec.Struct, gc=False):
    """One event. Times stay as text until they are ns; see times."""

    ph: str = ""
    cat: str | None = ""
    name: str = ""
    pid: Loose = None
    tid: Loose = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    id: Loose = None
    id2: msgspec.Raw = NOTHING
    scope: Loose = None
    args: Args | None = None


class _Id2(msgspec.Struct, gc=False):
    """An id that says whether it is its process's own."""

    local: Loose = None
    shared: Loose = msgspec.field(default=None, name="global")


class CounterEvent(msgspec.Struct, gc=False):
    """A counter's reading: its arguments are the values."""

    ph: str = ""
    name: str = ""
    pid: Loose = None
    tid: Loose = None
    ts: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_ID2 = msgspec.json.Decoder(_Id2)
_BARE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_COUNTERS = msgspec.json.Decoder(list[CounterEvent])
_COUNTER = msgspec.json.Decoder(CounterEvent)
_NUMBERS = msgspec.json.Decoder(dict[str, float | None])
_VALUES = msgspec.json.Decoder(dict[str, Any])
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def decode(text: bytes) -> list[Event]:
    """The events of a JSON array. Raises one of UNREADABLE when any of them is not as expected."""
    return _EVENTS.decode(text)


def decode_one(text: bytes, decoder: msgspec.json.Decoder[Any] = _EVENT) -> tuple[Any, bool]:
    """One event from its JSON object, as far as it can be read, and whether it had to be mended; None: not readable.

    NaN and infinity, which JSON does not have, become null; bytes that are not UTF-8 are replaced; arguments of an
    unexpected form are left out.
    """
    try:
        return decoder.decode(text), False
    except UNREADABLE:
        pass
    mended = _NO_NUMBER.sub(rb"\1null", text.decode("utf-8", errors="replace").encode())
    try:
        return decoder.decode(mended), True
    except UNREADABLE:
        pass
    try:
        fields = _BARE.decode(mended)
        fields.pop("args", None)
        return decoder.decode(msgspec.json.encode(fields)), True
    except UNREADABLE:
        return None, True


Counters = list[tuple[CounterEvent, dict[str, float]]]


def decode_counters(text: bytes) -> tuple[Counters, int]:
    """The counters of a JSON array of events, with those values that are numbers; and how many have others.

    Raises one of UNREADABLE when any event is not JSON.
    """
    return _with_values(_COUNTERS.decode(text))


def decode_counter(text: bytes) -> tuple[Counters, int]:
    """As `decode_counters`, of one event's JSON object, as far as it can be read."""
    event, _ = decode_one(text, _COUNTER)
    return _with_values([] if event is None else [event])


def _with_values(events: list[CounterEvent]) -> tuple[Counters, int]:
    counters: Counters = []
    lost = 0
    for event in events:
        if event.ph != "C":
            continue
        try:
            values = _NUMBERS.decode(event.args)
        except UNREADABLE:
            loose, _ = decode_one(bytes(event.args), _VALUES)
            values = {key: _number(value) for key, value in (loose or {}).items() if value is not None}
            lost += loose is None or None in values.values()
        counters.append((event, {key: value for key, value in values.items() if value is not None}))
    return counters, lost


def _number(value: Any) -> float | None:
    """A value of a counter, which may be written as text; None for what is no number."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float, str)) else float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def identity(event: Event) -> tuple[Loose, Loose]:
    """(process, id) by which events belong together; the process is None for an id that is the same in all of them."""
    if event.id is not None or not bytes(event.id2):
        return None, event.id
    try:
        id2 = _ID2.decode(event.id2)
    except UNREADABLE:
        return None, text_of(event.id2)
    return (None, id2.shared) if id2.local is None else (event.pid, id2.local)


def int64(value: Loose) -> int | None:
    """An id or a count as int64, from a number or from text, never through a float; None when it is none."""
    if type(value) is int:
        return value if -(2**63) <= value < 2**63 else None
    if type(value) is str and len(value) < 20:
        try:
            return int(value)
        except ValueError:
            return None
    return None


def us_text(ns: int) -> msgspec.Raw:
    """Ns as the decimal text of microseconds that a trace has; null for what does not fit 64 bits."""
    if not -(2**63) < ns < 2**63:
        return msgspec.Raw(b"null")
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{ns // 1000}.{ns % 1000:03d}".encode())


def text_of(raw: msgspec.Raw) -> str:
    """JSON text of an argument: a string's content, and anything else as it is written."""
    content = bytes(raw)
    if content[:1] == b'"':
        try:
            return str(msgspec.json.decode(content))
        except UNREADABLE:
            return content[1:-1].decode("utf-8", errors="replace")
    return content.decode("utf-8", errors="replace")


ASYNC = "async"  # the phase that a pair of asynchronous events gets: an interval that is no call
MOST_OPEN = 100_000
_SIDES = {"B": True, "E": False, "b": True, "S": True, "e": False, "F": False}
_INSTANT = frozenset({"n", "T", "p"})
_OTHERS = _SIDES.keys() | _INSTANT


class Pairs:
    """What has begun and not ended. `dropped` counts the events that are left out, by what was wrong with them."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._open: dict[Hashable, list[Event]] = defaultdict(list)
        self._count = 0

    def complete(self, events: list[Event], phases: set[str]) -> list[Event]:
        """The events in their order, each pair as one interval in the place of its begin: a caller before its callees.

        An interval that began in a batch before comes first. `phases` are those of the events.
        """
        if _OTHERS.isdisjoint(phases):
            return events
        earlier = [event for stack in self._open.values() for event in stack]
        for event in events:
            begins = _SIDES.get(event.ph)
            if begins:
                self._begin(event)
            elif begins is not None:
                self._end(event)
            elif event.ph in _INSTANT:
                event.ph = "i"
        return [event for event in (*earlier, *events) if event.ph not in _SIDES]

    def finish(self) -> None:
        """Count what never ended."""
        if self._count:
            self._dropped["a begin and no end"] += self._count
        self._open.clear()

    def _begin(self, event: Event) -> None:
        if self._count >= MOST_OPEN:
            self._dropped["a begin within so many others"] += 1
            return
        self._count += 1
        self._open[_key(event)].append(event)

    def _end(self, event: Event) -> None:
        """Make a complete interval of the event that began."""
        stack = self._open.get(_key(event))
        if not stack:
            self._dropped["an end and no begin"] += 1
            return
        begun = stack.pop()
        self._count -= 1
        start, end = raw_ns(bytes(begun.ts), "us"), raw_ns(bytes(event.ts), "us")
        if start is None or end is None or end < start:
            self._dropped["no time, or an end before the begin"] += 1
            return
        begun.ph = "X" if event.ph == "E" else ASYNC
        begun.dur = us_text(end - start)
        begun.args = begun.args or event.args


def _key(event: Event) -> Hashable:
    if event.ph in "BE":
        return event.pid, event.tid
    return event.cat, event.scope, identity(event), event.name if event.ph in "SF" else None
