"""Threads of a rank in the trace: numbers, names and their order in the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.report.timeline.text import Slices, args, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.report.timeline.clock import Process

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


SETUP, STEPS, PHASES, FETCH, TRACK, COLLECTIVE = range(6)  # from top to bottom
_ORDER = 100_000


class Tracks:
    """Numbers from 1 in order of appearance. `described` is the text of metadata events that is still to be written."""

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self._numbers: dict[tuple[int, str], int] = {}
        self._named: dict[int, tuple[int, str]] = {}
        self._lanes: dict[int, Lanes] = {}
        self._described = [
            self._metadata("process_name", 0, f'"name":{quoted(process.title)}'),
            self._metadata("process_sort_index", 0, args(sort_index=process.pid)),
        ]

    def number(self, kind: int, name: str) -> int:
        """The thread number of a track."""
        tid = self._numbers.get((kind, name))
        if tid is None:
            tid = self._numbers[kind, name] = len(self._numbers) + 1
            self._named[tid] = (kind, name)
            self._described.append(self._metadata("thread_name", tid, f'"name":{quoted(name)}'))
            self._described.append(self._metadata("thread_sort_index", tid, args(sort_index=kind * _ORDER + tid)))
        return tid

    def described(self) -> bytes:
        """Metadata events of what is new."""
        text, self._described = "".join(self._described), []
        return text.encode()

    def apart(self, rows: Slices) -> Slices:
        """Rows (in order of start, then the longest first), moved to further tracks where they overlap in part."""
        tid = rows.tid
        order = np.argsort(tid, kind="stable")
        edges = np.flatnonzero(np.diff(tid[order])) + 1
        for part in np.split(order, edges):
            if len(part):
                own = int(tid[part[0]])
                lanes = self._lanes.setdefault(own, Lanes()).assign(rows.start[part], rows.dur[part])
                if lanes is not None:
                    tid = self._moved(tid, part, lanes, own)
        return rows._replace(tid=tid)

    def _moved(
        self,
        tid: np.typing.NDArray[np.int64],
        part: np.typing.NDArray[np.int64],
        lanes: np.typing.NDArray[np.int64],
        own: int,
    ) -> np.typing.NDArray[np.int64]:
        kind, name = self._named[own]
        tids = [self.number(kind, f"{name} ({lane + 1})") if lane else own for lane in range(int(lanes.max()) + 1)]
        tid = tid.copy()
        tid[part] = np.array(tids, np.int64)[lanes]
        return tid

    def _metadata(self, what: str, tid: int, arguments: str) -> str:
        return f',\n{{"ph":"M","pid":{self.pid},"tid":{tid},"name":"{what}","args":{{{arguments}}}}}'
