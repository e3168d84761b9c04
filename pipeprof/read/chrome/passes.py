"""The two passes over a trace, each in any process: events to columns on disk, and columns of a rank to its tables.

A trace that `pipeprof timeline` wrote has one rank per process, any other trace is one rank.

A trace that has an event on each line, as DFTracer writes it: to the events that the other traces have.

A process that was forked writes once more what its parent had in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeprof import processes
from pipeprof.read.chrome.container import CHUNK, LARGEST_EVENT, Batch, Header, OwnRank, Trace, TraceFile
from pipeprof.read.chrome.dialect import AHEAD, LINES, PLANES, RECORDS, Dialect
from pipeprof.read.chrome.events import UNREADABLE, Event, Loose, decode_one, int64
from pipeprof.read.chrome.gather import Gathered
from pipeprof.read.chrome.rocprof_records import Records
from pipeprof.read.chrome.spill import Spill
from pipeprof.read.chrome.steps import Steps
from pipeprof.read.chrome.tables import RankTables, shifted
from pipeprof.read.chrome.xplane_wire import Space
from pipeprof.read.source.content import Content
from pipeprof.read.source.json_stream import without_collector
from pipeprof.read.source.numbers import raw_ns
from pipeprof.read.tables.ranks import NAMED_RANK, Waiting, check_folder
from pipeprof.read.tables.share import folder_alone

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


Source = Trace | Lines | Records | Space  # what a file is read with
_STRANGE = "a process that is none of its ranks"


class Part(NamedTuple):
    """Events of one rank; `own` says which one it is, if the trace does."""

    own: OwnRank | None
    gathered: Gathered


class Parts:
    """Sorts the events of a trace by rank. Spills lie in a folder."""

    def __init__(self, trace: Source, folder: Path, exits: ExitStack, dialect: Dialect) -> None:
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


_PROGRESS_EVENTS = 50_000


class File(NamedTuple):
    """A trace to read: where it lies, a folder for what is read of it, and its dialect."""

    path: Path
    folder: Path
    dialect: Dialect


class Half(NamedTuple):
    """A rank of a trace after the first pass. `own` says which rank it is, if the trace does.

    `damage` are the first of so many as `damaged`; `dropped` counts events that were left out, by what was wrong.
    """

    path: Path
    waiting: Waiting
    header: Header
    own: OwnRank | None
    first: int
    last: int
    damage: list[str]
    damaged: int
    mended: int
    dropped: dict[str, int]
    unlinked: int
    has_too_many_names: bool
    has_device_work: bool
    has_python_functions: bool
    has_call_lines: bool
    is_made_ahead: bool

    @property
    def rep_rank(self) -> tuple[int, int]:
        """Repetition and rank: what the trace says, else what its name or folder says, else 0."""
        if self.own is not None:
            return self.own.rep, self.own.rank
        rank = self.header.rank
        if rank is None:
            named = NAMED_RANK.findall("/".join(self.path.parts[-3:]))
            rank = int(named[-1]) if named else 0
        return 0, rank

    @property
    def host(self) -> str:
        """The machine that it was recorded on; empty when unknown."""
        return str(self.header.fields.get("host_name") or "") if self.own is None else self.own.host


class Rank(NamedTuple):
    """A rank to write into a run's folder: its files by time, each with what is added to its times."""

    run: Path
    rep: int
    rank: int
    files: list[tuple[Waiting, int]]
    has_device_work: bool


class Written(NamedTuple):
    """Rows by table, whether any event is a step, and of each file how many events overlap another only partly."""

    counts: dict[str, int]
    has_steps: bool
    overlaps: list[int]


def read_file(file: File) -> list[Half]:
    """First pass: a half for each rank of the trace. Raises SourceError when it has no events."""
    check_folder(file.folder)
    trace = _opened(file)
    said = 0
    with without_collector(), ExitStack() as exits:
        own = Path(tempfile.mkdtemp(dir=file.folder))  # a lost node may have begun the same
        parts = Parts(trace, own, exits, file.dialect)
        for events in parts.gather():
            if events >= said + _PROGRESS_EVENTS:
                said = events
                processes.say(f"{file.path.name}: {events:,} events read")
        found = parts.finish()
        if isinstance(trace, Lines) and trace.again:
            found[0].gathered.dropped[AGAIN] += trace.again
        return [_half(file, trace, part.own, part.gathered) for part in found]


def _opened(file: File) -> Source:
    forms: dict[str, Callable[[Path], Source]] = {LINES: Lines, RECORDS: Records, PLANES: Space}
    form = forms.get(file.dialect.form)
    return Trace(file.path, is_open=file.dialect.calls is None) if form is None else form(file.path)


def _half(file: File, trace: Source, own: OwnRank | None, gathered: Gathered) -> Half:
    base = trace.header.base_ns
    return Half(
        path=file.path, waiting=Waiting(gathered, file.folder), header=trace.header, own=own,
        first=base + gathered.first, last=base + gathered.last,
        damage=trace.damage, damaged=trace.damaged, mended=trace.mended,
        dropped=dict(gathered.dropped), unlinked=gathered.launches.unlinked,
        has_too_many_names=bool(gathered.infos.left_out or gathered.texts.left_out),
        has_device_work=bool(gathered.launches.count),
        has_python_functions=gathered.with_python_functions, has_call_lines=gathered.with_call_lines,
        is_made_ahead=any(AHEAD in gathered.texts.values[load.number] for load in gathered.loads[:1]),
    )  # fmt: skip


def write_rank(rank: Rank) -> Written:
    """Second pass. Raises RunError when the run cannot be written."""
    check_folder(rank.run)
    processes.say(f"rank {rank.rank}: writing its tables")
    files = [(waiting.take(), offset) for waiting, offset in rank.files]
    names: list[str] = []
    steps, loads = [], []
    for gathered, offset in files:
        first = len(names)
        names += gathered.texts.values
        steps += shifted(gathered.steps, offset)
        loads += [mark._replace(number=mark.number + first) for mark in shifted(gathered.loads, offset)]
    folder = folder_alone(rank.run)
    with without_collector(), RankTables(
        folder, rank.rep, rank.rank, Steps(steps, loads, names), device_rows=rank.has_device_work
    ) as tables:  # fmt: skip
        for gathered, offset in files:
            tables.add(gathered, offset)
        tables.finish()
    return Written(tables.counts, bool(steps), [gathered.overlaps for gathered, _ in files])
