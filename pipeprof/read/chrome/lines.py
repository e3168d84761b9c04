"""A trace that has an event on each line, as DFTracer writes it: to the events that the other traces have.

A process that was forked writes once more what its parent had in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeprof.read.chrome.container import CHUNK, LARGEST_EVENT, Batch, TraceFile
from pipeprof.read.chrome.events import UNREADABLE, Event, Loose, decode_one, int64
from pipeprof.read.source.content import Content
from pipeprof.read.source.numbers import raw_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AGAIN = "the id of an earlier one (a forked process wrote them again)"
_PHASES = {"1": "X", "4": "M"}  # since version 4 of the format, a number
# Categories of DFTracer's `ai` decorators, whose names say nothing without them: `compute.step`, `data.item`.
_AI = frozenset({"checkpoint", "comm", "compute", "data", "dataloader", "device", "pipeline"})


class _Event(Event, gc=False):
    ph: str | int = ""  # type: ignore[assignment]


_MANY = msgspec.json.Decoder(list[_Event])
_ONE = msgspec.json.Decoder(_Event)


class Lines(TraceFile):
    """One file of that form."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.again = 0
        self._latest: dict[tuple[Loose, Loose], tuple[int, int]] = {}  # id and time of each thread's last event

    def batches(self) -> Iterator[Batch]:
        """The events, a block of lines at a time. Raises SourceError when the file cannot be opened."""
        with Content(self.path) as file:
            rest = b""
            while True:
                more = self._read(file, CHUNK)
                text = rest + more
                end = text.rfind(b"\n") + 1 if more else len(text)
                if events := self._events(text[:end]):
                    yield Batch(events, b"")
                if not more:
                    return
                rest, self._offset = text[end:], self._offset + end
                if len(rest) > LARGEST_EVENT:
                    self._note(f"a line of more than {LARGEST_EVENT >> 20} MiB, nothing after it was read", 0)
                    return

    def _events(self, block: bytes) -> list[Event]:
        lines = [line.strip().rstrip(b",") for line in block.splitlines()]
        lines = [line for line in lines if line not in (b"", b"[", b"]")]
        if lines and lines[0].startswith(b"[") and not self._offset:
            lines[0] = lines[0][1:].lstrip()
        try:
            found: list[_Event] = _MANY.decode(b"[" + b",".join(lines) + b"]")
        except UNREADABLE:
            found = [event for line in lines if (event := self._event(line)) is not None]
        return [event for event in found if self._is_new(event)]

    def _event(self, line: bytes) -> _Event | None:
        event: _Event | None
        event, mended = decode_one(line, _ONE)
        if event is None:
            self._note("a line that is no event", 0)
        else:
            self.mended += mended
        return event

    def _is_new(self, event: _Event) -> bool:
        """Put the event into the form of the other traces; False for one that was read before, and for metadata."""
        event.ph = _PHASES.get(str(event.ph), str(event.ph))
        if event.ph == "M":
            if event.name == "HH" and event.args is not None:
                self.header.fields.setdefault("host_name", event.args.name)
            return False
        if event.cat in _AI and not event.name.startswith(event.cat):
            event.name = f"{event.cat}.{event.name}"
        number, start = int64(event.id), raw_ns(bytes(event.ts), "us")
        event.id = None  # it numbers the events, and ties none together
        if number is None or start is None:
            return True
        thread = (event.pid, event.tid)
        latest, at = self._latest.get(thread, (-1, -1))
        if number <= latest and start <= at:
            self.again += 1
            return False
        self._latest[thread] = max(number, latest), max(start, at)
        return True
