"""A part of a run, which an engine can have in place of all of it: some ranks with all their rows, or some steps."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipeprof.record.run import is_compact

MOST = 1 << 62
ALL = (-MOST, MOST)


class Part(NamedTuple):
    """From the first to the last rank; or from the first to the last position of a step, where ranks are compared."""

    ranks: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None
    rep: int | None = None  # one repetition of the ranks, else all

    @classmethod
    def of_rank(cls, rep: int, rank: int) -> Part:
        """One rank in one repetition."""
        return cls(ranks=(rank, rank), rep=rep)

    def has(self, path: Path) -> bool:
        """Whether a file of a table can hold rows of it."""
        if self.ranks is None or is_compact(path):
            return True
        rep, rank = (int(part.partition("=")[2]) for part in path.parts[-3:-1])
        return self.rep in (None, rep) and self.ranks[0] <= rank <= self.ranks[1]

    @property
    def place(self) -> str | None:
        """Folder of its files in that of a table; None where they are in several."""
        if self.ranks is None or self.rep is None or self.ranks[0] != self.ranks[1]:
            return None
        return f"rep={self.rep}/rank={self.ranks[0]}"

    @property
    def is_copied(self) -> bool:
        """Whether tables are read once into memory. One rank may have millions of rows, and is asked little."""
        return self.ranks is not None and self.rep is None

    @property
    def key(self) -> dict[str, int]:
        """What tells answers about it from those about all of the run, in a report of which both are part."""
        return {} if self.rep is None or self.ranks is None else {"rep": self.rep, "rank": self.ranks[0]}

    @property
    def of_tables(self) -> str:
        """WHERE clause that limits a table to this part; empty for all."""
        if self.ranks is None:
            return ""
        of_rep = "" if self.rep is None else f" AND rep = {self.rep}"
        return " WHERE rank BETWEEN {} AND {}".format(*self.ranks) + of_rep

    def narrowed(self, view: str, sql: str) -> str:
        """The text of a view, of which only the steps of the part are looked at."""
        if self.steps is None or view != "rank_phase":
            return sql
        return "SELECT * FROM ({}) WHERE position BETWEEN {} AND {}".format(sql, *self.steps)  # noqa: S608 - numbers
