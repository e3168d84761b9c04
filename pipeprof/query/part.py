"""A part of a run, which an engine can have in place of all of it: some ranks with all their rows, or some steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeprof.record.run import is_compact

if TYPE_CHECKING:
    from pathlib import Path

MOST = 1 << 62
ALL = (-MOST, MOST)


class Part(NamedTuple):
    """From the first to the last rank; or from the first to the last position of a step, where ranks are compared."""

    ranks: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None

    def has(self, path: Path) -> bool:
        """Whether a file of a table can hold rows of it."""
        if self.ranks is None or is_compact(path):
            return True
        return self.ranks[0] <= int(path.parts[-2].partition("=")[2]) <= self.ranks[1]

    @property
    def of_tables(self) -> str:
        """What SQL adds to the rows of a table."""
        return "" if self.ranks is None else " WHERE rank BETWEEN {} AND {}".format(*self.ranks)

    def narrowed(self, view: str, sql: str) -> str:
        """The text of a view, of which only the steps of the part are looked at."""
        if self.steps is None or view != "rank_phase":
            return sql
        return "SELECT * FROM ({}) WHERE position BETWEEN {} AND {}".format(sql, *self.steps)  # noqa: S608 - numbers
