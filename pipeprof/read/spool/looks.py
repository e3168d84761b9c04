"""Batches of a loader without hooks: how long the loop waited for each, from looks at where the training was.

Pure: marks and looks in, marks of fetches out. A look that finds the training at a wait counts for the time between an
update and the next call of the network, or for the rest of the step. The share of such looks, of as many consecutive
steps as have enough of them, is the share of that time in which the loop waited.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.spool.marks import Kind, Mark, Marks
from pipeprof.read.spool.sections import BACKWARD

if TYPE_CHECKING:
    from numpy.typing import NDArray

WAITS = 1  # what a look found, as the probe numbers it
LEAST = 20  # looks of a training; fewer say nothing
TOGETHER = 200  # looks from which a share is taken

Look = tuple[int, int, int]  # time, what was found, number of the iterator


@dataclass
class _Gap:
    """The time between two updates; `called`: when the network was first called in it."""

    begin: int
    called: int
    end: int
    units: tuple[int, int]
    looks: list[Look] = field(default_factory=list)

    @property
    def lengths(self) -> tuple[int, int]:
        return self.called - self.begin, self.end - self.called

    def part(self, look: Look) -> int:
        """0 before the network was called, 1 after it."""
        return int(look[0] >= self.called)


def called_first(marks: Iterable[Mark]) -> NDArray[np.int64]:
    """When the network, a backward pass or an optimizer was called, in order."""
    marks = Marks.of(marks)
    sections = marks.only(Kind.SECTION)
    return np.sort(
        np.concatenate([marks.only(Kind.CALL, Kind.UPDATE).begin, sections.begin[sections.flag == BACKWARD]])
    )


def with_sampled_fetches(marks: Iterable[Mark], looks: Sequence[Look]) -> Marks:
    """The marks with one of a fetch for each step that waited for a loader without hooks, in order of their end."""
    marks = Marks.of(marks)
    if len(looks) < LEAST:
        return marks
    counts: Counter[int] = Counter()
    fetches = []
    for block in _blocks(_gaps(marks, sorted(looks))):
        for gap, number, wait in _waits(block):
            fetches.append(Mark(Kind.FETCH, 0, number, counts[number], gap.begin, gap.begin + wait))
            counts[number] += 1
    if not fetches:
        return marks
    both = Marks(np.concatenate([marks.records, Marks.of(fetches).records]))
    return both[np.argsort(both.end, kind="stable")]


def _gaps(marks: Marks, looks: Sequence[Look]) -> Iterator[_Gap]:
    """The times between two updates in which no loader with hooks was asked."""
    updates = sorted(marks.only(Kind.UPDATE), key=lambda mark: mark.end)
    asked = sorted(marks.only(Kind.FETCH).begin.tolist())
    calls, times = called_first(marks).tolist(), [look[0] for look in looks]
    for before, after in pairwise(updates):
        begin, end = before.end, after.end
        if after.begin < begin or bisect_left(asked, begin) != bisect_left(asked, end):
            continue
        called = calls[bisect_left(calls, begin)]
        inside = looks[bisect_left(times, begin) : bisect_right(times, end)]
        yield _Gap(begin, called, end, (before.subject, after.subject), list(inside))


def _blocks(gaps: Iterable[_Gap]) -> list[list[_Gap]]:
    """Consecutive gaps with enough looks together; the last ones go with those before them."""
    blocks: list[list[_Gap]] = [[]]
    seen = 0
    for gap in gaps:
        if seen >= TOGETHER:
            blocks.append([])
            seen = 0
        blocks[-1].append(gap)
        seen += len(gap.looks)
    if seen < TOGETHER and len(blocks) > 1:
        last = blocks.pop()
        blocks[-1] += last
    return blocks


def _waits(block: Sequence[_Gap]) -> Iterator[tuple[_Gap, int, int]]:
    """(gap, iterator, ns) of those that waited. Gaps between the same two units are alike: several may make a step."""
    alike: dict[tuple[int, int], list[_Gap]] = defaultdict(list)
    for gap in block:
        alike[gap.units].append(gap)
    for gaps in alike.values():
        every, waiting = Counter[int](), Counter[int]()
        numbers: Counter[int] = Counter()
        for gap in gaps:
            every.update(gap.part(look) for look in gap.looks)
            waiting.update(gap.part(look) for look in gap.looks if look[1] == WAITS)
            numbers.update(look[2] for look in gap.looks if look[1] == WAITS)
        if numbers:
            shares = [waiting[part] / every[part] if every[part] else 0.0 for part in (0, 1)]
            number = min(numbers, key=lambda one: (-numbers[one], one))
            for gap in gaps:
                yield gap, number, round(sum(s * length for s, length in zip(shares, gap.lengths, strict=True)))
