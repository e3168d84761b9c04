"""What the manifest says of an import: rows, what was odd, left out or damaged, and what the files do not hold."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.record.note import note
from pipeprof.record.run import NotMeasured
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Outcome
    from pipeprof.record.run import Manifest


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

    def error(self) -> SourceError:
        """The damage as the error that ends an import."""
        return SourceError(self.message, self.hint)


def of_ranks(outcomes: Sequence[Outcome]) -> list[Damage]:
    """The damage in the files of all ranks."""
    return [Damage(message, hint, one.rank) for one in outcomes for message, hint in one.damage]


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
