"""The ranks of one trace: a trace that `pipeprof timeline` wrote has one per process, any other trace is one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeprof.read.chrome.container import Batch
from pipeprof.read.chrome.gather import Gathered
from pipeprof.read.chrome.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from pipeprof.read.chrome.container import OwnRank, Trace
    from pipeprof.read.chrome.dialect import Dialect
    from pipeprof.read.chrome.events import Event, Loose

_STRANGE = "a process that is none of its ranks"


class Part(NamedTuple):
    """Events of one rank; `own` says which one it is, if the trace does."""

    own: OwnRank | None
    gathered: Gathered


class Parts:
    """Sorts the events of a trace by rank. Spills lie in a folder."""

    def __init__(self, trace: Trace, folder: Path, exits: ExitStack, dialect: Dialect) -> None:
        self._dialect = dialect
        self._trace = trace
        self._folder = folder
        self._exits = exits
        self._parts: dict[int | None, Part] = {}
        self._last: int | None = None
        self.events = 0

    def gather(self) -> Iterator[int]:
        """Read the trace; yields the number of events read, now and then."""
        ranks: dict[int, OwnRank] | None = None
        for batch in self._trace.batches():
            ranks = self._trace.header.ranks if ranks is None else ranks
            for pid, mine in self._apart(batch, ranks) if ranks else [(None, batch)]:
                self._part(pid, ranks).gathered.add(mine)
                if pid != self._last and self._last in self._parts:
                    self._parts[self._last].gathered.spill.finish()  # ranks follow each other: not all files stay open
                self._last = pid
            self.events += len(batch.events)
            yield self.events

    def finish(self) -> list[Part]:
        """The ranks that were found; one even when the trace holds nothing."""
        if not self._parts:
            self._part(next(iter(self._trace.header.ranks), None), self._trace.header.ranks)
        for part in self._parts.values():
            part.gathered.finish()
        return list(self._parts.values())

    def _part(self, pid: int | None, ranks: dict[int, OwnRank]) -> Part:
        part = self._parts.get(pid)
        if part is None:
            spill = self._exits.enter_context(Spill(self._folder / f"{len(self._parts)}"))
            own = None if pid is None else ranks[pid]
            part = self._parts[pid] = Part(own, Gathered(spill, pid, self._dialect))
        return part

    def _apart(self, batch: Batch, ranks: dict[int, OwnRank]) -> Iterator[tuple[int, Batch]]:
        """The events of each rank. Those of a process that is none are counted, and left out."""
        by_pid: dict[Loose, list[Event]] = {}
        for event in batch.events:
            by_pid.setdefault(event.pid, []).append(event)
        for pid, events in by_pid.items():
            if isinstance(pid, int) and pid in ranks:
                counters = any(event.ph == "C" for event in events)
                yield pid, Batch(events, batch.text if counters else b"")
            else:
                self._part(next(iter(ranks)), ranks).gathered.dropped[_STRANGE] += len(events)
