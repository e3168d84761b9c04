"""Threads of a rank in the trace: numbers, names and their order in the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.report.timeline.lanes import Lanes
from pipeprof.report.timeline.text import Slices, args, quoted

if TYPE_CHECKING:
    from pipeprof.report.timeline.clock import Process

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
