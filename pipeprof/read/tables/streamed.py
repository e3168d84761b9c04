"""Rows of one rank, in repetition 0, that leave memory as they come."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipeprof.read.tables.rows import Rows
from pipeprof.read.tables.writer import TableWriter
from pipeprof.record import store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from typing_extensions import Self

    from pipeprof.record.run import Run

ROWS = 1 << 14  # of a table, that wait
_TIMES = ("t_ns", "start_ns", "end_ns")


class Streamed(Rows):
    """As `Rows`, written piece by piece; times are moved by `by_ns`.

    The files get their names at the end of a `with` block, and only when it ends well.
    """

    def __init__(self, run: Run, rank: int, by_ns: int = 0) -> None:
        super().__init__(0, rank)
        self._run = run
        self._by_ns = by_ns
        self._writers: dict[str, TableWriter] = {}
        self._files = ExitStack()

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each table, those that are written already too."""
        return {table: count for table in {*self.rows, *self._writers} if (count := self.total(table))}

    def total(self, table: str) -> int:
        """Rows that were added to a table."""
        writer = self._writers.get(table)
        return len(self.rows.get(table, ())) + (writer.rows if writer else 0)

    def add(self, table: str, **values: Any) -> None:
        """Append a row; columns that are not given are null. Raises RunError when the disk is full."""
        if self._by_ns:
            values |= {name: values[name] + self._by_ns for name in _TIMES if name in values}
        super().add(table, **values)
        if len(self.rows[table]) >= ROWS:
            self._gather(table)

    def add_columns(self, table: str, columns: Mapping[str, Any], chosen: NDArray[np.bool_]) -> None:
        """Append the chosen rows by column; columns that are not given are null. Times are not moved."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return
        self._gather(table)
        if count < len(chosen):
            mask = pa.array(chosen)
            columns = {name: column.filter(mask) for name, column in columns.items()}
        self._append(table, columns)

    def _gather(self, table: str) -> None:
        """Rows that wait, to columns."""
        rows = self.rows.pop(table, None)
        if rows:
            data = store.arrow(table, list(zip(*rows, strict=True)))
            self._append(table, {name: data[name].chunk(0) for name in data.column_names})

    def _append(self, table: str, columns: Mapping[str, Any]) -> None:
        if table not in self._writers:
            self._writers[table] = self._files.enter_context(TableWriter(self._run, table, self.rep, self.rank))
        self._writers[table].add(columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._files.__exit__(kind, *error)  # type: ignore[arg-type]
            return
        with self._files:
            for table in list(self.rows):
                self._gather(table)
