"""Which host operator launched which device work: by External id, or by the runtime call with the same correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeprof.read.chrome.spill import LAUNCH, LAUNCH_ABOVE, NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.read.chrome.spill import Spill

_SAME_SHARE = 0.99


class Launches:
    """Links of a file: gathered in the first pass, looked up in the second.

    Traces of 2022 give device work an External id that only repeats its correlation. There the runtime call with this
    correlation is the link: the innermost operator that was open in its thread launched the work.
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int64]] = []
        self.count = 0
        self.unlinked = 0
        self.by_link = True
        none = np.zeros(0, np.int64)
        self.keys = self.durations = self.execs = self.starts = self.op_ids = self.calls = self.call_starts = none
        self.phases = np.zeros(0, np.int8)

    def add(self, links: NDArray[np.int64], correlations: NDArray[np.int64], durations: NDArray[np.int64]) -> None:
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

    def _find_calls(self, correlations: NDArray[np.int64], spill: Spill) -> None:
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

    def slots(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the work of a link is kept; NONE for links that launched nothing."""
        return find(self.keys, values)

    def launched_at(self, correlations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Start of the runtime call; NONE where there is none."""
        at = find(self.calls, correlations)
        return np.where(at == NONE, NONE, self.call_starts[at]) if len(self.calls) else at


def find(keys: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each value stands among sorted keys, of equal ones at the first; NONE for NONE and what is not there."""
    if not len(keys):
        return np.full(len(values), NONE, np.int64)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where((keys[at] == values) & (values != NONE), at, NONE)
