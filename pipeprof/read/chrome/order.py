"""Rows of many batches by start, without holding them all: profilers write nearly in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.read.chrome.spill import Columns, Spill


def by_start(spill: Spill, kind: str) -> Iterator[Columns]:
    """Blocks of columns: all rows by start, then kind, then the longest first, then in the order of the file.

    Batches are read by their first start, and a row waits until no batch that is not read yet begins before it. So
    several runs, each in order, are merged; rows within a batch may be in any order.
    """
    waiting: Columns = {}
    for block, limit in spill.read_by_first(kind):
        rows = {name: np.concatenate([waiting[name], block[name]]) for name in block} if waiting else block
        order = np.lexsort((-rows["end"], rows["kind"], rows["start"]))
        ready = len(order) if limit is None else int(np.searchsorted(rows["start"][order], limit, "left"))
        if ready:
            yield {name: values[order[:ready]] for name, values in rows.items()}
        waiting = {name: values[order[ready:]] for name, values in rows.items()}
