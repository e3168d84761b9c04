"""Lanes: events of one thread of a trace lie inside each other or apart. Those that do not get a lane of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Open = list[tuple[int, int]]


class Lanes:
    """Lanes of one track; events are given in order of start, then the longest first."""

    def __init__(self) -> None:
        self._open: list[Open] = [[]]

    def assign(self, start: NDArray[np.int64], dur: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The lane (from 0) of each event; None when all fit into lane 0.

        An event without duration counts as 1 ns long, so that it cannot lie on the edge of another.
        """
        end = start + np.maximum(dur, 1)
        still = [one for one in self._open[0] if one[1] > start[0]]
        before = np.array(still, np.int64).reshape(-1, 2)
        starts, ends = np.concatenate([before[:, 0], start]), np.concatenate([before[:, 1], end])
        if nested(starts, ends):
            is_open = ends > starts[-1]
            self._open[0] = list(zip(starts[is_open].tolist(), ends[is_open].tolist(), strict=True))
            return None
        return self._spread(start, end)

    def _spread(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        lanes = []
        for event in zip(start.tolist(), end.tolist(), strict=True):
            number = self._fitting(*event)
            self._open[number].append(event)
            lanes.append(number)
        return np.array(lanes, np.int64)

    def _fitting(self, start: int, end: int) -> int:
        """The first lane in which nothing overlaps the event in part; a new one if need be."""
        for number, lane in enumerate(self._open):
            while lane and lane[-1][1] <= start:
                lane.pop()
            if not lane or lane[-1][1] >= end:
                return number
        self._open.append([])
        return len(self._open) - 1


def nested(start: NDArray[np.int64], end: NDArray[np.int64]) -> bool:
    """Whether no two intervals overlap in part. They are in order of start, then the longest first.

    Of those that begin inside an interval, none may end behind it: a maximum over a range, from maxima over ranges
    whose lengths are powers of two.
    """
    count = len(start)
    if count < 2 or bool((start[1:] >= np.maximum.accumulate(end)[:-1]).all()):
        return True
    first = np.arange(1, count + 1)
    size = np.searchsorted(start, end, "left") - first
    inside = np.flatnonzero(size > 0)
    first, size, own = first[inside], size[inside], end[inside]
    level = np.frexp(size.astype(np.float64))[1] - 1
    largest, reach = end, 1
    for power in range(int(level.max(initial=-1)) + 1):
        here = np.flatnonzero(level == power)
        left, right = first[here], first[here] + size[here] - reach
        if bool((np.maximum(largest[left], largest[right]) > own[here]).any()):
            return False
        if len(largest) > reach:
            largest = np.maximum(largest[:-reach], largest[reach:])
        reach *= 2
    return True
