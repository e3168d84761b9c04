"""Collects the rows of one rank of one repetition. Several processes, one after the other, may make up a rank."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pipeprof.record import limits
from pipeprof.record.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence


class RankRows:
    """Rows per table, in schema order, with the rank's running numbers. `zero` is ns of the monotonic clock.

    Operators are numbered from `first_op` on. `workers` says by process id which pipeline's operator a worker process
    of the dataset belongs to: (pipeline_id, op_id). `most`: rows that a table may have.
    """

    def __init__(self, rep: int, rank: int, zero: int, first_op: int = 0, *, most: int | None = None) -> None:
        self.rep = rep
        self.rank = rank
        self.zero = zero
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.steps = 0
        self.kind_steps: dict[str, int] = defaultdict(int)
        self.pipelines = 0
        self.workers: dict[int, tuple[int, int]] = {}
        self._first_op = first_op
        self._most = sys.maxsize if most is None else most
        self._ops: dict[tuple[str | None, str | None, str | None], int] = {}
        self._names: dict[str, dict[str, None]] = {}  # columns of each table
        self._stacks: dict[tuple[int | None, str], int] = {}

    def add(self, table: str, **values: Any) -> None:
        """Append a row; columns that are not given are null.

        Raises KeyError for an unknown column, SourceError when there are too many rows.
        """
        names = self._names.get(table)
        if names is None:
            names = self._names[table] = dict.fromkeys(BY_NAME[table].column_names)
        if not values.keys() <= names.keys():
            raise KeyError(f"{table}: {sorted(values.keys() - names.keys())}")
        rows = self.rows[table]
        rows.append(tuple(map(values.get, names)))
        if len(rows) > self._most:
            limits.refuse_rows(table, len(rows), self._most)

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each table."""
        return {table: len(rows) for table, rows in self.rows.items()}

    def at(self, monotonic_ns: int) -> int:
        """A time of the monotonic clock as ns since the repetition's zero."""
        return monotonic_ns - self.zero

    def stack_id(self, frames: Sequence[str]) -> int | None:
        """Identity of a source location whose frames are given innermost first; None for an empty one."""
        parent: int | None = None
        for frame in reversed(frames):
            key = (parent, frame)
            if key not in self._stacks:
                self._stacks[key] = len(self._stacks)
                self.add("stack", stack_id=self._stacks[key], parent_id=parent, frame=frame)
            parent = self._stacks[key]
        return parent

    def op_id(self, name: str | None, phase: str | None, **info: Any) -> int:
        """Identity of an operator; its row in op_info is made the first time."""
        key = (name, phase, info.get("type"))
        if key not in self._ops:
            self._ops[key] = self._first_op + len(self._ops)
            scope = name.rpartition("/")[0] if name else None
            self.add("op_info", op_id=self._ops[key], name=name, phase=phase, scope=scope or None, **info)
        return self._ops[key]
