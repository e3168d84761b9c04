"""Samples the host and the command's processes from outside, once a second by default."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


class HostSampler:
    """Appends one JSON line a sample: cumulative CPU seconds of the host and of each process, memory in bytes.

    `problem` says why samples could not be written, if so. The reader takes differences. A sample that fails is left
    out; the command is never disturbed.
    """

    def __init__(self, pid: int, path: Path) -> None:
        self._root = psutil.Process(pid)
        self._path = path
        self._known: dict[int, psutil.Process] = {}
        self.problem: str | None = None
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def sample(self) -> None:
        """Take one sample."""
        if self.problem is not None:
            return
        cpu = psutil.cpu_times()
        memory = psutil.virtual_memory()
        facts = {
            "t": time.monotonic_ns(),
            "user": cpu.user + cpu.nice,
            "sys": cpu.system + getattr(cpu, "irq", 0.0) + getattr(cpu, "softirq", 0.0),
            "idle": cpu.idle + getattr(cpu, "iowait", 0.0),
            "steal": getattr(cpu, "steal", 0.0),
            "used": memory.total - memory.available,
            "load": psutil.getloadavg()[0],
            "procs": [facts for process in self._processes() if (facts := _facts(process)) is not None],
        }
        try:
            self._file.write(json.dumps(facts) + "\n")
        except OSError as error:
            self.problem = error.strerror

    def _processes(self) -> list[psutil.Process]:
        with contextlib.suppress(*_GONE):
            current = {self._root.pid: self._root}
            current.update(
                {child.pid: self._known.get(child.pid, child) for child in self._root.children(recursive=True)}
            )
            self._known = current
        return list(self._known.values())


def _facts(process: psutil.Process) -> dict[str, Any] | None:
    try:
        with process.oneshot():
            cpu = process.cpu_times()
            return {
                "pid": process.pid,
                "ppid": process.ppid(),
                "name": process.name()[:60],
                "user": cpu.user,
                "sys": cpu.system,
                "rss": process.memory_info().rss,
                "threads": process.num_threads(),
            }
    except _GONE:
        return None
