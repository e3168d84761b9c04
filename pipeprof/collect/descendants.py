"""Which processes have come below some others, at a cost that does not grow with what else runs on the machine."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_PROC = Path("/proc")


class Descendants:
    """Asks each process of the machine once for its parent: when its number is new in `/proc`."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._others: set[int] = set()
        self._latest: int | None = None

    def new_below(self, known: Collection[int]) -> set[int]:
        """Ids of processes that descend from the known ones and are none of them."""
        latest = self._latest_id()
        if latest == self._latest is not None:
            return set()
        if latest is None or self._latest is None or latest < self._latest:  # ids are given out anew, perhaps
            self._others.clear()
        self._latest = latest
        listed = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}  # noqa: PTH208 - a path each costs more
        self._others &= listed
        asked = {pid: self._parent(pid) for pid in listed - self._others - set(known)}
        parents = {pid: parent for pid, parent in asked.items() if parent is not None}
        below: set[int] = set()
        while found := {pid for pid, parent in parents.items() if parent in below or parent in known} - below:
            below |= found
        self._others |= parents.keys() - below
        return below

    def _latest_id(self) -> int | None:
        """The id that was given out last, to a process or a thread; None when unknown."""
        try:
            return int((self._proc / "loadavg").read_text(encoding="ascii").split()[-1])
        except (OSError, ValueError, IndexError):
            return None

    def _parent(self, pid: int) -> int | None:
        """The parent's id, 0 for none; None for a process that is gone."""
        try:
            fields = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return int(fields[1])
        except (OSError, ValueError, IndexError):
            return None
