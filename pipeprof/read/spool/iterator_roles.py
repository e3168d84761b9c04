"""What each iterator of a hand-written loop is for, by what follows its rows: training, evaluation, or a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.marks import Kind, Marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

TRAIN, EVAL, LOOK = "train", "eval", "look"
LOOK_ROWS = 8  # of an iterator that is only looked at before the training, at most
ZIPPED_SHARE = 0.9


def roles_of(marks: Marks, keys: Mapping[int, str], trained_from: int | None) -> dict[int, str]:
    """TRAIN, EVAL or LOOK for each iterator.

    `trained_from`: the first step of `Model.train`, beside which a loop without an update is none of training.

    An iterator trains when an update follows one of its rows (calls of graphs without an optimizer may lie between), or
    when nearly all its rows are followed at once by a row of one that does (two datasets read side by side). One with a
    single row plays the role of the same pipeline's others. Several rows of a pipeline between another's row and an
    update count only where that is so at nearly all updates: else they are of an evaluation, with the batch in hand.

    The others evaluate, but one that was left after one row, or before the training after a few, with which the network
    was not called: it was looked at.
    """
    events = marks.only(Kind.FETCH, Kind.UPDATE, Kind.CALL)
    numbers = np.unique(events.subject[events.kind == Kind.FETCH]).tolist()
    updated_at = events.begin[events.kind == Kind.UPDATE]
    firsts = ([int(updated_at.min())] if len(updated_at) else []) + ([] if trained_from is None else [trained_from])
    if not firsts:
        return dict.fromkeys(numbers, TRAIN)
    return _Followers(events, keys).roles(numbers, _looked_at(events, min(firsts)))


class _Followers:
    """What follows the rows of each iterator, at once and before the next update."""

    def __init__(self, events: Marks, keys: Mapping[int, str]) -> None:
        self.keys = keys
        is_row, is_update = events.rows, events.kind == Kind.UPDATE
        chosen = np.flatnonzero(is_row | is_update)
        calls = np.cumsum(events.kind == Kind.CALL)[chosen]
        self.subject, self.is_row = events.subject[chosen], is_row[chosen]
        self.next_update = self.is_row & np.append(~self.is_row[1:], False)
        self.next_row = self.is_row & np.append(self.is_row[1:] & (calls[1:] == calls[:-1]), False)
        self.rows = _counted(self.subject[self.is_row])
        self._count_updates()

    def key(self, number: int) -> str:
        """The pipeline of an iterator."""
        return self.keys.get(number, str(number))

    def _count_updates(self) -> None:
        """Rows that an update follows, but for those behind several rows of their pipeline and one of another."""
        numbers, own = np.unique(self.subject, return_inverse=True)
        names = [self.key(number) for number in numbers.tolist()]
        numbered = {name: index for index, name in enumerate(dict.fromkeys(names))}
        codes = np.array([numbered[name] for name in names], np.int64)[own]
        last = np.flatnonzero(self.next_update)
        group = np.searchsorted(last, np.arange(len(self.subject)))  # the rows up to each of `last`
        behind = self.is_row & (group < len(last))
        every = np.bincount(group[behind], minlength=len(last))
        same = behind & (codes == np.append(codes[last], -1)[group])
        alike = np.bincount(group[same], minlength=len(last))
        unsure = (alike > 1) & (alike < every)
        self.updated = set(np.unique(self.subject[last[~unsure]]).tolist())
        counts = np.bincount(codes[last[unsure]], minlength=len(numbered)) if numbered else np.zeros(0, np.int64)
        self.often = {name for name, index in numbered.items() if counts[index] >= ZIPPED_SHARE * len(last) > 0}

    def roles(self, numbers: list[int], looked_at: set[int]) -> dict[int, str]:
        """Of each iterator."""
        training = {number for number in self.rows if number in self.updated or self.key(number) in self.often}
        to_training = self.next_row & np.append(np.isin(self.subject[1:], list(training)), False)
        followed = _counted(self.subject[to_training])
        beside = {
            number
            for number in self.rows
            if number not in training and followed.get(number, 0) >= ZIPPED_SHARE * self.rows[number] > 1
        }
        keys_training = {self.keys.get(number) for number in training}
        roles = {}
        for number in numbers:
            same = self.rows.get(number, 0) < 2 and self.keys.get(number) in keys_training
            is_training = number in training or number in beside or same
            roles[number] = TRAIN if is_training else LOOK if number in looked_at else EVAL
        return roles


def _counted(numbers: Ints) -> dict[int, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _looked_at(events: Marks, first: int) -> set[int]:
    """Iterators that were left after a few rows with none of which the network was called; `first` update, ns."""
    is_row, is_fetch = events.rows, events.kind == Kind.FETCH
    ended = set(np.unique(events.subject[is_fetch & ~is_row]).tolist())
    others = np.flatnonzero(is_row | ~is_fetch)
    rows = is_row[others]
    called = rows & np.append(~rows[1:], False)  # by what comes next, as the first that is none of its own
    used = ended | set(np.unique(events.subject[others[called]]).tolist())
    newest = np.flatnonzero(is_row)[::-1]
    numbers, last, counts = np.unique(events.subject[newest], return_index=True, return_counts=True)
    most = np.where(events.end[newest[last]] <= first, LOOK_ROWS, 1)
    return set(numbers[counts <= most].tolist()) - used
