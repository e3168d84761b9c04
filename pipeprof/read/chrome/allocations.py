"""Blocks of memory: when each was allocated and freed, and in which operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.read.chrome.spill import NONE
from pipeprof.read.source.number_columns import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

_Rows = list[tuple[int, ...]]


class Allocations:
    """Blocks: (address, bytes, produced, released, op_id, device); UNKNOWN for a time that is not known."""

    def __init__(self, emit: Callable[[_Rows], None]) -> None:
        self.rows: _Rows = []
        self._emit = emit
        self._held: dict[tuple[int, int], tuple[int, int, int]] = {}

    def add(self, time: int, *, delta: int, address: int, device: int, op_id: int) -> None:
        """A block was allocated (bytes above 0) or freed."""
        key = (device, address)
        held = self._held.pop(key, None)
        if delta > 0:
            if held is not None:
                self.rows.append((address, held[0], held[1], UNKNOWN, held[2], device))
            self._held[key] = (delta, time, op_id)
        elif held is not None:
            self.rows.append((address, held[0], held[1], time, held[2], device))
        elif delta < 0:
            self.rows.append((address, -delta, UNKNOWN, time, NONE, device))

    def finish(self) -> None:
        """What was never freed."""
        self.rows += [
            (address, size, at, UNKNOWN, op_id, device) for (device, address), (size, at, op_id) in self._held.items()
        ]
        self._held.clear()
        self.flush(1)

    def flush(self, least: int) -> None:
        """Hand on the rows, if there are so many."""
        if len(self.rows) >= least:
            self._emit(self.rows)
            self.rows = []
