"""What lies in the spool of a repetition: the marks and events of each process, as far as they were written.

And whose it is: a run's folder may be deleted, replaced or put together by hand while something records into it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.errors import RunError
from pipeprof.read.spool import lines
from pipeprof.read.spool.lines import SpoolNotes, content, shown
from pipeprof.read.spool.marks import RECORD, Kind, Marks
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import file_end
from pipeprof.record.run import Failure
from pipeprof.record.run import load as load_run

if TYPE_CHECKING:
    from pipeprof.record.run import Run

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

    def by_number(self, name: str) -> dict[int, dict[str, Any]]:
        """Events of one name by their number; the last of a number counts."""
        return {int(event["number"]): event for event in self.all(name)}

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
    return lines.records(folder / "events.jsonl", lines.event, notes)


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


def facts(path: Path, notes: SpoolNotes) -> dict[str, Any]:
    """What the launcher wrote when a repetition began, or ended; empty when that is not there, or damaged."""
    text = content(path, notes)
    try:
        noted: dict[str, Any] = lines.launch(text) if text else {}
    except BAD_JSON as error:
        notes.damaged(f"{shown(path)} was left out: {error}")
        return {}
    return noted


def is_of(run: Run, noted: Mapping[str, Any]) -> bool:
    """Whether something in a spool was noted for this run; older versions do not say."""
    return noted.get("run_id") in (None, run.manifest.run_id)


def refuse_another_run(run: Run) -> Run | None:
    """The run as it lies on disk, None when it cannot be read.

    Raises RunError when the folder was given to another run while this one was recorded.
    """
    try:
        there = load_run(run.path)
    except (RunError, OSError):
        return None
    if there.manifest.run_id != run.manifest.run_id:
        raise RunError(
            f"`{run.path}` holds another run: found run_id {there.manifest.run_id}, expected {run.manifest.run_id}; "
            "the folder was replaced while it was recorded into",
            "record again with another name after -o",
        )
    return there


def refuse_anothers_spool(run: Run, reps: Sequence[int]) -> None:
    """Raises RunError when a repetition of the spool was begun for another run."""
    for rep in reps:
        folder = run.spool / f"rep={rep}"
        noted = facts(folder / "launch.json", SpoolNotes())
        if not is_of(run, noted):
            raise RunError(
                f"`{folder}` is of another run: found run_id {noted['run_id']}, expected {run.manifest.run_id}",
                "remove the folder `spool`, or restore the `run.json` that belongs to it",
            )


FAILED = "failed.jsonl"


def failure_of(spool: Path, recorded: Collection[int], notes: SpoolNotes) -> Failure | None:
    """None when no watched process ended with an exception. `recorded`: process ids that used MindSpore.

    In a job of several ranks the others fail because one did, so the first counts; without any of them the last: a
    program fails after its helpers.
    """
    read: list[dict[str, Any]] = lines.records(spool / FAILED, lines.failure, notes)
    failures = sorted(read, key=lambda facts: facts["t"])
    training = [facts for facts in failures if facts["pid"] in recorded]
    chosen = training[0] if training else failures[-1] if failures else None
    if chosen is None:
        return None
    return Failure(
        pid=chosen["pid"], error=chosen["error"], place=chosen["place"], code=chosen["code"], lines=chosen["lines"]
    )
