"""What the processes of a repetition are in at this moment, as far as its spool says. Nothing is changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read import minddata
from pipeprof.read.spool import lines
from pipeprof.read.spool.lines import SpoolNotes, content
from pipeprof.read.spool.pipelines import flatten, newest_save
from pipeprof.read.spool.process import NOW, Process, events_of, now_of
from pipeprof.record.document import BAD_JSON
from pipeprof.record.lock import QUIET_S, is_held, processes_alive
from pipeprof.record.machine import host_name
from pipeprof.record.whereabouts import Frame, Last, Live, Queue, Stuck, Whereabouts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

    Age = Callable[[Path, int], float | None]  # of a file, and of what it says when it was written, ns

WORKER_S = 5.0  # a worker that is stuck says so every second: what is older is over


def read_live(run: Run) -> list[Live]:
    """The processes of the newest repetition that use MindSpore, by rank; empty when none has begun to."""
    reps = run.spooled_reps()
    if not reps:
        return []
    alive, recording = processes_alive(run), bool(is_held(run.path))
    folders = (run.spool / f"rep={reps[-1]}").glob("proc-*")
    processes = [_process(folder, reps[-1], alive, recording=recording) for folder in folders]
    return sorted((one for one in processes if one is not None), key=lambda one: (one.rank, one.pid))


def _process(folder: Path, rep: int, alive: Sequence[int], *, recording: bool) -> Live | None:
    events = events_of(folder, SpoolNotes())
    about = next((event for event in events if event["e"] == "process"), None)
    if about is None:
        return None
    where = _where(folder, events, _age_s)
    return Live(
        rep=rep,
        rank=int(about.get("rank") or 0),
        pid=int(about["pid"]),
        alive=_is_alive(about, alive, where["age_s"], recording=recording),
        ended=any(event["e"] == "bye" for event in events),
        **where,
    )


def last_of(process: Process, end_ns: int, **known: Any) -> Last:
    """What a process that is gone was in; `end_ns`: when it ended, by the monotonic clock of its machine."""
    where = _where(process.folder, process.events, lambda _, said_ns: max(0.0, (end_ns - said_ns) / 1e9))
    return Last(**Whereabouts(**where).as_kept(), **known)


def _where(folder: Path, events: Sequence[Mapping[str, Any]], age_s: Age) -> dict[str, Any]:
    """The fields of Whereabouts, from the files of a process."""
    now = now_of(folder)
    iterators = {int(event["number"]): event for event in events if event["e"] == "iterator" and "number" in event}
    closed = {int(event["number"]) for event in events if event["e"] == "closed" and "number" in event}
    said_ns = int(now.get("t", 0))
    return {
        "age_s": age_s(folder / NOW, said_ns) if now else None,
        "said_ns": said_ns,
        "still_ns": said_ns - int(now.get("moved", 0)),
        "calls": int(now.get("calls", 0)),
        "stack": _frames(now.get("stack", [])),
        "line": str(now.get("line", "")),
        "stuck": (
            *(_stuck(entry, None, said_ns, iterators) for entry in now.get("threads", [])),
            *_workers(folder, events, iterators, age_s),
        ),
        "queues": {number: _queues(folder, number) for number in iterators.keys() - closed},
    }


def _is_alive(about: Mapping[str, Any], alive: Sequence[int], age_s: float | None, *, recording: bool) -> bool:
    """Whether a process runs: one of another host as long as it writes, one that records itself as long as it does."""
    if about.get("host") != host_name():
        return age_s is not None and age_s < QUIET_S
    return int(about["pid"]) in alive or (recording and bool(about.get("inprocess")))


def _held(path: Path) -> dict[str, Any]:
    """What a worker's file says; nothing when it is not there or damaged."""
    try:
        facts: dict[str, Any] = lines.held(content(path, SpoolNotes()))
    except BAD_JSON:
        return {}
    return facts


def _age_s(path: Path, _said_ns: int) -> float | None:
    """Of a file that is written now, by the clock of its file system: it may be of another machine."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def _frames(entries: Sequence[lines.Frame]) -> tuple[Frame, ...]:
    return tuple(Frame(file, line, name, bool(own), call) for file, line, name, own, call in entries)


def _workers(
    folder: Path, events: Sequence[Mapping[str, Any]], iterators: Mapping[int, Mapping[str, Any]], age_s: Age
) -> list[Stuck]:
    places = {
        pid: {"tree": event["pipeline"], "node": event["node"]}
        for event in events
        if event["e"] == "workers"
        for pid in event["pids"]
    }
    stuck = []
    for path in sorted(folder.glob("worker-*.json")):
        entry = _held(path)
        age = age_s(path, entry.get("t", 0))
        if {"pid", "t"} <= entry.keys() and age is not None and age < WORKER_S:
            pid = entry["pid"]
            stuck.append(_stuck(entry | places.get(pid, {}), pid, entry["t"], iterators))
    return stuck


def _stuck(entry: Mapping[str, Any], pid: int | None, at: int, iterators: Mapping[int, Mapping[str, Any]]) -> Stuck:
    graph = iterators.get(entry.get("tree", -1), {}).get("graph") or {}
    node = next((node for node in flatten(graph) if node.get("node") == entry.get("node")), {}) if graph else {}
    op_type = node.get("type") if "tree" in entry else None
    return Stuck(
        pid, at - int(entry["since"]), _frames(entry["stack"]), str(entry["line"]), op_type, node.get("name") or None
    )


def _queues(folder: Path, number: int) -> tuple[Queue, ...]:
    """Of an iterator the newest depths that were saved; empty when there are none."""
    saved = newest_save(folder / f"tree-{number}")
    if saved is None:
        return ()
    try:
        ops = minddata.read_folder(saved).ops
    except SourceError:
        return ()
    last = [(op, op.depths[-1] if op.depths else None) for op in sorted(ops, key=lambda op: op.op_id)]
    return tuple(Queue(op.op_type, depth, op.capacity) for op, depth in last if depth is not None and op.capacity)
