"""One process's folder in the spool: its marks and events, as far as they were written."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_MARK = struct.Struct("<BBIIqq")
OTHER_THREAD = 0x80


class Kind:
    """Kinds of marks, as the probe numbers them."""

    FETCH, TRAIN_STEP, TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END = 1, 2, 3, 4, 5, 6
    EVAL_BEGIN, EVAL_END, EVAL_STEP, UPDATE, CALL, COMPILE, STEP, SECTION = 7, 8, 9, 10, 11, 12, 13, 14
    ALL = range(1, 15)


class Mark(NamedTuple):
    """One interval; `begin` and `end` in ns of the monotonic clock."""

    kind: int
    flag: int
    subject: int
    number: int
    begin: int
    end: int


@dataclass
class Process:
    """What one process left behind."""

    folder: Path
    about: dict[str, Any]
    marks: list[Mark]
    events: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    def all(self, name: str) -> list[dict[str, Any]]:
        """Events of one name, in order."""
        return [event for event in self.events if event["e"] == name]

    def first(self, name: str) -> dict[str, Any] | None:
        """The first event of one name."""
        return next((event for event in self.events if event["e"] == name), None)

    @property
    def ended_normally(self) -> bool:
        """Whether the interpreter's exit handlers ran."""
        return self.first("bye") is not None

    @property
    def last_ns(self) -> int:
        """Time of the last thing recorded, ns of the monotonic clock."""
        marks = max((mark.end for mark in self.marks), default=0)
        return max(marks, max((int(event["t"]) for event in self.events), default=0))


def load_processes(spool: Path) -> list[Process]:
    """All processes of a repetition's spool that recorded something, by start time."""
    found = [process for folder in sorted(spool.glob("proc-*")) if (process := load(folder)) is not None]
    return sorted(found, key=lambda process: int(process.about.get("started", 0)))


def load(folder: Path) -> Process | None:
    """One process, or None when not even its first line was written."""
    notes: list[str] = []
    events = _read_events(folder / "events.jsonl", notes)
    about = next((event for event in events if event["e"] == "process"), None)
    if about is None:
        return None
    return Process(folder, about, _read_marks(folder / "marks.bin", notes), events, notes)


def _read_events(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    events = []
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        try:
            event = json.loads(line)
            events.append(event | {"e": event["e"], "t": int(event["t"])})
        except (ValueError, KeyError, TypeError):
            notes.append(f"a cut-off line in `{path.parent.name}/{path.name}` was left out")
    return events


def _read_marks(path: Path, notes: list[str]) -> list[Mark]:
    data = path.read_bytes() if path.is_file() else b""
    whole = len(data) - len(data) % _MARK.size
    if whole != len(data):
        notes.append(f"`{path.parent.name}/{path.name}` ends in the middle of a record, which was left out")
    marks = [Mark(*fields) for fields in _MARK.iter_unpack(data[:whole])]
    good = [mark for mark in marks if mark.kind in Kind.ALL and mark.begin <= mark.end]
    if len(good) != len(marks):
        notes.append(f"{len(marks) - len(good)} damaged records in `{path.parent.name}/{path.name}` were left out")
    return good
