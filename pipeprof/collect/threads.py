"""CPU time of a process's threads, from the kernel's files; only what changed since the last look is told."""

from __future__ import annotations

import os

PROC = "/proc"
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 10_000_000
_USER, _SYSTEM, _START = 11, 12, 19  # behind the name, as in proc(5)


class ThreadReader:
    """Remembers what it told. Without the kernel's scheduler statistics CPU time is in ticks, and waits are unknown."""

    def __init__(self, proc: str = PROC) -> None:
        self._proc = proc
        self._times: dict[tuple[int, int], tuple[int, int | None]] = {}
        self._names: dict[tuple[int, int], str] = {}

    def look(self, pid: int) -> dict[str, list[list[int | str | None]]]:
        """The threads that ran since the last look, and those that are new; one that ended meanwhile is left out.

        `cpu`: [tid, CPU ns, ns runnable but not running or None]; `names`: [tid, name, start in ns since boot], also of
        a thread that has a new name.
        """
        folder = f"{self._proc}/{pid}/task"
        cpu: list[list[int | str | None]] = []
        names: list[list[int | str | None]] = []
        try:
            tids = [int(name) for name in os.listdir(folder)]  # noqa: PTH208 - names alone, once a second for each process
        except OSError:
            tids = []
        for tid in tids:
            self._look_at((pid, tid), f"{folder}/{tid}", cpu, names)
        return {"cpu": cpu, "names": names}

    def forget(self, pids: set[int]) -> None:
        """Drop what is known of all processes but these."""
        for by_thread in (self._times, self._names):
            for key in [key for key in by_thread if key[0] not in pids]:
                del by_thread[key]

    def _look_at(
        self,
        key: tuple[int, int],
        folder: str,
        cpu: list[list[int | str | None]],
        names: list[list[int | str | None]],
    ) -> None:
        try:
            exact = scheduled(_read(f"{folder}/schedstat"))
            before = self._times.get(key)
            if exact is not None and exact == before:
                return
            name, ticks, start = stat(_read(f"{folder}/stat"))
        except (OSError, ValueError, IndexError):
            return
        now = (ticks * _TICK_NS, None) if exact is None else exact
        if now != before:
            self._times[key] = now
            cpu.append([key[1], *now])
        if self._names.get(key) != name:
            self._names[key] = name
            names.append([key[1], name, start * _TICK_NS])


def stat(text: bytes) -> tuple[str, int, int]:
    """Name, CPU ticks and start in ticks since boot from a thread's `stat`. Raises ValueError or IndexError."""
    name, _, rest = text[text.index(b"(") + 1 :].rpartition(b")")
    fields = rest.split()
    return name.decode("utf-8", "replace"), int(fields[_USER]) + int(fields[_SYSTEM]), int(fields[_START])


def scheduled(text: bytes) -> tuple[int, int] | None:
    """Nanoseconds on a CPU, and runnable without one, from `schedstat`; None where the kernel does not count them."""
    fields = text.split()
    return (int(fields[0]), int(fields[1])) if len(fields) >= 2 else None


def _read(path: str) -> bytes:
    """The file, or nothing where there is none."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)
