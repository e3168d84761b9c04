"""Steps of hand-written loops, from what they fetch, call and update. Stretches that repeat are read as columns.

What each iterator of a loop is for, by what follows its rows: training, evaluation, or a look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.step_rows import EVAL, TRAIN, Step, StepRows, joined

if TYPE_CHECKING:
    from pipeprof.read.source.numbers import Ints

FOR_TRAINING, FOR_EVALUATION, LOOK = "train", "eval", "look"
LOOK_ROWS = 8  # of an iterator that is only looked at before the training, at most
ZIPPED_SHARE = 0.9
GRADIENT = 3  # flag of a call: a PyNative forward begins
LONGEST = 16  # marks of a step that are looked for again behind it
OFTEN = 8  # equal steps in a row from which they are read as columns


def loop_steps(marks: Marks, roles: Mapping[int, str], keys: Mapping[int, str]) -> StepRows:
    """The steps, in the order of their ends; their fetches are in `marks`."""
    at = np.flatnonzero(marks.among(Kind.FETCH, Kind.UPDATE, Kind.CALL))
    return _LoopReader(marks[at], roles, keys).read().among(marks, at)


class _LoopReader:
    """A group collects fetches and updates until the next step asks for its batch.

    Without a fetch in between, a step ends with its last update and the next one begins there.
    """

    def __init__(self, marks: Marks, roles: Mapping[int, str], keys: Mapping[int, str]) -> None:
        self.marks = marks
        self.roles = roles
        self.keys = keys
        self.parts: list[StepRows] = []
        self.steps: list[Step] = []  # behind those of `parts`, with where the fetches of each are
        self.fetched: list[list[int]] = []
        self.fetches: list[tuple[int, Mark]] = []
        self.units: Counter[int] = Counter()
        self.begin: int | None = None
        self.last_end = 0
        self.forward: int | None = None
        self.finish: int | None = None  # end of the step just closed, while nothing else came between
        self.passes: Counter[str] = Counter()
        self.rows: Counter[int] = Counter()
        self.stopped: set[int] = set()
        self.epochs: dict[int, int] = {}  # of the rows in `fetches`
        self.epoch = 0
        self.open_eval: tuple[Step, int] | None = None
        self.by_rows = not marks.has(Kind.UPDATE)
        self.used = False  # whether the network was called since the group's first row

    def read(self) -> StepRows:
        """All steps of these marks."""
        repeats = _Repeats(self.marks)
        at = tried = 0
        while at < len(self.marks):
            stop = repeats.next_of(max(at, tried))
            for place, mark in enumerate(self.marks.between(at, stop), at):
                self._take(place, mark)
            at = stop
            if at < len(self.marks):
                length, times = repeats.at(at)
                tried = at + length * times
                at = self._take_repeated(at, length, times)
        left = {mark.subject for _, mark in self.fetches} if self.used else set()
        if not self.by_rows or not self.fetches or self.last_end > self.fetches[-1][1].end:
            self._close(None)  # else nothing came of the last rows: the loop was left, or it raised
        self._close_eval(None)
        self._flush()
        return self._worked(joined(self.parts, self.marks), left)

    def _take(self, at: int, mark: Mark) -> None:
        if mark.kind == Kind.FETCH:
            self._fetch(at, mark)
        elif mark.kind == Kind.UPDATE:
            self._update(mark)
        else:
            self._call(mark)

    def _take_repeated(self, at: int, length: int, times: int) -> int:
        """Read the first of steps that repeat, `times` times so many marks, and with it all but the last.

        Where the next one is comes back. The group that the first one closes is like those that follow.
        """
        first = self.marks[at]
        self._take(at, first)
        own = self.marks[at + 1 : at + length]
        updates = own.subject[own.kind == Kind.UPDATE]
        is_step = len(set(updates.tolist())) == len(updates) > 0 or (self.by_rows and not len(updates))
        if not is_step or own.has(Kind.FETCH) or self.fetches != [(at, first)] or self.begin is None:
            return at + 1
        count = times - 1  # of those that are read here, the first among them
        begins = self.marks.begin[at : at + length * times : length]
        ends = self._last_ends(at, length, count)
        finish = np.maximum(begins[1:], ends)
        begin = np.concatenate([[self.begin], np.maximum(begins[1:-1], finish[:-1])])
        self.epoch = self.epochs[at]
        self._flush()
        self.parts.append(
            StepRows(
                self.marks, np.full(count, TRAIN, np.uint8), begin, finish, np.full(count, self.epoch),
                np.full(count, len(updates)), np.full(count, length > 1), at + length * np.arange(count),
                np.arange(count + 1),
            )
        )  # fmt: skip
        self.rows[first.subject] += count - 1
        self.last_end, self.finish = int(ends[-1]), int(finish[-1])
        self._begin_group()
        return at + length * count

    def _last_ends(self, at: int, length: int, count: int) -> Ints:
        """When each of the steps was over if nothing else began: as `_fetch`, `_update` and `_call` say."""
        stop = at + length * count
        ends = self.marks.end[at:stop:length]
        updated = self.by_rows
        for place in range(at + 1, at + length):
            mark, here = self.marks[place], self.marks.end[place:stop:length]
            if mark.kind == Kind.UPDATE:
                ends, updated = here, True
            elif updated and mark.flag != GRADIENT:
                ends = np.maximum(ends, here)
        return ends

    def _worked(self, steps: StepRows, at_work: set[int]) -> StepRows:
        """Without rows of iterators that the network was never seen at work with, where it was with another's.

        `at_work`: iterators whose last row it was at work with when everything ended.
        """
        if not self.by_rows:
            return steps
        subjects = self.marks.subject[steps.fetched]
        at_work |= set(np.unique(subjects[steps.worked[steps.of_fetch]]).tolist())
        if not at_work:
            return steps
        own = np.bincount(steps.of_fetch[np.isin(subjects, list(at_work))], minlength=len(steps)) > 0
        return steps.take((steps.kind == EVAL) | own)

    def _fetch(self, at: int, mark: Mark) -> None:
        self._close_eval(mark.begin)
        role, is_row = self.roles.get(mark.subject), mark.is_row
        if role in (FOR_EVALUATION, LOOK):
            self._close(mark.begin)
            self.finish = None
            if is_row and role == FOR_EVALUATION:
                self.open_eval = Step("eval", mark.begin, mark.end), at
            return
        if self.units or (self.by_rows and self.fetches):
            self._close(mark.begin)
        if not is_row:
            self.stopped.add(mark.subject)
            return
        self._drop_unused(mark)
        self._count_pass(at, mark)
        if self.begin is None:
            self.begin = mark.begin if self.finish is None else max(mark.begin, self.finish)
        self.fetches.append((at, mark))
        self.last_end = mark.end

    def _drop_unused(self, mark: Mark) -> None:
        """A loop that was broken off after a fetch leaves a row that no step of the next iterator uses."""
        if self.rows[mark.subject]:
            return
        key = self._key(mark.subject)
        left = [
            (at, old)
            for at, old in self.fetches
            if old.subject == mark.subject or self._key(old.subject) != key or self.rows[old.subject] < 2
        ]
        if len(left) != len(self.fetches):
            self.fetches = left
            self.begin, self.finish = (left[0][1].begin if left else None), None

    def _count_pass(self, at: int, mark: Mark) -> None:
        """The epoch of a row: how often this pipeline was begun before, as a new iterator or after its end."""
        key = self._key(mark.subject)
        if not self.rows[mark.subject] or mark.subject in self.stopped:
            self.stopped.discard(mark.subject)
            self.passes[key] += 1
        self.rows[mark.subject] += 1
        self.epochs[at] = self.passes[key] - 1

    def _key(self, number: int) -> str:
        return self.keys.get(number, str(number))

    def _update(self, mark: Mark) -> None:
        self._close_eval(mark.begin)
        if self.units[mark.subject]:
            self._close(None)
        if self.begin is None:
            forward = mark.begin if self.forward is None else self.forward
            self.begin = forward if self.finish is None else self.finish
        self.units[mark.subject] += 1
        self.last_end = mark.end

    def _call(self, mark: Mark) -> None:
        self.used = self.used or bool(self.fetches)
        if mark.flag == GRADIENT:
            self.forward = mark.begin if self.forward is None else self.forward
            return
        if self.open_eval is not None:
            self.open_eval[0].end = max(self.open_eval[0].end, mark.end)
        elif self.units or (self.by_rows and self.fetches):
            self.last_end = max(self.last_end, mark.end) if self.fetches else self.last_end

    def _close(self, end: int | None) -> None:
        """End the group at `end`, or at its last mark. Rows that were never used make no step."""
        if self.begin is not None and (self.units or (self.by_rows and self.fetches)):
            self.finish = self.last_end if end is None else max(end, self.last_end)
            updates = sum(self.units.values())
            if self.fetches:
                self.epoch = self.epochs[self.fetches[0][0]]
            worked = self.used or bool(updates)
            self._add(Step("train", self.begin, self.finish, self.epoch, [], updates, worked), self.fetches)
        self._begin_group()

    def _begin_group(self) -> None:
        self.fetches, self.epochs, self.units = [], {}, Counter()
        self.begin, self.forward, self.used = None, None, False

    def _close_eval(self, end: int | None) -> None:
        if self.open_eval is not None:
            step, at = self.open_eval
            if end is not None:
                step.end = end
            self._add(step, [(at, self.marks[at])])
            self.open_eval = None

    def _add(self, step: Step, fetches: list[tuple[int, Mark]]) -> None:
        self.steps.append(step)
        self.fetched.append([at for at, _ in fetches])

    def _flush(self) -> None:
        """The steps that were made one by one, as columns."""
        fetched = [at for places in self.fetched for at in places]
        self.parts.append(StepRows.made(self.marks, self.steps, fetched, list(map(len, self.fetched))))
        self.steps, self.fetched = [], []


class _Repeats:
    """Where marks repeat: a row and what follows it, the same kinds of the same things, again and again."""

    def __init__(self, marks: Marks) -> None:
        code = marks.subject << 16 | marks.kind.astype(np.int64) << 8 | marks.flag
        rows = np.flatnonzero(marks.rows)
        length = np.diff(np.append(rows, len(code)))
        alike = np.zeros(len(code), np.int64)  # from here on, how many marks are as one step before
        for step in np.unique(length[length <= LONGEST]).tolist():
            same = np.concatenate([np.zeros(step, np.bool_), code[step:] == code[:-step]])
            other = np.append(np.flatnonzero(~same), len(code))
            places = rows[length == step]
            alike[places] = other[np.searchsorted(other, places)] - places
        self._end = len(code)
        fitting = length <= LONGEST
        self._rows, self._length = rows[fitting], length[fitting]
        self._times = alike[self._rows] // self._length
        often = self._times >= OFTEN
        self._rows, self._length, self._times = self._rows[often], self._length[often], self._times[often]

    def next_of(self, at: int) -> int:
        """The first mark from `at` on that begins such a stretch behind one step like it, else the end."""
        index = int(np.searchsorted(self._rows, at))
        return int(self._rows[index]) if index < len(self._rows) else self._end

    def at(self, at: int) -> tuple[int, int]:
        """How many marks a step has that begins there, and how often it is repeated."""
        index = int(np.searchsorted(self._rows, at))
        return int(self._length[index]), int(self._times[index])


def roles_of(marks: Marks, keys: Mapping[int, str], trained_from: int | None) -> dict[int, str]:
    """FOR_TRAINING, FOR_EVALUATION or LOOK for each iterator.

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
        return dict.fromkeys(numbers, FOR_TRAINING)
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
            unused = LOOK if number in looked_at else FOR_EVALUATION
            roles[number] = FOR_TRAINING if is_training else unused
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
