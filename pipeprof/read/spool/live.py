"""What the processes of a repetition are in at this moment, as far as its spool says. Nothing is changed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeprof.errors import SourceError
from pipeprof.read import minddata
from pipeprof.read.spool import records
from pipeprof.read.spool.lines import SpoolNotes, content
from pipeprof.read.spool.pipelines import flatten, newest_save
from pipeprof.read.spool.process import events_of
from pipeprof.record.document import BAD_JSON
from pipeprof.record.launcher import processes_alive
from pipeprof.record.lock import QUIET_S, is_held
from pipeprof.record.machine import host_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

NOW = "now.json"
WORKER_S = 5.0  # a worker that is stuck says so every second: what is older is over


@dataclass(frozen=True)
class Frame:
    """One frame of a Python stack. `own`: of the program, of no library. `call`: the known call that begins here."""

    file: str
    line: int
    function: str
    own: bool
    call: Mapping[str, Any] | None = None

    @property
    def site(self) -> str:
        """file:line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Stuck:
    """A thread or a worker process (`pid`) beside the main thread that has been in one thing for `for_ns`.

    `op_type` and `name` are of the dataset operator whose row it makes; None for a thread of the program's own.
    """

    pid: int | None
    for_ns: int
    stack: tuple[Frame, ...]
    line: str
    op_type: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Queue:
    """How many batches or rows are ready behind an operator, and how many can be; from the newest sample."""

    op_type: str
    depth: int
    capacity: int


@dataclass(frozen=True)
class Live:
    """One process. `age_s`: since it last said where it is; None: it never did.

    `still_ns`: how long nothing had been recorded then. `calls`: of the network and the optimizer, begun so far.
    `queues` by the number of the iterator, from the training loop towards the sources.
    """

    rep: int
    rank: int
    pid: int
    alive: bool
    ended: bool
    age_s: float | None = None
    said_ns: int = 0
    still_ns: int = 0
    calls: int = 0
    stack: tuple[Frame, ...] = ()
    line: str = ""
    stuck: tuple[Stuck, ...] = ()
    queues: Mapping[int, Sequence[Queue]] = field(default_factory=dict)


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
    now = _facts(folder / NOW, records.now)
    pid = int(about["pid"])
    age_s = _age_s(folder / NOW) if now else None
    iterators = {int(event["number"]): event for event in events if event["e"] == "iterator" and "number" in event}
    closed = {int(event["number"]) for event in events if event["e"] == "closed" and "number" in event}
    return Live(
        rep=rep, rank=int(about.get("rank") or 0), pid=pid, alive=_is_alive(about, alive, age_s, recording=recording),
        ended=any(event["e"] == "bye" for event in events), age_s=age_s, said_ns=int(now.get("t", 0)),
        still_ns=int(now.get("t", 0)) - int(now.get("moved", 0)), calls=int(now.get("calls", 0)),
        stack=_frames(now.get("stack", [])), line=str(now.get("line", "")),
        stuck=(
            *(_stuck(entry, None, int(now["t"]), iterators) for entry in now.get("threads", [])),
            *_workers(folder, events, iterators),
        ),
        queues={number: _queues(folder, number) for number in iterators.keys() - closed},
    )  # fmt: skip


def _is_alive(about: Mapping[str, Any], alive: Sequence[int], age_s: float | None, *, recording: bool) -> bool:
    """Whether a process runs: one of another host as long as it writes, one that records itself as long as it does."""
    if about.get("host") != host_name():
        return age_s is not None and age_s < QUIET_S
    return int(about["pid"]) in alive or (recording and bool(about.get("inprocess")))


def _facts(path: Path, decode: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    """What a file says; nothing when it is not there or damaged."""
    try:
        return decode(content(path, SpoolNotes()))
    except BAD_JSON:
        return {}


def _age_s(path: Path) -> float | None:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None


def _frames(entries: Sequence[records.Frame]) -> tuple[Frame, ...]:
    return tuple(Frame(file, line, name, bool(own), call) for file, line, name, own, call in entries)


def _workers(
    folder: Path, events: Sequence[Mapping[str, Any]], iterators: Mapping[int, Mapping[str, Any]]
) -> list[Stuck]:
    places = {
        pid: {"tree": event["pipeline"], "node": event["node"]}
        for event in events
        if event["e"] == "workers"
        for pid in event["pids"]
    }
    stuck = []
    for path in sorted(folder.glob("worker-*.json")):
        age_s, entry = _age_s(path), _facts(path, records.held)
        if {"pid", "t"} <= entry.keys() and age_s is not None and age_s < WORKER_S:
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


def _queues(folder: Path, number: int) -> list[Queue]:
    """Of an iterator the newest depths that were saved; empty when there are none."""
    saved = newest_save(folder / f"tree-{number}")
    if saved is None:
        return []
    try:
        ops = minddata.read_folder(saved).ops
    except SourceError:
        return []
    last = [(op, op.depths[-1] if op.depths else None) for op in sorted(ops, key=lambda op: op.op_id)]
    return [Queue(op.op_type, depth, op.capacity) for op, depth in last if depth is not None and op.capacity]
