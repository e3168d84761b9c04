"""What is to be read of one rank, and what came of it: both can be sent to another process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.source.content import one_line
from pipeprof.read.tables.writer import Streamed
from pipeprof.record.note import note
from pipeprof.record.run import Manifest, NotMeasured, Run
from pipeprof.units import format_count


class Notes:
    """What was odd, for the user: `add` says it at once, `count` gathers equal oddities of one file into one line."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], None] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, message: str) -> None:
        """Say a thing once."""
        self._said[code, message] = None

    def count(self, path: Path, what: str, times: int = 1) -> None:
        """One more value of this file that was left out, for this reason."""
        if times:
            self._counts[path.name, what] += times

    def all(self) -> list[tuple[str, str]]:
        """(code, message) of everything, in the order it was found; left-out values last."""
        return list(self._said) + [
            ("bad_value", f"`{name}`: {'1 entry was' if times == 1 else f'{times:,} entries were'} left out: {what}")
            for (name, what), times in self._counts.items()
        ]


class Damage(NamedTuple):
    """A file, or a part of it, that could not be read."""

    message: str
    hint: str = ""
    rank: int | None = None


def count(manifest: Manifest, table: str, rows: int) -> None:
    """Rows that were written."""
    if rows:
        manifest.tables[table] = manifest.tables.get(table, 0) + rows


def count_ranks(manifest: Manifest, outcomes: Sequence[Outcome]) -> None:
    """Rows that were written of all ranks, and what was odd in their files."""
    for one in outcomes:
        for table, rows in sorted(one.counts.items()):
            count(manifest, table, rows)
        for code, message in one.notes:
            manifest.warn(code, message, rep=0, rank=one.rank)


def take_in(
    manifest: Manifest,
    outcomes: Sequence[Outcome],
    nothing: Damage,
    *,
    damage: Sequence[Damage] = (),
    measured: Sequence[str] = (),
) -> list[Damage]:
    """As `count_ranks`; the damage in the files comes back, behind that which is known.

    Raises the first of it, else `nothing`, where no table (of those that count as `measured`) has a row.
    """
    count_ranks(manifest, outcomes)
    whole = [*damage, *(Damage(message, hint, one.rank) for one in outcomes for message, hint in one.damage)]
    if not any(manifest.tables.get(table) for table in measured or manifest.tables):
        raise SourceError(*(whole or [nothing])[0][:2])
    return whole


def left_out(problems: Mapping[str, int]) -> list[tuple[str, str]]:
    """Notes (code, message) of entries that were left out of a file, by what was wrong with them."""
    return [("left_out", f"left out {format_count(times, 'time')}: {text}") for text, times in problems.items()]


def say_problems(manifest: Manifest, problems: Mapping[str, int], rep: int, rank: int) -> None:
    """As `left_out`, to the manifest."""
    for code, message in left_out(problems):
        manifest.warn(code, message, rep=rep, rank=rank)


def leave_out(manifest: Manifest, paths: Sequence[Path], why: str) -> None:
    """Files that were left out."""
    for path in paths:
        manifest.warn("left_out", f"`{path.name}` was left out: {why}")


def decide(manifest: Manifest, damage: Sequence[Damage], missing: Mapping[str, str], how: str = "") -> None:
    """State and reason by the damage, of which each is a warning that begins with `how`; and what is `missing`."""
    for one in damage:
        where = {} if one.rank is None else {"rep": 0, "rank": one.rank}
        manifest.warn("damaged_file", f"{how}{one.message}", **where)
    manifest.decide("complete")
    if damage:
        manifest.decide("partial", note("file_cut", damage=damage[0].message, more=len(damage) - 1))
    note_missing(manifest, missing)


def note_missing(manifest: Manifest, missing: Mapping[str, str]) -> None:
    """Which tables the run has not, and why."""
    manifest.tables = {table: rows for table, rows in manifest.tables.items() if rows}
    manifest.not_measured = [
        NotMeasured(what=table, why=text) for table, text in missing.items() if not manifest.tables.get(table)
    ]


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
