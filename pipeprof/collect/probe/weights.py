"""How many bytes batches hold: of each one of a slow training, of some of a fast one.

Batches that are weighed lie EVERY_NS apart, and further where one is as heavy as the other, where many were weighed, or
where it takes long, as of lists of many texts.
"""

import sys

from . import recorder, sizes

EVERY_NS, TELL_NS = 20_000_000, 500_000_000
MOST = 2000  # in the time so far; then half as many come in the same time, and so on
ALIKE, RARER = 64, 9  # after so many equal ones half as many are weighed, so many times
SELDOM = 500  # times as long as weighing took, at least, to the next


class _Weights:
    """Of one iterator's batches."""

    def __init__(self, began):
        self.began = began
        self.at = self.row = 0  # the last that was weighed, and when
        self.size = None
        self.alike = 0
        self.apart = 1  # rows between two
        self.rows = []  # [row, bytes] that are not told yet
        self.told = 0

    def add(self, row, size, at, took):
        """Note one, and what it took to weigh it; after how many rows comes the next."""
        self.alike = self.alike + 1 if size == self.size else 0
        every = max(EVERY_NS << min(self.alike // ALIKE, RARER), (at - self.began) // MOST, SELDOM * took)
        pace = (at - self.at) // max(row - self.row, 1) if self.at else every
        self.apart = max(1, min(2 * self.apart, every // max(pace, 1)))
        self.at, self.row, self.size = at, row, size
        self.rows.append([row, size])
        return self.apart


def weigh(tree, row):
    """From the thread that fetches, which has just got a batch."""
    began = recorder.now()
    size = None if tree.hidden else sizes.of(row)
    took = recorder.now() - began
    if size is None:
        tree.plan(weigh_at=sys.maxsize)
        return
    if tree.weights is None:
        tree.weights = _Weights(tree.last_row)
    tree.plan(weigh_at=tree.rows + tree.weights.add(tree.rows - 1, size, tree.last_row, took))
    if tree.last_row - tree.weights.told >= TELL_NS:
        tree.weights.told = tree.last_row
        tell(tree)


def tell(tree):
    """Write what is not written yet."""
    kept = tree.weights
    if kept is not None and kept.rows:
        rows, kept.rows = kept.rows, []
        recorder.REC.line("weights", number=tree.number, rows=rows)
