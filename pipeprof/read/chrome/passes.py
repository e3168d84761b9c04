"""The two passes over a trace, each in any process: events to columns on disk, and columns of a rank to its tables."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeprof import processes
from pipeprof.read.chrome.container import Trace
from pipeprof.read.chrome.kinds import AHEAD
from pipeprof.read.chrome.parts import Parts
from pipeprof.read.chrome.steps import Steps
from pipeprof.read.chrome.tables import RankTables, shifted
from pipeprof.read.source.collector import without_collector
from pipeprof.read.tables.halfway import Waiting
from pipeprof.read.tables.share import folder_alone
from pipeprof.read.tables.workers import check_folder

if TYPE_CHECKING:
    from pipeprof.read.chrome.container import Header, OwnRank
    from pipeprof.read.chrome.dialect import Dialect
    from pipeprof.read.chrome.gather import Gathered

_PROGRESS_EVENTS = 50_000
_NAMED_RANK = re.compile(r"rank[_=-]?([0-9]{1,6})")


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
            named = _NAMED_RANK.findall("/".join(self.path.parts[-3:]))
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
    trace = Trace(file.path)
    said = 0
    with without_collector(), ExitStack() as exits:
        own = Path(tempfile.mkdtemp(dir=file.folder))  # a lost node may have begun the same
        parts = Parts(trace, own, exits, file.dialect)
        for events in parts.gather():
            if events >= said + _PROGRESS_EVENTS:
                said = events
                processes.say(f"{file.path.name}: {events:,} events read")
        return [_half(file, trace, part.own, part.gathered) for part in parts.finish()]


def _half(file: File, trace: Trace, own: OwnRank | None, gathered: Gathered) -> Half:
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
