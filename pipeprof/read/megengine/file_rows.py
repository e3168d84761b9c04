"""What a timeline or a memory file gave, rows of tables and what was wrong; and that to the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.read.tables.outcome import count, say_problems
from pipeprof.read.tables.rows import Rows
from pipeprof.record import limits, store

if TYPE_CHECKING:
    from pipeprof.errors import SourceError
    from pipeprof.record.run import Run


@dataclass
class FileRows:
    """Rows per table in schema order; times are ns since the file's own zero, which is `zero_ns` since the epoch."""

    tables: Rows = field(default_factory=lambda: Rows(0, 0, most=limits.most_imported_rows(in_memory=True)))
    zero_ns: int | None = None
    end_ns: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    damage: SourceError | None = None


def write(file: FileRows, run: Run, rep: int, rank: int, damage: list[SourceError], part: int = 0) -> None:
    """Write the rows of a file, count them, and say what was wrong with it."""
    for table, rows in file.tables.rows.items():
        count(run.manifest, table, store.write(run, table, rep, rank, rows, part))
    say_problems(run.manifest, file.problems, rep, rank)
    if file.damage is not None:
        damage.append(file.damage)
