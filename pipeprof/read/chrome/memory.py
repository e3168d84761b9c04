"""How much was allocated less freed within an interval, in any thread."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    def __init__(self, times: NDArray[np.int64], host: NDArray[np.int64], device: NDArray[np.int64]) -> None:
        self.times = times
        self.on_devices = bool(device.any())
        self.host = np.append(0, np.cumsum(host))
        self.device = np.append(0, np.cumsum(device)) if self.on_devices else np.zeros(1, np.int64)
        self._covered = np.zeros(len(times) + 1, np.int32)

    def between(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Bytes on the host and on devices in each interval."""
        low, high = np.searchsorted(self.times, start, "left"), np.searchsorted(self.times, end, "right")
        host = self.host[high] - self.host[low]
        return host, self.device[high] - self.device[low] if self.on_devices else np.zeros(len(low), np.int64)

    def cover(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Note intervals of events."""
        low, high = np.searchsorted(self.times, start, "left"), np.searchsorted(self.times, end, "right")
        np.add.at(self._covered, low, 1)
        np.add.at(self._covered, np.maximum(low, high), -1)

    def outside(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Time, host bytes and device bytes of those in no interval that was noted."""
        alone = np.flatnonzero(np.cumsum(self._covered)[:-1] == 0)
        host = self.host[alone + 1] - self.host[alone]
        device = self.device[alone + 1] - self.device[alone] if self.on_devices else np.zeros(len(alone), np.int64)
        return self.times[alone], host, device
