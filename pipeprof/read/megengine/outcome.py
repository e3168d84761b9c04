"""What a timeline or a memory file gave, rows of tables and what was wrong; and that to the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.read.tables.outcome import count, say_problems
from pipeprof.read.tables.rows import Rows
from pipeprof.record import limits, store

if TYPE_CHECKING:
    from pipeprof.errors import SourceError
    from pipeprof.record.run import Run


def _kept() -> Rows:
    return Rows(0, 0, most=limits.most_imported_rows(kept=True))


@dataclass
class Outcome:
    """Rows per table in schema order; times are ns since the file's own zero, which is `zero_ns` since the epoch."""

    kept: Rows = field(default_factory=_kept)
    zero_ns: int | None = None
    end_ns: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    damage: SourceError | None = None

    @property
    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Rows per table."""
        return self.kept.rows

    def problem(self, text: str) -> None:
        """Count something that was left out."""
        self.problems[text] = self.problems.get(text, 0) + 1


def write(outcome: Outcome, run: Run, rep: int, rank: int, damage: list[SourceError], part: int = 0) -> None:
    """Write an outcome's rows and tell of it."""
    for table, rows in outcome.rows.items():
        store.write(run, table, rep, rank, rows, part)
    tell(outcome, run, rep, rank, damage)


def tell(outcome: Outcome, run: Run, rep: int, rank: int, damage: list[SourceError]) -> None:
    """Count an outcome's rows, and say what was wrong with it."""
    for table, rows in outcome.kept.counts.items():
        count(run.manifest, table, rows)
    say_problems(run.manifest, outcome.problems, rep, rank)
    if outcome.damage is not None:
        damage.append(outcome.damage)
