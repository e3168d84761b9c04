"""Device work that only flow events tie to the host: traces of torch_npu and MindSpore.

A flow `async_npu` begins at the operator, a flow `HostToDevice` at the call that queued the work; both end where the
work starts, on its stream. Ids are unique within a category, and the point where a flow ends tells the work.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.launches import find
from pipeprof.read.chrome.spill import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.read.chrome.spill import Columns

OPERATOR, QUEUE = "async_npu", "HostToDevice"
CATEGORIES = frozenset({OPERATOR, QUEUE})
_MIX = np.uint64(0x9E3779B97F4A7C15)


class FlowLinks:
    """Ends of the flows of both categories, gathered in the first pass; looked up afterwards."""

    def __init__(self) -> None:
        self._queued = _Points()  # id and time of the calls that queued something
        self._ends = {category: _Points() for category in CATEGORIES}
        self._tracks = {category: array("q") for category in CATEGORIES}
        self._flows: dict[str, _Places] = {}

    def queued(self, number: int, time: int) -> None:
        """Note the call that a flow QUEUE begins at."""
        self._queued.add(number, time)

    def end(self, category: str, number: int, track: int, time: int) -> None:
        """Note where a flow ends."""
        self._ends[category].add(number, time)
        self._tracks[category].append(track)

    def finish(self) -> None:
        """Make the look-up tables; nothing can be added afterwards."""
        for category, ends in self._ends.items():
            numbers, times = ends.arrays()
            self._flows[category] = _Places(numbers, times, np.array(self._tracks[category], np.int64))
        self._ends.clear()
        self._tracks.clear()

    @property
    def any(self) -> bool:
        """Whether any work is tied to an operator."""
        return bool(len(self._flows[OPERATOR].numbers))

    def operators(self, rows: Columns) -> NDArray[np.int64]:
        """The correlation of each row: its own, else the number of the flow from its operator; NONE for neither."""
        alone = (rows["correlation"] == NONE) & (rows["link"] == NONE)
        if not self.any or not alone.any():
            return rows["correlation"]
        return np.where(alone, self._flows[OPERATOR].at(rows["track"], rows["start"]), rows["correlation"])

    def queued_at(self, rows: Columns) -> NDArray[np.int64]:
        """When each row was queued; NONE when no flow says so."""
        flows = self._flows[QUEUE].at(rows["track"], rows["start"])
        numbers, times = self._queued.arrays()
        order = np.argsort(numbers, kind="stable")
        at = find(numbers[order], flows)
        return np.where(at == NONE, NONE, times[order][at]) if len(order) else at


class _Points:
    """Pairs of a flow's number and a time."""

    def __init__(self) -> None:
        self._numbers, self._times = array("q"), array("q")

    def add(self, number: int, time: int) -> None:
        self._numbers.append(number)
        self._times.append(time)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array(self._numbers, np.int64), np.array(self._times, np.int64)


class _Places:
    """Flow numbers by track and time; of two flows that end at one point, the first counts."""

    def __init__(self, numbers: NDArray[np.int64], times: NDArray[np.int64], tracks: NDArray[np.int64]) -> None:
        keys = _keys(tracks, times)
        order = np.argsort(keys, kind="stable")
        self.keys, self.numbers = keys[order], numbers[order]
        self.times, self.tracks = times[order], tracks[order]

    def at(self, tracks: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The flow that ends at each point; NONE for none."""
        if not len(self.keys):
            return np.full(len(tracks), NONE, np.int64)
        index = np.minimum(np.searchsorted(self.keys, _keys(tracks, times)), len(self.keys) - 1)
        same = (self.tracks[index] == tracks) & (self.times[index] == times)
        return np.where(same, self.numbers[index], NONE)


def _keys(tracks: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each point; two points may share one, which only hides a flow."""
    keys: NDArray[np.uint64] = times.astype(np.uint64) * _MIX ^ tracks.astype(np.uint64)
    return keys
