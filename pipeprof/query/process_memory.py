"""What SQL that is not ours may take from the system: DuckDB counts what it keeps, not what one value grows to."""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def at_most(more: int) -> Iterator[None]:
    """Let this process allocate so many bytes more than it has now; then allocating fails. Nothing without /proc.

    The limit is the whole process's: where several threads ask at once, that of the first holds until the last is done.
    """
    _HELD.take(more)
    try:
        yield
    finally:
        _HELD.give_back()


class _Held:
    """The limit that is set now, for how many, and what was there before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def take(self, more: int) -> None:
        with self._lock:
            if not self._users:
                self._before = resource.getrlimit(resource.RLIMIT_DATA)
                now = _allocated()
                ways = [
                    limit for limit in (now and now + more, *self._before) if limit not in (0, resource.RLIM_INFINITY)
                ]
                if now:
                    resource.setrlimit(resource.RLIMIT_DATA, (min(ways), self._before[1]))
            self._users += 1

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                resource.setrlimit(resource.RLIMIT_DATA, self._before)


def _allocated() -> int:
    """Bytes that this process has allocated; 0 where the system does not say."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return int(text.partition("VmData:")[2].split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0


_HELD = _Held()
