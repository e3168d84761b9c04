"""What a control group limits of a process's CPU, and kills for lack of memory: both versions of the interface."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

PROC, MOUNT = Path("/proc"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class CpuGroup:
    """Folders of the group, from the process's own one up to the root; files have the same names in each.

    `usage` is the folder that counts the CPU used; in version 2 it is the group's own one.
    """

    folders: tuple[Path, ...]
    usage: Path
    unified: bool

    def facts(self) -> dict[str, float | None]:
        """`quota` in cores (None: not limited), `used` and `throttled` in seconds so far (None: not told).

        Of several limits, one above the other, the tightest counts, with what its group used and waited.
        """
        limits = [(quota, folder) for folder in self.folders if (quota := self._quota(folder)) is not None]
        quota, folder = min(limits, key=lambda limit: limit[0], default=(None, self.folders[0]))
        counts = _counts(folder / "cpu.stat")
        throttled = (counts.get("throttled_usec"), 1e6) if self.unified else (counts.get("throttled_time"), 1e9)
        return {"quota": quota, "used": self._used(folder, counts), "throttled": _seconds(*throttled)}

    def _quota(self, folder: Path) -> float | None:
        if self.unified:
            words = (_text(folder / "cpu.max") or "max").split()
        else:
            words = [_text(folder / f"cpu.cfs_{name}_us") or "-1" for name in ("quota", "period")]
        try:
            quota, period = (int(word) for word in words)
        except ValueError:  # `max`
            return None
        return quota / period if quota > 0 and period > 0 else None

    def _used(self, folder: Path, counts: dict[str, int]) -> float | None:
        if self.unified:
            return _seconds(counts.get("usage_usec"), 1e6)
        text = _text(self.usage / folder.relative_to(self.folders[-1]) / "cpuacct.usage")
        return _seconds(int(text), 1e9) if text and text.isdigit() else None


def cpu_group(pid: int, proc: Path = PROC, mount: Path = MOUNT) -> CpuGroup | None:
    """The group of a process that controls its CPU; None where the kernel does not tell."""
    groups = _groups_of(pid, proc)
    for _, names, path in groups:
        if "cpu" in names.split(","):
            root = next((mount / name for name in (names, "cpu") if (mount / name).is_dir()), mount / "cpu")
            usage = mount / "cpuacct" if (mount / "cpuacct").is_dir() else root
            return CpuGroup(_upwards(root, path), usage, unified=False)
    for number, names, path in groups:
        if number == "0" and not names and (mount / "cgroup.controllers").is_file():
            return CpuGroup(_upwards(mount, path), mount, unified=True)
    return None


def memory_events(pid: int, proc: Path = PROC, mount: Path = MOUNT) -> Path | None:
    """The file that counts what lack of memory did to its group; None where the kernel keeps none.

    So of the root of the machine's groups, which counts itself alone.
    """
    for number, names, path in _groups_of(pid, proc):
        if "memory" in names.split(","):
            file = _upwards(mount / "memory", path)[0] / "memory.oom_control"
        elif number == "0" and not names:
            file = _upwards(mount, path)[0] / "memory.events"
        else:
            continue
        if file.is_file() and not file.with_name("release_agent").exists():
            return file
    return None


def kills_in(events: Path) -> int | None:
    """How many processes were killed for lack of memory so far, the group's or the machine's; None where not told."""
    return _counts(events).get("oom_kill")


def _groups_of(pid: int, proc: Path) -> list[list[str]]:
    """Number of the hierarchy, names of its controllers, and path of each group of a process."""
    text = _text(proc / str(pid) / "cgroup") or ""
    return [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]


def _upwards(root: Path, path: str) -> tuple[Path, ...]:
    """The group's folder and those above it; a path of another namespace is not there, the root is."""
    parts = [part for part in path.split("/") if part]
    own = root.joinpath(*parts)
    if ".." in parts or not own.is_dir():
        return (root,)
    return (own, *own.parents[: len(parts)])


def _counts(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in (_text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _seconds(count: int | None, per_second: float) -> float | None:
    return None if count is None else count / per_second


def _text(path: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return None
