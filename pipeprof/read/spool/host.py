"""The launcher's samples to CPU and memory rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.read.spool import records
from pipeprof.read.spool.lines import records as records_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.spool.lines import SpoolNotes
    from pipeprof.read.tables.rows import RankRows


def read_samples(path: Path, notes: SpoolNotes) -> list[dict[str, Any]]:
    """Samples in order; what is damaged is left out, and named in `notes`."""
    return records_of(path, records.sample, notes)


def life_of(pid: int, samples: Sequence[Mapping[str, Any]], end: int) -> tuple[float | None, int]:
    """CPU seconds that a process had used at its end, and when that was.

    It ended by the first sample without it behind the last one with it, else at `end`. The CPU time goes on from there
    at the pace between the last two samples; None where it is in no sample.
    """
    seen = [
        (sample["t"], process["user"] + process["sys"])
        for sample in samples
        for process in sample["procs"]
        if process["pid"] == pid
    ]
    if not seen:
        return None, end
    at, cpu_s = seen[-1]
    until = min((sample["t"] for sample in samples if sample["t"] > at), default=end)
    earlier, before = seen[-2] if len(seen) > 1 else (at, cpu_s)
    pace = max(0.0, cpu_s - before) / (at - earlier) if at > earlier else 0.0
    return max(0.0, cpu_s + pace * max(0, min(until, end) - at)), until


def add_host(samples: list[dict[str, Any]], out: RankRows, mine: Collection[int], others: Collection[int]) -> None:
    """Rows of the host and of the processes of one rank: `mine` and whatever descends from them.

    Ratios are of the time between two samples: of all cores for the host, of one core for a process.
    """
    previous: dict[str, Any] | None = None
    peaks: dict[int, int] = {}
    for sample in samples:
        at = out.at(sample["t"])
        out.add("memory", t_ns=at, device="host", allocated_bytes=sample["used"])
        members = _members(sample["procs"], mine, others)
        for process in sample["procs"]:
            pid = process["pid"]
            if pid in members:
                peaks[pid] = max(peaks.get(pid, 0), process["rss"])
                out.add(
                    "memory", t_ns=at, device="process", pid=pid, name=members[pid], rss_bytes=process["rss"],
                    rss_peak_bytes=peaks[pid],
                )  # fmt: skip
        if previous is not None:
            _add_cpu(previous, sample, out, members)
        previous = sample


def _add_cpu(previous: dict[str, Any], sample: dict[str, Any], out: RankRows, members: dict[int, str]) -> None:
    at = out.at(sample["t"])
    parts = [sample[name] - previous[name] for name in ("user", "sys", "idle", "steal")]
    total = sum(parts)
    if total > 0:
        user, system, idle = (part / total for part in parts[:3])
        out.add("cpu", t_ns=at, scope="host", user_ratio=user, sys_ratio=system, idle_ratio=idle)
    seconds = (sample["t"] - previous["t"]) / 1e9
    before = {process["pid"]: process for process in previous["procs"]}
    for process in sample["procs"]:
        pid = process["pid"]
        if pid in members and pid in before and seconds > 0:
            user, system = (max(0.0, process[name] - before[pid][name]) / seconds for name in ("user", "sys"))
            pipeline_id, op_id = out.workers.get(pid, (None, None))
            out.add(
                "cpu", t_ns=at, scope="process", name=members[pid], pid=pid, pipeline_id=pipeline_id, op_id=op_id,
                user_ratio=user, sys_ratio=system,
            )  # fmt: skip


def _members(processes: list[dict[str, Any]], mine: Collection[int], others: Collection[int]) -> dict[int, str]:
    """Role per process id: trainer, worker (a descendant of a trainer), launcher (anything above or beside)."""
    parents = {process["pid"]: process["ppid"] for process in processes}
    roles: dict[int, str] = {}
    for pid in parents:
        ancestor: int | None = pid
        passed = set()
        while ancestor is not None and ancestor not in mine and ancestor not in others:
            passed.add(ancestor)
            ancestor = parents.get(ancestor)
            if ancestor in passed:  # no process descends from itself: the sample is damaged
                ancestor = None
        if ancestor is None:
            roles[pid] = "launcher"
        elif ancestor in mine:
            roles[pid] = "trainer" if pid == ancestor else "worker"
    return roles
