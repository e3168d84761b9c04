"""One process's folder in the spool: its marks and events, as far as they were written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeprof.read.spool import lines
from pipeprof.read.spool.lines import SpoolNotes, content, shown
from pipeprof.read.spool.lines import records as records_of
from pipeprof.read.spool.marks import RECORD, Kind, Marks
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import file_end

_MARKS = "marks.bin"
NOW = "now.json"
LATEST = 1 << 61  # ns


@dataclass
class Process:
    """What one process left behind. `notes` say what was left out of its files."""

    folder: Path
    about: dict[str, Any]
    marks: Marks
    events: list[dict[str, Any]]
    notes: SpoolNotes = field(default_factory=SpoolNotes)
    still_ns: int = 0  # until then nothing was waiting to be written

    def __post_init__(self) -> None:
        self.marks = Marks.of(self.marks)

    def all(self, name: str) -> list[dict[str, Any]]:
        """Events of one name, in order."""
        return [event for event in self.events if event["e"] == name]

    def first(self, name: str) -> dict[str, Any] | None:
        """The first event of one name."""
        return next((event for event in self.events if event["e"] == name), None)

    def imported(self) -> dict[str, dict[str, Any]]:
        """The imports of MindSpore and PyTorch, by library."""
        return {event.get("library", "mindspore"): event for event in reversed(self.all("import"))}

    def import_times(self) -> list[tuple[int, int]]:
        """When each of these began and ended, where both are known."""
        times = ((event.get("begin"), event.get("end")) for event in self.imported().values())
        return [(int(begin), int(end)) for begin, end in times if begin and end]

    @property
    def ended_normally(self) -> bool:
        """Whether the interpreter's exit handlers ran."""
        return self.first("bye") is not None

    @property
    def last_ns(self) -> int:
        """Until when it is known what it did, ns of the monotonic clock: the last record, or a look that saw none."""
        marks = int(self.marks.end.max(initial=0))
        return max(marks, self.still_ns, max((int(event["t"]) for event in self.events), default=0))


def load_processes(spool: Path, notes: SpoolNotes) -> list[Process]:
    """All processes of a repetition's spool that recorded something, by start time. `notes`: of the others."""
    processes = [process for folder in sorted(spool.glob("proc-*")) if (process := load(folder, notes)) is not None]
    return sorted(processes, key=lambda process: int(process.about["started"]))


def load(folder: Path, notes: SpoolNotes) -> Process | None:
    """One process, or None when not even its first line was written; `notes` then get what was damaged."""
    mine = SpoolNotes()
    events = events_of(folder, mine)
    about = next((event for event in events if event["e"] == "process"), None)
    if about is None:
        notes.all += mine.all
        notes.damage += mine.damage
        return None
    marks = _read_marks(folder / _MARKS, mine)
    now = now_of(folder)
    still_ns = int(now["t"]) if now and now["moved"] < now["t"] else 0
    return Process(folder, about, marks, events, mine, still_ns)


def now_of(folder: Path) -> dict[str, Any]:
    """What a process said last of where it is; nothing when it never did, or that is damaged."""
    try:
        facts: dict[str, Any] = lines.now(content(folder / NOW, SpoolNotes()))
    except BAD_JSON:
        return {}
    return facts


def events_of(folder: Path, notes: SpoolNotes) -> list[dict[str, Any]]:
    """The events of a process's folder, without those that are damaged."""
    return records_of(folder / "events.jsonl", lines.event, notes)


def newest_marks(folder: Path, most: int) -> Marks:
    """The last `most` marks of a process that goes on writing them; none when it has written none."""
    try:
        data, begin = file_end(folder / _MARKS, (most + 1) * RECORD.itemsize, inside=folder.parent)
    except OSError:
        return Marks.of([])
    skipped = -begin % RECORD.itemsize
    return _sound(data[skipped : len(data) - (len(data) - skipped) % RECORD.itemsize])


def _sound(data: bytes) -> Marks:
    marks = Marks(np.frombuffer(data, RECORD))
    good = marks.among(*Kind.ALL) & (marks.begin >= -LATEST) & (marks.begin <= marks.end) & (marks.end <= LATEST)
    return marks if good.all() else marks[good]


def _read_marks(path: Path, notes: SpoolNotes) -> Marks:
    data = content(path, notes)
    complete = len(data) - len(data) % RECORD.itemsize
    if complete != len(data):
        notes.cut(f"{shown(path)} ends in the middle of a record, which was left out")
    good = _sound(data[:complete])
    if damaged := complete // RECORD.itemsize - len(good):
        notes.damaged(f"{damaged} damaged records in {shown(path)} were left out")
    return good
