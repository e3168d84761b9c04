"""What is known of a rank's steps: where each begins and ends, and which number the source gives it."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeprof.read.source.numbers import Ints
_Interval = TypeVar("_Interval", bound="tuple[int, ...]")
MOST = 1_000_000  # steps whose numbers are remembered


def outermost(intervals: Iterable[_Interval]) -> list[_Interval]:
    """Intervals, whose last two fields are start and end, by start and without those inside another.

    Some traces have the same wait in two categories.
    """
    outer: list[_Interval] = []
    for interval in sorted(intervals, key=lambda one: (one[-2], -one[-1])):
        if not outer or interval[-1] > outer[-1][-1]:
            outer.append(interval)
    return outer


class Steps:
    """Steps of one capture in time order. `source`: kind of file they come from; None: only their numbers are known.

    Positions begin at `base`, behind the captures before. `more` tells that there were more than `MOST`: what names a
    later one has no step.
    """

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.source: str | None = None
        self.clock: str | None = None
        self.more = False
        self._position: dict[int, int] = {}
        self._starts = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._position)

    @property
    def added(self) -> int:
        """Steps whose times are known."""
        return len(self._starts)

    def know(self, number: int) -> int | None:
        """Position of the step with this number in the source; a new one comes last."""
        if self._position.get(number) is None and len(self._position) >= MOST:
            self.more = True
            return None
        return self._position.setdefault(number, self.base + len(self._position))

    def position(self, number: int | None) -> int | None:
        """Position of the step with this number; None when there is none."""
        return None if number is None else self._position.get(number)

    def add(self, number: int, start_ns: int, end_ns: int, clock: str) -> int:
        """The next step in time, from start to end on a clock; returns its position."""
        self.clock = clock
        position = self.base + len(self._starts)
        self._starts.append(start_ns)
        self._ends.append(end_ns)
        if len(self._position) < MOST:
            self._position.setdefault(number, position)
        else:
            self.more = True
        return position

    def at(self, time_ns: int, clock: str) -> int | None:
        """The step in which a time lies; None between steps, and for another clock."""
        if clock != self.clock:
            return None
        index = bisect_right(self._starts, time_ns) - 1
        return self.base + index if index >= 0 and time_ns < self._ends[index] else None

    def all_at(self, times_ns: Ints, clock: str) -> pa.Array:
        """As `at`, for many times: an Arrow column."""
        if clock != self.clock or not self._starts:
            return pa.nulls(len(times_ns), pa.int64())
        index = np.searchsorted(np.frombuffer(self._starts, np.int64), times_ns, side="right") - 1
        outside = (index < 0) | (times_ns >= np.frombuffer(self._ends, np.int64)[index])
        return pa.array(index + self.base, pa.int64(), mask=outside)
