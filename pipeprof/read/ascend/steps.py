"""What is known of a rank's steps: where each begins and ends, and which number the source gives it."""

from __future__ import annotations

from bisect import bisect_right


class Steps:
    """Steps in time order. `source` says which kind of file they come from; None: only their numbers are known."""

    def __init__(self) -> None:
        self.source: str | None = None
        self.clock: str | None = None
        self._position: dict[int, int] = {}
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._position)

    def know(self, number: int) -> int:
        """Position of the step with this number in the source; a new one comes last."""
        return self._position.setdefault(number, len(self._position))

    def position(self, number: int | None) -> int | None:
        """Position of the step with this number; None when there is none."""
        return None if number is None else self._position.get(number)

    def add(self, number: int, start_ns: int, end_ns: int, clock: str) -> int:
        """The next step in time, from start to end on a clock; returns its position."""
        self.clock = clock
        position = len(self._starts)
        self._starts.append(start_ns)
        self._ends.append(end_ns)
        self._position.setdefault(number, position)
        return position

    def at(self, time_ns: int, clock: str) -> int | None:
        """The step in which a time lies; None between steps, and for another clock."""
        if clock != self.clock:
            return None
        index = bisect_right(self._starts, time_ns) - 1
        return index if index >= 0 and time_ns < self._ends[index] else None

    @property
    def windows(self) -> list[tuple[int, int]]:
        """(start, end) of every step, ns of its clock."""
        return list(zip(self._starts, self._ends, strict=True))
