"""What a timeline or a memory file gave: rows of tables, and what was wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.read.spool.rank import RankRows
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from pipeprof.errors import SourceError


@dataclass
class Outcome:
    """Rows per table in schema order; times are ns since the file's own zero, which is `zero_ns` since the epoch."""

    kept: RankRows = field(default_factory=lambda: RankRows(0, 0, 0))
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

    def shift(self, by_ns: int) -> None:
        """Move all times."""
        self.end_ns += by_ns
        if not by_ns:
            return
        for table, rows in self.rows.items():
            moved = [
                index
                for index, name in enumerate(BY_NAME[table].column_names)
                if name in ("t_ns", "start_ns", "end_ns", "produced_ns", "released_ns")
            ]
            for at, row in enumerate(rows):
                cells = list(row)
                for index in moved:
                    cells[index] = None if cells[index] is None else cells[index] + by_ns
                rows[at] = tuple(cells)
