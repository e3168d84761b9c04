"""Rows of one rank that leave memory as they come."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pipeprof.read.kineto.writing import TableWriter
from pipeprof.read.spool.rank import RankRows
from pipeprof.record import store

if TYPE_CHECKING:
    from typing_extensions import Self

    from pipeprof.record.run import Run

ROWS = 1 << 14  # of a table, that wait
OPERATORS = 200_000  # that are told apart by name; of more, only the types
_TEXT = 4_000  # characters of a name
_TIMES = ("t_ns", "start_ns", "end_ns")


class Streamed(RankRows):
    """As `RankRows`, of repetition 0, written piece by piece; times are moved by `by_ns`.

    `more`: whether operators were told apart by type only. The files get their names at the end of a `with` block, and
    only when it ends well.
    """

    def __init__(self, run: Run, rank: int, by_ns: int) -> None:
        super().__init__(0, rank, 0)
        self._counts: dict[str, int] = {}
        self._run = run
        self._by_ns = by_ns
        self.more = False
        self._writers: dict[str, TableWriter] = {}
        self._files = ExitStack()

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each table, those that are written already too."""
        return self._counts

    def add(self, table: str, **values: Any) -> None:
        """Append a row; columns that are not given are null. Raises RunError when the disk is full."""
        if self._by_ns:
            values |= {name: values[name] + self._by_ns for name in _TIMES if name in values}
        super().add(table, **values)
        self._counts[table] = self._counts.get(table, 0) + 1
        if len(self.rows[table]) >= ROWS:
            self._write(table)

    def op_id(self, name: str | None, phase: str | None, **info: Any) -> int:
        """As of `RankRows`, for so many operators that they fit into memory."""
        if len(self._ops) >= OPERATORS and (name, phase, info.get("type")) not in self._ops:
            self.more = True
            name, info = None, info if len(self._ops) < 2 * OPERATORS else {}
        return super().op_id(name and name[:_TEXT], phase, **{key: value[:_TEXT] for key, value in info.items()})

    def _write(self, table: str) -> None:
        if table not in self._writers:
            self._writers[table] = self._files.enter_context(TableWriter(self._run, table, 0, self.rank))
        columns = store.arrow(table, list(zip(*self.rows.pop(table), strict=True))).combine_chunks()
        self._writers[table].add({name: columns[name].chunk(0) for name in columns.column_names})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._files.__exit__(kind, *error)  # type: ignore[arg-type]
            return
        with self._files:
            for table in list(self.rows):
                self._write(table)
