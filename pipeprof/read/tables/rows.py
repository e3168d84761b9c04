"""Collects the rows of one rank of one repetition, and numbers its operators in bounded memory."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pipeprof.record import limits
from pipeprof.record.schema import BY_NAME

MOST = 200_000  # that are told apart by name; of more, only the types
MOST_TEXT = 64 << 20  # characters of names, types and shapes together
LONGEST = 4_000  # characters of one text
FULL = f"more than {MOST:,} operators: of the others only the type is known"
_SHORT = 100  # characters of a type that counts when there are so many

Key = tuple[str | None, ...]


class Operators:
    """Different operators, numbered from `first`. A key is all that tells one from the others."""

    def __init__(self, first: int = 0) -> None:
        self.numbers: dict[Key, int] = {}
        self.full = False  # whether some got the number of what is less exact
        self._first = first
        self._text = 0

    def take(self, *keys: Key) -> tuple[int, Key | None]:
        """The number of an operator, and the key that it has got when it is new.

        Keys are given from the exact one to what is always taken: a later one serves when there are too many.
        """
        for level, key in enumerate(keys):
            number = self.numbers.get(key)
            if number is not None:
                return number, None
            size = sum(map(len, filter(None, key)))
            if level == len(keys) - 1 or self._fits(level, size):
                self._text += size
                self.numbers[key] = self._first + len(self.numbers)
                return self.numbers[key], key
            self.full = True
        raise ValueError("no key")

    def _fits(self, level: int, size: int) -> bool:
        if level == 0:
            return len(self.numbers) < MOST and self._text + size <= MOST_TEXT
        return len(self.numbers) < 2 * MOST and size <= _SHORT


MODULES = "mindspore/"  # begins the frames of modules that are not the program's own


class Rows:
    """Rows per table, in schema order. Operators are numbered from `first_op` on; a table has `most` rows at most."""

    def __init__(self, rep: int, rank: int, first_op: int = 0, *, most: int | None = None) -> None:
        self.rep = rep
        self.rank = rank
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.operators = Operators(first_op)
        self._most = sys.maxsize if most is None else most
        self._names: dict[str, dict[str, None]] = {}  # columns of each table

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

    def op_id(self, name: str | None, phase: str | None, **info: Any) -> int:
        """Identity of an operator; its row in op_info is made the first time. Of too many, only the types are known."""
        kind = info.get("type")
        number = self.operators.numbers.get((name, phase, kind))
        if number is not None:
            return number
        number, made = self.operators.take(
            (name and name[:LONGEST], phase, kind and kind[:LONGEST]), (None, phase, kind), (None, phase, None)
        )
        if made is not None:
            scope = (made[0] or "").rpartition("/")[0] or None
            self.add("op_info", op_id=number, name=made[0], phase=made[1], scope=scope, **info | {"type": made[2]})
        return number


class RankRows(Rows):
    """Rows of a training process and of its dataset pipelines, with the rank's running numbers.

    `zero` is ns of the monotonic clock. `workers` says by process id which pipeline's operator a worker process of the
    dataset belongs to: (pipeline_id, op_id).
    """

    def __init__(self, rep: int, rank: int, zero: int, *, most: int | None = None) -> None:
        super().__init__(rep, rank, most=most)
        self.zero = zero
        self.steps = 0
        self.kind_steps: dict[str, int] = defaultdict(int)
        self.pipelines = 0
        self.workers: dict[int, tuple[int, int]] = {}
        self.blocks: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)  # rows that are columns
        self._stacks: dict[tuple[int | None, str], int] = {}
        self._sites: list[str | None] = []  # by the number of a source location

    def add_block(self, table: str, count: int, **columns: Any) -> None:
        """Append so many rows as columns, before those of `add`; columns that are not given are null.

        A column is an array; or one with a mask of where it is known; or numbers, -1 for null, with their texts.
        Raises KeyError for an unknown column.
        """
        if unknown := columns.keys() - set(BY_NAME[table].column_names):
            raise KeyError(f"{table}: {sorted(unknown)}")
        if count:
            self.rows.setdefault(table, [])  # where the table stands among the others
            self.blocks[table].append((count, columns))

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
                outer = None if parent is None else self._sites[parent]
                self._sites.append(outer if frame.startswith(MODULES) else frame)
                self.add("stack", stack_id=self._stacks[key], parent_id=parent, frame=frame, site=self._sites[-1])
            parent = self._stacks[key]
        return parent
