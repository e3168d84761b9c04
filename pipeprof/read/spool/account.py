"""The launcher's samples to the account of CPU time: who used it in each interval, and what could be had.

Everything is cumulative in the samples. What a process has used since the sample before is its own; children that it
waited for count where they were seen, and what they used unseen counts as a child without a number.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.read.spool import lines
from pipeprof.read.spool.family import CHILD, LAUNCHER, OTHER, TRAINER, WORKER, Family, Member, ancestors
from pipeprof.read.spool.marks import Kind
from pipeprof.read.spool.process import LATEST, Process

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeprof.read.spool.lines import SpoolNotes
    from pipeprof.read.tables.rows import RankRows

    Sample = Mapping[str, Any]

NEIGHBOUR = "neighbour"
S = 1_000_000_000


@dataclass
class _Use:
    """CPU of one part in one interval."""

    cpu_ns: int = 0
    wait_ns: int | None = None
    members: int = 0

    def add(self, cpu_ns: int, wait_ns: int | None = None, members: int = 1) -> None:
        self.cpu_ns += max(0, cpu_ns)
        self.members += members
        if wait_ns is not None:
            self.wait_ns = (self.wait_ns or 0) + max(0, wait_ns)


_Uses = dict[tuple[str, int | None], _Use]


@dataclass
class _Threads:
    """Cumulative CPU and waits of a trainer's threads as of the sample before."""

    before: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    seen: bool = False


def add_account(samples: Sequence[Sample], out: RankRows, family: Family, trainers: Sequence[Process]) -> None:
    """Rows of cpu_use, cpu_room and process of one rank. Samples of older versions, without births, give none."""
    if not samples or any("born" not in process for sample in samples for process in sample["procs"]):
        return
    kinds = {int(process.about["pid"]): ThreadKinds(process) for process in trainers}
    threads = {pid: _Threads() for pid in kinds}
    ran: dict[int, tuple[int, int]] = {}
    for before, sample in zip((None, *samples[:-1]), samples, strict=True):
        members = family.members(sample)
        for pid, kind in kinds.items():
            kind.learn(sample.get("inside", {}).get(str(pid), {}).get("names", []))
        if before is None:
            for pid, state in threads.items():
                list(_thread_changes(state, _inside(sample, pid)))
            continue
        uses = _processes(before, sample, family.members(before), members)
        for pid, kind in kinds.items():
            _split(uses, pid, kind, threads[pid], _inside(sample, pid))
        known = (tid for part, tid in uses if part == PYTHON_THREAD and tid is not None)  # what they run, that is
        ran |= {tid: (ran.get(tid, (before["t"], 0))[0], sample["t"]) for tid in known}
        _machine(uses, before, sample)
        _write(out, before, sample, uses)
        _add_room(out, before, sample, kinds)
    _add_processes(samples, out, family)
    _add_threads(kinds, ran, out)


def _inside(sample: Sample, pid: int) -> Mapping[str, Any] | None:
    inside: Mapping[str, Any] | None = sample.get("inside", {}).get(str(pid))
    return inside


def _processes(before: Sample, sample: Sample, old: Mapping[int, Member], new: Mapping[int, Member]) -> _Uses:
    """CPU of every process in the interval, by what it is; a process that is new has used all that it has."""
    uses: _Uses = defaultdict(_Use)
    earlier = {(process["pid"], process["born"]): process for process in before["procs"]}
    now = {(process["pid"], process["born"]) for process in sample["procs"]}
    gone: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for key, process in earlier.items():
        if key not in now:
            gone[process["ppid"]].append(process)
    for process in sample["procs"]:
        member = new[process["pid"]]
        then = earlier.get((process["pid"], process["born"]), {})
        uses[_key(member)].add(_ns(process, then, "user", "sys"))
        ended = gone.get(process["pid"], [])
        seen = sum(_ns(child, {}, "user", "sys", "ended") for child in ended)
        unseen = _ns(process, then, "ended") - seen
        if unseen > 0:
            whose = old[ended[0]["pid"]] if ended else member if member.part != TRAINER else Member(CHILD, 0)
            uses[_key(whose)].add(unseen, members=0)
    return uses


def _key(member: Member) -> tuple[str, int | None]:
    return member.part, None if member.part == OTHER or not member.head else member.head


def _ns(process: Mapping[str, Any], then: Mapping[str, Any], *names: str) -> int:
    total: int = sum(round((process.get(name, 0.0) - then.get(name, 0.0)) * S) for name in names)
    return max(-LATEST, min(total, LATEST))


def _split(uses: _Uses, pid: int, kinds: ThreadKinds, state: _Threads, inside: Mapping[str, Any] | None) -> None:
    """Put the trainer's threads in the place of the whole. What ended threads used counts as other threads."""
    began = state.seen
    changes = list(_thread_changes(state, inside))
    use = uses.get((TRAINER, pid))
    if use is None or inside is None or not began:
        return
    del uses[TRAINER, pid]
    left = use.cpu_ns
    for tid, cpu, wait in changes:
        kind = kinds.kind(tid)
        uses[kind, tid if kind == PYTHON_THREAD and kinds.origin(tid)["what"] else None].add(cpu, wait)
        left -= cpu
    if left > 0:
        uses[OTHER_THREAD, None].add(left, members=0)


def _thread_changes(state: _Threads, inside: Mapping[str, Any] | None) -> Iterator[tuple[int, int, int | None]]:
    """Thread, its CPU and its wait in the interval; a thread that is new has used all that it has."""
    for tid, cpu, wait in (inside or {}).get("cpu", []):
        cpu_before, wait_before = state.before.get(tid, (0, 0))
        state.before[tid] = (cpu, wait)
        if cpu < cpu_before:  # the number was given to another thread
            cpu_before, wait_before = 0, 0
        yield tid, cpu - cpu_before, None if wait is None else wait - (wait_before or 0)
    state.seen = state.seen or inside is not None


def _machine(uses: _Uses, before: Sample, sample: Sample) -> None:
    """The launcher's own CPU, and what is left of the machine's for others."""
    uses[PROFILER, None].add(_ns(sample, before, "self") if "self" in sample and "self" in before else 0)
    busy = _ns(sample, before, "user", "sys")
    rest = busy - sum(use.cpu_ns for use in uses.values())
    uses[NEIGHBOUR, None].add(rest, members=0)


def _write(out: RankRows, before: Sample, sample: Sample, uses: _Uses) -> None:
    start, end = out.at(before["t"]), out.at(sample["t"])
    for (part, pid), use in uses.items():
        if use.cpu_ns or use.wait_ns:
            out.add(
                "cpu_use", start_ns=start, end_ns=end, part=part, pid=pid, members=use.members or None,
                cpu_ns=min(use.cpu_ns, LATEST), wait_ns=None if use.wait_ns is None else min(use.wait_ns, LATEST),
            )  # fmt: skip


def _add_room(out: RankRows, before: Sample, sample: Sample, pids: Mapping[int, Any]) -> None:
    """Of the trainer that was there at both ends of the interval."""
    for pid in pids:
        old, new = (one.get("room", {}).get(str(pid)) for one in (before, sample))
        if not old or not new:
            continue
        span = sample["t"] - before["t"]
        quota = new.get("quota")
        cores = new["cpus"] if quota is None else min(new["cpus"], quota)
        free = [_ns(new, old, "idle")] if new["cpus"] == old["cpus"] else []
        if quota is not None and new.get("used") is not None and old.get("used") is not None:
            free.append(min(round(quota * span), LATEST) - _ns(new, old, "used"))
        has_throttle = new.get("throttled") is not None and old.get("throttled") is not None
        pressed = sample.get("pressure") is not None and before.get("pressure") is not None
        out.add(
            "cpu_room", start_ns=out.at(before["t"]), end_ns=out.at(sample["t"]), cores=cores,
            idle_ns=max(0, min(free)) if free else None,
            throttled_ns=max(0, _ns(new, old, "throttled")) if has_throttle else None,
            steal_ns=max(0, _ns(sample, before, "steal")),
            pressure_ns=max(0, _ns(sample, before, "pressure")) if pressed else None,
        )  # fmt: skip
        return


def _add_processes(samples: Sequence[Sample], out: RankRows, family: Family) -> None:
    rows: dict[tuple[int, float], dict[str, Any]] = {}
    for sample in samples:
        members = family.members(sample)
        for process in sample["procs"]:
            member = members[process["pid"]]
            if member.part not in (TRAINER, WORKER, CHILD, LAUNCHER):
                continue
            row = rows.setdefault((process["pid"], process["born"]), {"first_ns": out.at(sample["t"])})
            row |= {
                "pid": process["pid"], "parent_pid": row.get("parent_pid", process["ppid"]), "part": member.part,
                "command": process.get("command") or row.get("command"), "last_ns": out.at(sample["t"]),
            }  # fmt: skip
    for row in rows.values():
        out.add("process", **row, **family.origin(row["pid"]))


def _add_threads(kinds: Mapping[int, ThreadKinds], ran: Mapping[int, tuple[int, int]], out: RankRows) -> None:
    """Python threads that used CPU, by what they run; `ran`: between which samples."""
    for (pid, kind), (tid, (first, last)) in itertools.product(kinds.items(), ran.items()):
        if kind.origin(tid)["what"]:
            span = {"first_ns": out.at(first), "last_ns": out.at(last)}
            out.add("process", pid=tid, parent_pid=pid, part=PYTHON_THREAD, **span, **kind.origin(tid))


MAIN, MINDSPORE_THREAD, DATASET_THREAD = "main", "mindspore_thread", "dataset_thread"
PYTHON_THREAD, OTHER_THREAD, PROFILER = "python_thread", "other_thread", "profiler"

_MINDSPORE = re.compile(r"^(ActorThread|KernelThread|ParallelThread|ASYNC)_|_queue$")
_DATASET_MODULES = ("mindspore.dataset", "torch.utils.data")
_TICK_NS = 10_000_000  # the kernel tells a start in these


class ThreadKinds:
    """Kinds by thread id.

    Dataset operators' threads have no names of their own: they are made with an iterator's tree, while the iterator is
    built or its first batch is fetched.
    """

    def __init__(self, process: Process) -> None:
        self._pid = int(process.about["pid"])
        self._python = {int(event["tid"]): event for event in process.all("thread")}
        built = [(int(event["begin"]), int(event["end"])) for event in process.all("iterator") if "begin" in event]
        self._made = [*built, *_first_fetches(process)]
        self._named: dict[int, tuple[str, int]] = {}

    def learn(self, names: Iterable[tuple[int, str, int]]) -> None:
        """Take in names and starts that a sample tells."""
        for tid, name, start in names:
            self._named[tid] = (name, start)

    def kind(self, tid: int) -> str:
        """Of one thread."""
        if tid == self._pid:
            return MAIN
        event = self._python.get(tid)
        if event is not None:
            return self._of_python(event)
        name, start = self._named.get(tid, ("", None))
        if _MINDSPORE.search(name):
            return MINDSPORE_THREAD
        if start is not None and any(begin - _TICK_NS <= start <= end + _TICK_NS for begin, end in self._made):
            return DATASET_THREAD
        return OTHER_THREAD

    def origin(self, tid: int) -> dict[str, str | None]:
        """Columns `what` and `site` of a Python thread: the function that it runs."""
        event = self._python.get(tid, {})
        return {name: str(event[name]) if event.get(name) else None for name in ("what", "site")}

    @staticmethod
    def _of_python(event: dict[str, object]) -> str:
        if event.get("ours"):
            return PROFILER
        module = str(event.get("module"))
        of_dataset = module.startswith(tuple(f"{name}." for name in _DATASET_MODULES)) or module in _DATASET_MODULES
        return DATASET_THREAD if of_dataset else PYTHON_THREAD


def _first_fetches(process: Process) -> list[tuple[int, int]]:
    fetches = process.marks.only(Kind.FETCH)
    first = np.sort(np.unique(fetches.subject, return_index=True)[1])
    return list(zip(fetches.begin[first].tolist(), fetches.end[first].tolist(), strict=True))


def read_samples(path: Path, notes: SpoolNotes) -> list[dict[str, Any]]:
    """Samples in order; what is damaged is left out, and named in `notes`."""
    return lines.records(path, lines.sample, notes)


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
        ancestor = next((one for one in ancestors(pid, parents) if one in mine or one in others), None)
        if ancestor is None:
            roles[pid] = "launcher"
        elif ancestor in mine:
            roles[pid] = "trainer" if pid == ancestor else "worker"
    return roles
