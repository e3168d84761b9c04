"""Executes a step on paper: every operation begins when all that it waits for has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeprof.verdict.replay.graph import Graph

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class CircleError(Exception):
    """Operations that wait for each other: what was recorded is not understood."""


class Schedule:
    """The order in which the operations of a graph can be executed, in levels that are computed at once."""

    def __init__(self, graph: Graph) -> None:
        count = len(graph.together)
        _, self._set = np.unique(graph.together, return_inverse=True)
        self._set = self._set.reshape(-1)
        level = _levels(self._set, graph)[self._set]
        self._count = count
        self._levels = [_Level(graph, self._set, np.flatnonzero(level == number)) for number in range(level.max() + 1)]

    def run(self, dur: Floats, delay: Floats | None = None) -> tuple[Floats, Floats]:
        """Begin (when all of its set have begun) and end of each operation, (n, s) in ns.

        `dur`: (n, s), of communication the time after its last rank began; `delay`: (n, s) before each begin.
        """
        end = np.zeros((self._count + 1, dur.shape[1]))
        begin = np.zeros_like(dur)
        for level in self._levels:
            ready = np.maximum.reduceat(end[level.sources], level.edges, axis=0)
            if delay is not None:
                ready += delay[level.ops]
            begin[level.ops] = np.maximum.reduceat(ready, level.sets, axis=0)[level.set_of]
            end[level.ops] = begin[level.ops] + dur[level.ops]
        return begin, end[:-1]

    def ready(self, end: Floats) -> Floats:
        """(n, s) the latest end of what each operation waits for, given all ends; 0 where it waits for nothing."""
        ends = np.vstack([end, np.zeros((1, end.shape[1]))])
        latest = np.zeros_like(end)
        for level in self._levels:
            latest[level.ops] = np.maximum.reduceat(ends[level.sources], level.edges, axis=0)
        return latest

    def together(self, values: Floats) -> Floats:
        """(n, s) the largest value of the operations that take place together."""
        most = np.full((self._set.max() + 1, values.shape[1]), -np.inf)
        np.maximum.at(most, self._set, values)
        return most[self._set]


class _Level:
    """`ops` by set; `sources`: what they wait for, from `edges[i]` on of the i-th; `sets`: where each set begins."""

    def __init__(self, graph: Graph, set_of: Ints, ops: Ints) -> None:
        self.ops = ops[np.argsort(set_of[ops], kind="stable")]
        position = np.full(len(graph.together), -1)
        position[self.ops] = np.arange(len(self.ops))
        mine = np.flatnonzero(position[graph.after] >= 0)
        none = np.full(len(self.ops), len(graph.together))  # a source that ended at 0, for each
        targets = np.concatenate([position[graph.after[mine]], np.arange(len(self.ops))])
        order = np.argsort(targets, kind="stable")
        self.sources = np.concatenate([graph.before[mine], none])[order]
        self.edges = np.searchsorted(targets[order], np.arange(len(self.ops)))
        numbers = set_of[self.ops]
        first = np.ones(len(numbers), dtype=bool)
        first[1:] = numbers[1:] != numbers[:-1]
        self.sets = np.flatnonzero(first)
        self.set_of = np.cumsum(first) - 1


def _levels(set_of: Ints, graph: Graph) -> Ints:
    """Of each set, how many sets stand before it at most."""
    before, after = set_of[graph.before], set_of[graph.after]
    other = before != after
    edges = np.unique(np.stack([before[other], after[other]], axis=1), axis=0)
    count = int(set_of.max()) + 1
    waits = np.bincount(edges[:, 1], minlength=count)
    begin = np.searchsorted(edges[:, 0], np.arange(count + 1))
    level = np.full(count, -1)
    free, number = np.flatnonzero(waits == 0), 0
    while len(free):
        level[free] = number
        behind = np.concatenate([edges[begin[one] : begin[one + 1], 1] for one in free])
        np.subtract.at(waits, behind, 1)
        free, number = np.unique(behind[waits[behind] == 0]), number + 1
    if (level < 0).any():
        raise CircleError
    return level
