"""Samples the host and the command's processes from outside, once a second by default.

Which processes have come below some others, at a cost that does not grow with what else runs on the machine.

CPU time of a process's threads, from the kernel's files; only what changed since the last look is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pipeprof import escape
from pipeprof.collect.cgroup import CpuGroup, cpu_group
from pipeprof.collect.probe import files
from pipeprof.collect.probe.redact import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from typing_extensions import Self


_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)
_COMMAND_LENGTH = 300
_OWN_FILE: Any = files.OwnFile  # this may be the process of a program that closes descriptors
_PRESSURE = Path("/proc/pressure/cpu")


class HostSampler:
    """Appends one JSON line a sample: cumulative CPU seconds of the host and of each process, memory in bytes.

    Of processes that use MindSpore (they have a folder in the spool) also their threads and limits. The reader takes
    differences. A sample that fails is left out, `problem` says why none can be written; the command goes on.
    """

    def __init__(self, pid: int, path: Path) -> None:
        self._path = path
        self._by_pid = {pid: psutil.Process(pid)}
        self._descendants = Descendants()
        self._named: dict[psutil.Process, str] = {}
        self._threads = ThreadReader()
        self._groups: dict[int, CpuGroup | None] = {}
        self._outside = pid != os.getpid()
        self.problem: str | None = None
        self._file: Any = None
        try:
            self._file = _OWN_FILE(str(path))
        except OSError as error:  # the folder was deleted, say: the command has been started already
            self.problem = error.strerror

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def sample(self) -> None:
        """Take one sample."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            self._sample()

    def _sample(self) -> None:
        if self.problem is not None or self._file is None:
            return
        cpu = psutil.cpu_times()
        memory = psutil.virtual_memory()
        processes = self._processes()
        facts = {
            "t": time.monotonic_ns(),
            "user": cpu.user + cpu.nice,
            "sys": cpu.system + getattr(cpu, "irq", 0.0) + getattr(cpu, "softirq", 0.0),
            "idle": cpu.idle + getattr(cpu, "iowait", 0.0),
            "steal": getattr(cpu, "steal", 0.0),
            "pressure": _pressure(),
            "cores": psutil.cpu_count(),
            "used": memory.total - memory.available,
            "load": psutil.getloadavg()[0],
            "procs": [facts for process in processes if (facts := self._facts(process)) is not None],
            **self._inside({process.pid for process in processes}),
        }
        if self._outside:
            facts["self"] = time.process_time()
        try:
            self._file.write((json.dumps(facts) + "\n").encode())
        except OSError as error:
            self.problem = error.strerror

    def _processes(self) -> list[psutil.Process]:
        """The root, its descendants, and those that were until their parent ended."""
        running = {pid: process for pid, process in self._by_pid.items() if process.is_running()}
        for pid in sorted(self._descendants.new_below(running)):
            with contextlib.suppress(*_GONE):
                running[pid] = psutil.Process(pid)
        self._by_pid = running
        self._named = {process: name for process, name in self._named.items() if process.pid in running}
        return list(self._by_pid.values())

    def _facts(self, process: psutil.Process) -> dict[str, Any] | None:
        """`ended`: CPU seconds of children that the process has waited for. A command is there when it is new."""
        try:
            with process.oneshot():
                cpu = process.cpu_times()
                name = process.name()[:60]
                facts = {
                    "pid": process.pid,
                    "ppid": process.ppid(),
                    "born": process.create_time(),
                    "name": name,
                    "user": cpu.user,
                    "sys": cpu.system,
                    "ended": getattr(cpu, "children_user", 0.0) + getattr(cpu, "children_system", 0.0),
                    "rss": process.memory_info().rss,
                    "threads": process.num_threads(),
                }
                # It is new, or runs another program now; while that begins it has no command yet.
                if self._named.get(process) != name and (words := process.cmdline()):
                    facts["command"] = shown_command(words)
                    self._named[process] = name
        except _GONE:
            return None
        return facts

    def _inside(self, pids: set[int]) -> dict[str, Any]:
        """Threads and limits of the processes that use MindSpore, by process id as text."""
        watched = pids & _with_folder(self._path.parent)
        self._threads.forget(watched)
        idle = [cpu.idle + getattr(cpu, "iowait", 0.0) for cpu in psutil.cpu_times(percpu=True)] if watched else []
        return {
            "inside": {str(pid): self._threads.look(pid) for pid in watched},
            "room": {str(pid): self._room(pid, idle) for pid in watched},
        }

    def _room(self, pid: int, idle: list[float]) -> dict[str, float | None]:
        """What CPU the process may use: how many `cpus`, and how long they were idle so far; its group's limit."""
        if pid not in self._groups:
            self._groups[pid] = cpu_group(pid)
        group = self._groups[pid]
        try:
            allowed = os.sched_getaffinity(pid)
        except (AttributeError, OSError):
            allowed = set(range(len(idle)))
        limit = {} if group is None else group.facts()
        return {"cpus": len(allowed), "idle": sum(idle[cpu] for cpu in allowed if cpu < len(idle)), **limit}


def shown_command(words: Sequence[str]) -> str:
    """A command as one short line: without secrets and control characters."""
    text = escape.line(" ".join(without_secrets(words))).strip()
    return text if len(text) <= _COMMAND_LENGTH else text[: _COMMAND_LENGTH - 3] + "..."


def _with_folder(spool: Path) -> set[int]:
    """Process ids of the folders `proc-PID-START`."""
    try:
        names = [path.name.split("-") for path in spool.iterdir() if path.name.startswith("proc-")]
    except OSError:
        return set()
    return {int(words[1]) for words in names if len(words) == 3 and words[1].isdigit()}


def _pressure() -> float | None:
    """Seconds in which some thread of the machine was runnable and waited for a CPU; None where it is not counted."""
    try:
        text = _PRESSURE.read_text(encoding="ascii")
        return int(text.splitlines()[0].rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


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
