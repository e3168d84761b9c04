"""What is to be read of one rank, and what came of it: both can be sent to another process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.read.source.content import one_line
from pipeprof.read.tables.outcome import Notes
from pipeprof.read.tables.writer import Streamed
from pipeprof.record.run import Manifest, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeprof.errors import SourceError


class Share(msgspec.Struct):
    """One rank's captures in order of time, each as files by kind; the zeros of its clocks; its rows in other files.

    `reader` is the module that reads it, with `read_rank(share, run, progress)`.
    """

    reader: str
    rank: int
    captures: list[dict[str, list[str]]] = []
    zeros: dict[str, int] = {}
    rows: dict[str, list[tuple[str, int | None, dict[str, Any]]]] = {}

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(size_of(path) for path in self.paths())

    def paths(self) -> list[Path]:
        """All its files."""
        return [Path(path) for files in self.captures for paths in files.values() for path in paths]


class Outcome(msgspec.Struct):
    """What was read of one rank: rows by table, what was odd, damage (message, hint), and facts for the manifest."""

    rank: int
    counts: dict[str, int] = {}
    notes: list[tuple[str, str]] = []
    damage: list[tuple[str, str]] = []
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    steps: str | None = None
    facts: dict[str, dict[str, Any]] = {}


class RankTables(Streamed):
    """One rank's tables. Times go in as ns of their own clock, of which each has its own zero; nothing relates them.

    `notes` gathers what was odd.
    """

    def __init__(self, run: Run, rank: int, zeros: Mapping[str, int], progress: Callable[[str], None]) -> None:
        super().__init__(run, rank)
        self.zeros = zeros
        self.progress = progress
        self.notes = Notes()
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self._odd: dict[tuple[str, str], str] = {}

    def odd(self, path: Path, what: str, where: str) -> None:
        """One more value of a file that was left out for this reason; of all these, the place of the first is said."""
        first = self._odd.setdefault((path.name, what), where)
        self.notes.count(path, f"{what} (first: {first})")

    def at(self, time_ns: int, clock: str) -> int:
        """A time of a clock as ns since that clock's zero; remembers the first and the last."""
        value = time_ns - self.zeros.get(clock, 0)
        self.first[clock] = min(self.first.get(clock, value), value)
        self.last[clock] = max(self.last.get(clock, value), value)
        return value

    def outcome(self, damage: Iterable[SourceError], **more: Any) -> Outcome:
        """What came of it, once the tables are written."""
        return Outcome(
            self.rank, self.counts, [(code, one_line(message)) for code, message in self.notes.all()],
            [(one_line(error.message), error.hint) for error in damage], self.first, self.last, **more,
        )  # fmt: skip


def folder_alone(folder: Path) -> Run:
    """A run of which no more is known than its folder: what reading a rank in another process needs."""
    return Run(folder, Manifest(run_id="", started_at="", pipeprof_version=""))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 when it cannot be seen: reading it will say why."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
