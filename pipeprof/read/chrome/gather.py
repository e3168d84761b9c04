"""First pass: events to columns on disk, with texts as numbers. Times are still those of the file, without its base."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from pipeprof.read.chrome.container import Batch, scan
from pipeprof.read.chrome.dialect import LOADER_THREAD, Dialect, Info, Marks
from pipeprof.read.chrome.events import UNREADABLE, Pairs, decode_counter, decode_counters
from pipeprof.read.chrome.links import FlowLinks, Launches
from pipeprof.read.chrome.memory import MemoryEvents
from pipeprof.read.chrome.numbering import Numbers, Texts, Tracks
from pipeprof.read.chrome.rows import BatchRows
from pipeprof.read.chrome.spill import NONE, Spill
from pipeprof.read.chrome.steps import LoopMarks
from pipeprof.read.source.numbers import UNKNOWN, Ints, times_ns

_OTHER = Info("cpu_op", "(other)", b"", b"", b"")


class Gathered:
    """What the first pass found in one file, or in one process of a file (`pid`): counters of others are left out."""

    def __init__(self, spill: Spill, pid: int | None, dialect: Dialect) -> None:
        self.spill = spill
        self.dialect = dialect
        self.pid = pid
        self.infos: Numbers[Info] = Numbers(_OTHER)
        self.texts = Texts()
        self.tracks = Tracks(plain=pid is not None)
        self.launches = Launches()
        self.flow_links = FlowLinks()
        self.memory = MemoryEvents()
        self.steps: list[Marks] = []
        self.loads: list[Marks] = []
        self.device_steps: dict[int, list[Marks]] = defaultdict(list)  # by track
        self.loop = LoopMarks() if dialect.lines else None
        self.loader_tracks: frozenset[int] = frozenset()  # whose calls make batches; known after the first pass
        self.with_stacks = False
        self.with_python_functions = False
        self.with_call_lines = False  # of Python functions: which line called them
        self.events = 0
        self.dropped: Counter[str] = Counter()
        self.overlaps = 0  # events that overlap another only partly; known after the second pass
        self._pairs = Pairs(self.dropped)
        self.first = 2**63 - 1
        self.last = UNKNOWN

    def add(self, batch: Batch) -> None:
        """Take in one batch."""
        phases = {event.ph for event in batch.events}
        events = self._pairs.complete(batch.events, phases)
        self.events += len(events)
        BatchRows(self, times_ns([event.ts for event in events])).add(events)
        if self.with_python_functions and not self.with_call_lines:
            self.with_call_lines = b'"CallFrom"' in batch.text
        if "C" in phases and batch.text:
            self._add_counters(batch.text)

    def finish(self) -> None:
        """No more batches will come: make the look-up tables for the second pass."""
        self._pairs.finish()
        self.spill.finish()
        self.flow_links.finish()
        if self.flow_links.any:
            self._add_tied_work()
        self.launches.finish(self.spill)
        loaders = self.tracks.named(LOADER_THREAD)
        if self.loop is not None:
            loaders |= self.loop.loader_tracks()
            if self.dialect.step is None:
                self.steps, self.loads = self.loop.steps(self.texts)
                if others := self.loop.other_trainings():
                    self.dropped["steps of another process or thread that computes"] += others
            self.loop = None
        self.loader_tracks = frozenset(loaders)
        if self.device_steps and (not self.steps or self.dialect.calls is None):  # XLA's host runs ahead of its device
            self.steps = max(self.device_steps.values(), key=len)

    def _add_tied_work(self) -> None:
        """Note the device work that only flows tie to its operator."""
        for rows in self.spill.read("other"):
            numbers = self.flow_links.operators(rows)
            tied = (numbers != NONE) & (rows["correlation"] == NONE) & (rows["link"] == NONE)
            self.launches.add(rows["link"][tied], numbers[tied], rows["dur"][tied])

    def ends(self, starts: Ints, durations: Ints) -> Ints:
        """Ends of complete events; UNKNOWN where start or duration is none, or the duration is negative."""
        bad = (durations < 0) | (starts == UNKNOWN)
        if bad.any():
            negative = np.count_nonzero(bad & (durations < 0) & (durations != UNKNOWN))
            for what, count in (
                ("negative duration", negative),
                ("no time or no duration", np.count_nonzero(bad) - negative),
            ):
                if count:
                    self.dropped[what] += count
        return np.where(bad, UNKNOWN, starts + durations)

    def note_times(self, starts: Ints, ends: Ints) -> None:
        """The trace lasts at least from the first of these starts to the last end; UNKNOWN ends do not count."""
        ended = ends != UNKNOWN
        if ended.any():
            self.first = min(self.first, int(starts[ended].min()))
            self.last = max(self.last, int(ends[ended].max()))

    def _add_counters(self, text: bytes) -> None:
        try:
            parts = [decode_counters(text)]
        except UNREADABLE:  # NaN, or bytes that are not UTF-8, in one event of them
            parts = [decode_counter(text[begin + 1 : end + 1]) for begin, end in scan(text[1:-1]).spans]
        if lost := sum(lost for _, lost in parts):
            self.dropped["counters that cannot be read"] += lost
        counters = [row for part, _ in parts for row in part if self.pid in (None, row[0].pid)]
        times = times_ns([event.ts for event, _ in counters])
        if untimed := int(np.count_nonzero(times == UNKNOWN)):
            self.dropped["no time"] += untimed
        rows = [
            (
                time, self.tracks.number((event.pid, event.tid)), self.texts.number(event.name), series,
                int(np.float64(value).view(np.int64)),  # its bits, among integers
            )
            for (event, values), time in zip(counters, times.tolist(), strict=True)
            if time != UNKNOWN
            for series, value in ((self.texts.number(name), value) for name, value in values.items())
        ]  # fmt: skip
        self.spill.add("counter", rows)
