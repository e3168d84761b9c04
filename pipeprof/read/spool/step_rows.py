"""Steps in columns: a long training has millions, and no Python object for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, overload

import numpy as np

from pipeprof.read.spool.marks import Mark, Marks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.read.source.numbers import Bools, Ints

KINDS = ("warmup", "train", "eval")
WARMUP, TRAIN, EVAL = range(len(KINDS))
NONE = -1  # no epoch; no pipeline


@dataclass
class Step:
    """One step: times in ns of the monotonic clock; `fetches` are its marks of rows, in order."""

    kind: str
    start: int
    end: int
    epoch: int | None = None
    fetches: list[Mark] = field(default_factory=list)
    updates: int = 0
    worked: bool = False  # the network was seen at work in it

    @property
    def handed_over(self) -> int | None:
        """When the first forward could start: the end of the last fetch before any iterator is asked a second time."""
        seen: set[int] = set()
        end = None
        for fetch in self.fetches:
            if fetch.subject in seen:
                break
            seen.add(fetch.subject)
            end = fetch.end
        return end

    @property
    def input_ns(self) -> int | None:
        """Time until the first forward could start, and inside iterators after that; None when nothing was fetched."""
        ready = self.handed_over
        if ready is None:
            return None
        return ready - self.start + sum(max(0, fetch.end - max(ready, fetch.begin)) for fetch in self.fetches)


@dataclass
class StepRows(Sequence[Step]):
    """Steps as columns, whose names are those of Step; one that is asked for becomes a Step.

    `kind`: index in KINDS. `fetched`: where in `marks` the fetches are, those of step I from `fetched_from[I]` on.
    """

    marks: Marks
    kind: NDArray[np.uint8]
    start: Ints
    end: Ints
    epoch: Ints
    updates: Ints
    worked: Bools
    fetched: Ints
    fetched_from: Ints

    @classmethod
    def of(cls, steps: Iterable[Step]) -> StepRows:
        """These steps in columns."""
        if isinstance(steps, StepRows):
            return steps
        listed = list(steps)
        fetches = [fetch for step in listed for fetch in step.fetches]
        counts = [len(step.fetches) for step in listed]
        return cls.made(Marks.of(fetches), listed, range(len(fetches)), counts)

    @classmethod
    def made(cls, marks: Marks, steps: Sequence[Step], fetched: Sequence[int], counts: Sequence[int]) -> StepRows:
        """Columns of steps whose fetches, `counts` of each, are at `fetched` in the marks."""
        return cls(
            marks,
            np.array([KINDS.index(step.kind) for step in steps], np.uint8),
            np.array([step.start for step in steps], np.int64),
            np.array([step.end for step in steps], np.int64),
            np.array([NONE if step.epoch is None else step.epoch for step in steps], np.int64),
            np.array([step.updates for step in steps], np.int64),
            np.array([step.worked for step in steps], np.bool_),
            np.array(fetched, np.int64),
            offsets(np.array(counts, np.int64)),
        )

    @property
    def fetches(self) -> Ints:
        """How many fetches each has."""
        return np.diff(self.fetched_from)

    @property
    def of_fetch(self) -> Ints:
        """The step of each of `fetched`."""
        return np.repeat(np.arange(len(self)), self.fetches)

    @property
    def first_subject(self) -> Ints:
        """The iterator of the first fetch of each; NONE without one."""
        subjects = np.full(len(self), NONE, np.int64)
        has = self.fetches > 0
        subjects[has] = self.marks.subject[self.fetched[self.fetched_from[:-1][has]]]
        return subjects

    def handed_over(self) -> tuple[Ints, Bools]:
        """`handed_over` of each, and where there is one."""
        known = self.fetches > 0
        at = np.zeros(len(self), np.int64)
        at[known] = self.marks.end[self.fetched[self.fetched_from[:-1][known]]]
        for index in np.flatnonzero(self.fetches > 1).tolist():
            at[index] = self[index].handed_over
        return at, known

    def input_ns(self) -> tuple[Ints, Bools]:
        """`input_ns` of each, and where there is one."""
        at, known = self.handed_over()
        length = np.where(known, at - self.start, 0)
        for index in np.flatnonzero(self.fetches > 1).tolist():
            length[index] = self[index].input_ns
        return length, known

    def take(self, chosen: Ints | Bools) -> StepRows:
        """These steps, in this order."""
        at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        counts = self.fetches[at]
        fetched = self.fetched[places(self.fetched_from[:-1][at], counts)]
        columns = {name: getattr(self, name)[at] for name in _PLAIN}
        return StepRows(self.marks, **columns, fetched=fetched, fetched_from=offsets(counts))

    def among(self, marks: Marks, at: Ints) -> StepRows:
        """The same steps with fetches in other marks: what is at I here is at `at[I]` there."""
        return replace(self, marks=marks, fetched=at[self.fetched])

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        fetched = self.fetched[self.fetched_from[at] : self.fetched_from[at + 1]]
        epoch = int(self.epoch[at])
        return Step(
            KINDS[self.kind[at]], int(self.start[at]), int(self.end[at]), None if epoch == NONE else epoch,
            list(self.marks[fetched]), int(self.updates[at]), bool(self.worked[at]),
        )  # fmt: skip

    def __iter__(self) -> Iterator[Step]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


_PLAIN = [one.name for one in fields(StepRows) if one.name not in ("marks", "fetched", "fetched_from")]


def joined(parts: Sequence[StepRows], marks: Marks) -> StepRows:
    """Steps one behind the other, all with fetches in the same marks."""
    parts = parts or [StepRows.made(marks, [], [], [])]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_PLAIN, "fetched")}
    return StepRows(marks, **columns, fetched_from=offsets(np.concatenate([part.fetches for part in parts])))


def offsets(counts: Ints) -> Ints:
    """Where each begins that has so many, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def places(first: Ints, counts: Ints) -> Ints:
    """So many places from each first one on, one behind the other."""
    begins = offsets(counts)
    starts: Ints = np.repeat(first - begins[:-1], counts)
    return starts + np.arange(int(begins[-1]), dtype=np.int64)
