"""How much was allocated less freed within an interval, in any thread; and each block of memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from pipeprof.read.chrome.spill import NONE
from pipeprof.read.source.numbers import UNKNOWN, Ints

_Rows = list[tuple[int, ...]]


class MemoryEvents:
    """Allocations and frees of a file, gathered in the first pass."""

    def __init__(self) -> None:
        self._times, self._host, self._device = array("q"), array("q"), array("q")
        self._totals: dict[int, int] = {}

    def known_total(self, device: int, delta: int, allocated: int | None) -> bool:
        """Whether `Total Allocated` of an event is the total of the device's allocator.

        torch's allocator of memory shared with data loader workers (ATen, MapAllocator) reports its blocks with a total
        of 0, whatever is allocated: a total of 0 is one only where it follows from the last.
        """
        if allocated is None or (allocated == 0 and self._totals.get(device, 0) + delta != 0):
            return False
        self._totals[device] = allocated
        return True

    def add(self, time: int, delta: int, *, on_host: bool) -> None:
        """Note `delta` bytes, negative when they were freed."""
        self._times.append(time)
        self._host.append(delta if on_host else 0)
        self._device.append(0 if on_host else delta)

    def finish(self) -> Memory:
        """The sums; what was gathered is given up."""
        columns = (self._times, self._host, self._device)
        parts = [np.frombuffer(column, np.int64) if column else np.zeros(0, np.int64) for column in columns]
        if len(parts[0]) and (np.diff(parts[0]) < 0).any():
            order = np.argsort(parts[0], kind="stable")
            parts = [part[order] for part in parts]
        self._times, self._host, self._device = array("q"), array("q"), array("q")
        return Memory(*parts)


class Memory:
    """Sums over intervals, both ends included; times are sorted."""

    def __init__(self, times: Ints, host: Ints, device: Ints) -> None:
        self.times = times
        self.on_devices = bool(device.any())
        self.host = np.append(0, np.cumsum(host))
        self.device = np.append(0, np.cumsum(device)) if self.on_devices else np.zeros(1, np.int64)
        self._covered = np.zeros(len(times) + 1, np.int32)

    def between(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Bytes on the host and on devices in each interval."""
        low, high = np.searchsorted(self.times, start, "left"), np.searchsorted(self.times, end, "right")
        host = self.host[high] - self.host[low]
        return host, self.device[high] - self.device[low] if self.on_devices else np.zeros(len(low), np.int64)

    def cover(self, start: Ints, end: Ints) -> None:
        """Note intervals of events."""
        low, high = np.searchsorted(self.times, start, "left"), np.searchsorted(self.times, end, "right")
        np.add.at(self._covered, low, 1)
        np.add.at(self._covered, np.maximum(low, high), -1)

    def outside(self) -> tuple[Ints, Ints, Ints]:
        """Time, host bytes and device bytes of those in no interval that was noted."""
        alone = np.flatnonzero(np.cumsum(self._covered)[:-1] == 0)
        host = self.host[alone + 1] - self.host[alone]
        device = self.device[alone + 1] - self.device[alone] if self.on_devices else np.zeros(len(alone), np.int64)
        return self.times[alone], host, device


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
