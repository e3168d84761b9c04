"""The marks of a process in columns: a long training has millions, and no Python object for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.read.source.numbers import Bools, Ints

    Chosen = Bools | NDArray[np.intp] | slice

RECORD = np.dtype(
    [("kind", "u1"), ("flag", "u1"), ("subject", "<u4"), ("number", "<u4"), ("begin", "<i8"), ("end", "<i8")]
)
OTHER_THREAD = 0x80
ROW = 0  # flag of a fetch that returned a batch
_AT_ONCE = 1 << 12  # marks that are Python objects at a time


class Kind:
    """Kinds of marks, as the probe numbers them."""

    FETCH, TRAIN_STEP, TRAIN_BEGIN, TRAIN_END, EPOCH_BEGIN, EPOCH_END = 1, 2, 3, 4, 5, 6
    EVAL_BEGIN, EVAL_END, EVAL_STEP, UPDATE, CALL, COMPILE, STEP, SECTION, PART = 7, 8, 9, 10, 11, 12, 13, 14, 15
    SYNC, GRADIENTS = 16, 17
    ALL = range(1, 18)


class Mark(NamedTuple):
    """One interval; `begin` and `end` in ns of the monotonic clock."""

    kind: int
    flag: int
    subject: int
    number: int
    begin: int
    end: int

    @property
    def is_row(self) -> bool:
        """Whether it is a fetch that returned a batch."""
        return self.kind == Kind.FETCH and self.flag & ~OTHER_THREAD == ROW


class Marks(Sequence[Mark]):
    """Marks as columns `kind`, `flag`, `subject`, `number`, `begin`, `end`; one that is asked for becomes a Mark."""

    def __init__(self, records: NDArray[Any]) -> None:
        self.records = records

    @classmethod
    def of(cls, marks: Iterable[Mark]) -> Marks:
        """These marks in columns."""
        return marks if isinstance(marks, Marks) else cls(np.array([tuple(mark) for mark in marks], RECORD))

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """Of each; as the other columns it is made when it is asked for."""
        return self._bytes("kind")

    @cached_property
    def flag(self) -> NDArray[np.uint8]:
        """What a flag means depends on the kind."""
        return self._bytes("flag")

    @cached_property
    def subject(self) -> Ints:
        """The iterator, unit, or whatever else it is of."""
        return self._int64("subject")

    @cached_property
    def begin(self) -> Ints:
        """Ns of the monotonic clock."""
        return self._int64("begin")

    @cached_property
    def end(self) -> Ints:
        """Ns of the monotonic clock."""
        return self._int64("end")

    @property
    def number(self) -> Ints:
        """The numbers; few ask for them."""
        return self._int64("number")

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self.records[name])

    def of_kind(self, kind: int, chosen: Bools) -> Marks:
        """The same marks, where the chosen ones are of another kind."""
        records = self.records.copy()
        records["kind"][chosen] = kind
        return Marks(records)

    def _int64(self, name: str) -> Ints:
        column: Ints = self.records[name].astype(np.int64)
        return column

    @property
    def rows(self) -> Bools:
        """Whether each is a fetch that returned a batch."""
        rows: Bools = (self.kind == Kind.FETCH) & (self.flag & ~np.uint8(OTHER_THREAD) == ROW)
        return rows

    def among(self, *kinds: int) -> Bools:
        """Whether each is of one of these kinds."""
        chosen: Bools = np.isin(np.arange(256), kinds)[self.kind]
        return chosen

    def has(self, *kinds: int) -> bool:
        """Whether any is of one of these kinds."""
        return bool(self.among(*kinds).any())

    def only(self, *kinds: int) -> Marks:
        """Those of some kinds, in order."""
        return self[self.among(*kinds)]

    def anew(self) -> Marks:
        """The same marks without the columns that were made of them."""
        return Marks(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Mark]:
        return self.between(0, len(self))

    def between(self, first: int, end: int) -> Iterator[Mark]:
        """Those from a place on up to another, one by one."""
        for begin in range(first, end, _AT_ONCE):
            yield from map(Mark._make, self.records[begin : min(begin + _AT_ONCE, end)].tolist())

    @overload
    def __getitem__(self, index: int) -> Mark: ...
    @overload
    def __getitem__(self, index: Chosen) -> Marks: ...
    def __getitem__(self, index: int | Chosen) -> Mark | Marks:
        if isinstance(index, np.ndarray) and _is_all(index, len(self)):
            return self
        chosen = self.records[index]
        return Mark._make(chosen.item()) if isinstance(chosen, np.void) else Marks(chosen)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _is_all(index: NDArray[Any], length: int) -> bool:
    """Whether an index chooses everything in its order: copies of all marks of a long training are large."""
    if index.dtype == np.bool_ or len(index) != length:
        return bool(index.dtype == np.bool_ and index.all())
    return bool((np.diff(index, prepend=-1) == 1).all())
