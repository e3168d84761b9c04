"""First pass: events to columns on disk, with texts as numbers. Times are still those of the file, without its base."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.kineto.events import UNREADABLE, decode_counters
from pipeprof.read.kineto.launches import Launches
from pipeprof.read.kineto.memory import MemoryEvents
from pipeprof.read.kineto.rows import BatchRows, Info, Marks
from pipeprof.read.kineto.texts import Numbers, Texts
from pipeprof.read.kineto.times import MISSING, times_ns
from pipeprof.read.kineto.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeprof.read.kineto.container import Batch
    from pipeprof.read.kineto.events import Event
    from pipeprof.read.kineto.spill import Spill

_OTHER = Info("cpu_op", "(other)", b"", b"", b"")


class Gathered:
    """What the first pass found in one file."""

    def __init__(self, spill: Spill) -> None:
        self.spill = spill
        self.infos: Numbers[Info] = Numbers(_OTHER)
        self.texts = Texts()
        self.tracks = Tracks()
        self.launches = Launches()
        self.memory = MemoryEvents()
        self.steps: list[Marks] = []
        self.loads: list[Marks] = []
        self.with_stacks = False
        self.events = 0
        self.dropped: Counter[str] = Counter()
        self.overlaps = 0  # events that overlap another only partly; known after the second pass
        self.first = 2**63 - 1
        self.last = MISSING

    def add(self, batch: Batch) -> None:
        """Take in one batch."""
        events = batch.events
        self.events += len(events)
        starts = times_ns([event.ts for event in events])
        ends = self._ends(events, starts)
        BatchRows(self, starts, ends).add(events)
        if b'"C"' in batch.text:
            self._add_counters(batch.text)

    def _ends(self, events: Sequence[Event], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ends of complete events; MISSING where start or duration is none, or the duration is negative."""
        complete = [number for number, event in enumerate(events) if event.ph == "X"]
        ends: NDArray[np.int64] = starts.copy()
        durations = times_ns([events[number].dur for number in complete])
        bad = (durations < 0) | (starts[complete] == MISSING)
        for number in np.flatnonzero(bad)[:1000].tolist():
            dur = durations[number]
            self.dropped["negative duration" if MISSING < dur < 0 else "no time or no duration"] += 1
        ends[complete] = np.where(bad, MISSING, starts[complete] + durations)
        known = ends != MISSING
        timed = known & np.fromiter((event.ph != "M" for event in events), bool, len(events))
        if timed.any():
            self.first = min(self.first, int(starts[timed].min()))
            self.last = max(self.last, int(ends[timed].max()))
        return ends

    def _add_counters(self, text: bytes) -> None:
        try:
            found = decode_counters(text)
        except UNREADABLE:
            self.dropped["counters that cannot be read"] += 1
            return
        times = times_ns([event.ts for event, _ in found])
        rows = [
            (time, self.tracks.number(event.pid, event.tid), self.texts.number(event.name), series, _bits(value))
            for (event, values), time in zip(found, times.tolist(), strict=True)
            if time != MISSING
            for series, value in ((self.texts.number(name), value) for name, value in values.items())
        ]
        self.spill.add("counter", rows)


def _bits(value: float) -> int:
    """The bits of a float, as they are kept among integers."""
    return int(np.float64(value).view(np.int64))
