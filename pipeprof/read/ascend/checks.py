"""Self-checks: what must hold within these files. A violation is a warning that names file, row and numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipeprof.units import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.source.notes import Notes

_SPELLED_OUT = 3  # violations of one rule in one file; the others are counted


class Checks:
    """Violations found in the files of a rank."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._counts: Counter[tuple[str, str]] = Counter()

    def that(self, holds: bool, path: Path, row: object, rule: str, seen: str) -> bool:  # noqa: FBT001 - reads as a sentence
        """Whether a rule holds; when not, the first few rows are named."""
        if not holds:
            self._counts[path.name, rule] += 1
            if self._counts[path.name, rule] <= _SPELLED_OUT:
                self._notes.add("self_check", f"`{path.name}`, row {row}: {rule}, found {seen}")
        return holds

    def close(self) -> None:
        """Say how many more there are."""
        for (name, rule), count in self._counts.items():
            if count > _SPELLED_OUT:
                more = format_count(count - _SPELLED_OUT, "more row")
                self._notes.add("self_check", f"`{name}`: {rule}: the same in {more}")
        self._counts.clear()
