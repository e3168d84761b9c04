"""What a timeline or a memory file gave: rows of tables, and what was wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.rank import RankRows
from pipeprof.record import limits

if TYPE_CHECKING:
    from pipeprof.errors import SourceError


def _kept() -> RankRows:
    return RankRows(0, 0, 0, most=limits.most_imported_rows(kept=True))


@dataclass
class Outcome:
    """Rows per table in schema order; times are ns since the file's own zero, which is `zero_ns` since the epoch."""

    kept: RankRows = field(default_factory=_kept)
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
