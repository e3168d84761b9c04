"""Begin and end events, and asynchronous ones, to complete intervals: a trace need not have its events in this form.

`B` and `E` are paired within a thread, the last that began first; `b` and `e` (of old: `S` and `F`) by category,
scope and id, and by process where the id is a process's own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pipeprof.read.chrome.events import identity
from pipeprof.read.source.numbers import raw_ns

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Hashable

    from pipeprof.read.chrome.events import Event

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

    def complete(self, events: list[Event]) -> list[Event]:
        """The events in their order, each pair as one interval in the place of its begin: a caller before its callees.

        An interval that began in a batch before comes first.
        """
        if _OTHERS.isdisjoint({event.ph for event in events}):
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
        begun.dur = msgspec.Raw(b"%d.%03d" % divmod(end - start, 1000))
        begun.args = begun.args or event.args


def _key(event: Event) -> Hashable:
    if event.ph in "BE":
        return event.pid, event.tid
    return event.cat, event.scope, identity(event), event.name if event.ph in "SF" else None
