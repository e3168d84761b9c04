"""Which host operator launched which device work.

By External id, or by the runtime call with the same correlation. In traces of torch_npu and MindSpore flow events tie
them: a flow `async_npu` begins at the operator, a flow `HostToDevice` at the call that queued the work; both end where
the work starts, on its stream. Ids are unique within a category, and the point where a flow ends tells the work.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.spill import LAUNCH, LAUNCH_ABOVE, NONE, Columns, Spill

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.read.source.numbers import Ints

_SAME_SHARE = 0.99


class Launches:
    """Links of a file: gathered in the first pass, looked up in the second.

    Traces of 2022 give device work an External id that only repeats its correlation. There the runtime call with this
    correlation is the link: the innermost operator that was open in its thread launched the work.
    """

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self.count = 0
        self.unlinked = 0
        self.by_link = True
        none = np.zeros(0, np.int64)
        self.keys = self.durations = self.execs = self.starts = self.op_ids = self.calls = self.call_starts = none
        self.phases = np.zeros(0, np.int8)

    def add(self, links: Ints, correlations: Ints, durations: Ints) -> None:
        """Note device work; durations in ns, NONE for links and correlations that are not known."""
        self.count += len(durations)
        if len(durations):
            self._parts.append(np.stack([links, correlations, durations]))

    def finish(self, spill: Spill) -> None:
        """Make the look-up tables; nothing can be added afterwards. The runtime calls are in the spill."""
        parts, self._parts = self._parts, []
        links, correlations, durations = np.concatenate([np.zeros((3, 0), np.int64), *parts], axis=1)
        self._find_calls(correlations, spill)
        linked = links != NONE
        same = linked & (links == correlations)
        self.by_link = bool(linked.any()) and same.sum() < _SAME_SHARE * linked.sum()
        self.keys, inverse = np.unique(links if self.by_link else correlations, return_inverse=True)
        self.durations = np.zeros(len(self.keys), np.int64)
        np.add.at(self.durations, inverse, durations)
        self.durations[self.keys == NONE] = 0
        self.execs = np.full(len(self.keys), NONE, np.int64)
        self.phases = np.zeros(len(self.keys), np.int8)
        self.starts = np.full(len(self.keys), NONE, np.int64)
        self.op_ids = np.full(len(self.keys), NONE, np.int64)

    def _find_calls(self, correlations: Ints, spill: Spill) -> None:
        """Starts of the runtime calls that launched something."""
        self.calls = np.unique(correlations)
        self.call_starts = np.full(len(self.calls), NONE, np.int64)
        if not len(self.calls):
            return
        for rows in spill.read("call"):
            launched = (rows["kind"] == LAUNCH) | (rows["kind"] == LAUNCH_ABOVE)
            at = find(self.calls, rows["link"][launched])
            self.call_starts[at[at != NONE]] = rows["start"][launched][at != NONE]
        alone = (self.launched_at(correlations) == NONE) & (correlations != NONE)
        self.unlinked = int(alone.sum())

    def slots(self, values: Ints) -> Ints:
        """Where the work of a link is kept; NONE for links that launched nothing."""
        return find(self.keys, values)

    def launched_at(self, correlations: Ints) -> Ints:
        """Start of the runtime call; NONE where there is none."""
        at = find(self.calls, correlations)
        return np.where(at == NONE, NONE, self.call_starts[at]) if len(self.calls) else at


def find(keys: Ints, values: Ints) -> Ints:
    """Where each value stands among sorted keys, of equal ones at the first; NONE for NONE and what is not there."""
    if not len(keys):
        return np.full(len(values), NONE, np.int64)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where((keys[at] == values) & (values != NONE), at, NONE)


OPERATOR, QUEUE = "async_npu", "HostToDevice"
CATEGORIES = frozenset({OPERATOR, QUEUE})
_MIX = np.uint64(0x9E3779B97F4A7C15)


class FlowLinks:
    """Ends of the flows of both categories, gathered in the first pass; looked up afterwards."""

    def __init__(self) -> None:
        self._queued = array("q")  # number and time of each call that queued something
        self._ends = {category: array("q") for category in CATEGORIES}  # number, time and track of each
        self._flows: dict[str, _Places] = {}

    def queued(self, number: int, time: int) -> None:
        """Note the call that a flow QUEUE begins at."""
        self._queued.extend((number, time))

    def end(self, category: str, number: int, track: int, time: int) -> None:
        """Note where a flow ends."""
        self._ends[category].extend((number, time, track))

    def finish(self) -> None:
        """Make the look-up tables; nothing can be added afterwards."""
        for category, ends in self._ends.items():
            self._flows[category] = _Places(*np.array(ends, np.int64).reshape(-1, 3).T)
        self._ends.clear()

    @property
    def any(self) -> bool:
        """Whether any work is tied to an operator."""
        return bool(len(self._flows[OPERATOR].numbers))

    def operators(self, rows: Columns) -> Ints:
        """The correlation of each row: its own, else the number of the flow from its operator; NONE for neither."""
        alone = (rows["correlation"] == NONE) & (rows["link"] == NONE)
        if not self.any or not alone.any():
            return rows["correlation"]
        return np.where(alone, self._flows[OPERATOR].at(rows["track"], rows["start"]), rows["correlation"])

    def queued_at(self, rows: Columns) -> Ints:
        """When each row was queued; NONE when no flow says so."""
        flows = self._flows[QUEUE].at(rows["track"], rows["start"])
        numbers, times = np.array(self._queued, np.int64).reshape(-1, 2).T
        order = np.argsort(numbers, kind="stable")
        at = find(numbers[order], flows)
        return np.where(at == NONE, NONE, times[order][at]) if len(order) else at


class _Places:
    """Flow numbers by track and time; of two flows that end at one point, the first counts."""

    def __init__(self, numbers: Ints, times: Ints, tracks: Ints) -> None:
        keys = _keys(tracks, times)
        order = np.argsort(keys, kind="stable")
        self.keys, self.numbers = keys[order], numbers[order]
        self.times, self.tracks = times[order], tracks[order]

    def at(self, tracks: Ints, times: Ints) -> Ints:
        """The flow that ends at each point; NONE for none."""
        if not len(self.keys):
            return np.full(len(tracks), NONE, np.int64)
        index = np.minimum(np.searchsorted(self.keys, _keys(tracks, times)), len(self.keys) - 1)
        same = (self.tracks[index] == tracks) & (self.times[index] == times)
        return np.where(same, self.numbers[index], NONE)


def _keys(tracks: Ints, times: Ints) -> NDArray[np.uint64]:
    """A number for each point; two points may share one, which only hides a flow."""
    keys: NDArray[np.uint64] = times.astype(np.uint64) * _MIX ^ tracks.astype(np.uint64)
    return keys
