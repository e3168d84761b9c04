"""Whether something beside the training takes what it needs: a process its CPU, a Python thread the interpreter's lock.

Of processes those of the job that are no dataset workers. Pure: rows in, a dict out.

Everything is of the steady steps, and relative to the CPU that the training could have: its affinity and its quota.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from pipeprof.verdict.network import OTHER_LOADER
from pipeprof.verdict.rules import LOCK_BESIDE_LOOP, graded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import HostAccount, HostRoom

KIND, LOCK = "cpu_contention", "lock_contention"
THREAD = "python_thread"
MAY_BE_FED = ("wait", None)  # kinds of stages that may wait for what a thread makes; loaders of others have none
PHASE = "steady"
SUSPECTS = ("child", "launcher")
PIPELINE = ("dataset_thread", "worker")
TRAINING = ("trainer", "main", "mindspore_thread", "python_thread", "other_thread", *PIPELINE)
LOOP_THREADS = ("main", "mindspore_thread")

LEAST_JOB_SHARE = 0.20  # of the job's CPU: from here on a process is worth the first sentence
LEAST_ROOM_SHARE = 0.05  # of the cores that the training may use: less is nothing beside busy neighbours
LEAST_THREAD = 0.20  # cores of a thread that computes in Python
NO_IDLE = 0.10  # of these cores: less is none, a sample is never exact
FEEDING = 0.25  # a stage that wants a CPU for less of its time than this may wait for just that process
LEAST_NS = 5_000_000_000  # sampled; less is a doubt
OTHER_LOAD = 0.25  # of the cores, used by other programs: removing the process does not give the training all of it


class Contention(msgspec.Struct, frozen=True):
    """A process or a thread that takes what the training needs, in the repetition and rank in which it takes most.

    `wait_cores`: threads of the training that were ready to run and had no CPU, null when not counted;
    `pipeline_wait_ratio`: the same of the pipeline's threads and workers, relative to the cores that they had;
    `own_wait_cores`: its own. `leads`: whether it is the answer, which `lower` says.
    """

    kind: str = KIND
    rep: int = 0
    rank: int = 0
    part: str = "child"
    pid: int | None = None
    processes: int = 1
    what: str = ""
    command: str = ""
    site: str = ""
    library: str = ""
    cores: float = 0.0
    job_share: float | None = None
    gil_share: float | None = None
    own_wait_cores: float | None = None
    training_cores: float = 0.0
    wait_cores: float | None = None
    pipeline_wait_ratio: float | None = None
    available_cores: float | None = None
    idle_share: float | None = None
    other_cores: float | None = None
    sampled_ns: int = 0
    doubts: list[dict[str, Any]] = []
    confidence: str = "high"
    leads: bool = True

    @property
    def is_thread(self) -> bool:
        """Whether it is a Python thread of the training."""
        return self.part == THREAD


def contention_in(row: Mapping[str, Any]) -> Contention:
    """The typed form of a contention as the report's content has it."""
    return msgspec.convert(row, Contention)


def find_contention(parts: Sequence[HostAccount], rooms: Sequence[HostRoom]) -> dict[str, Any] | None:
    """The process, or thread, with the most CPU of all named in at least half of the repetitions; None without one.

    `doubts` are codes with their numbers; `wait_cores` are threads of the training that were ready to run and had no
    CPU, null when not counted, and `pipeline_wait_ratio` is the same of the pipeline's threads and workers, relative to
    the cores that they had.
    """
    room_of = {(row.rep, row.rank): row for row in rooms if row.phase == PHASE}
    named: dict[tuple[str, ...], list[HostAccount]] = defaultdict(list)
    for row in parts:
        if row.phase == PHASE and _takes_too_much(row, room_of.get((row.rep, row.rank))):
            named[_identity(row)].append(row)
    of = len({rep for rep, _ in room_of})
    often = {who: rows for who, rows in named.items() if 2 * len({row.rep for row in rows}) >= of}
    if not often:
        return None
    rows = max(often.values(), key=lambda rows: max(row.cores for row in rows))
    first = max(rows, key=lambda row: row.cores)
    room = room_of[first.rep, first.rank]
    doubts = _doubts(room, len({row.rep for row in rows}), of)
    most = "medium" if first.part == THREAD else "high"  # nobody sees who holds the lock
    return _contention(first, room, parts) | {"doubts": doubts, "confidence": graded(doubts, most)}


def loop_cores(parts: Sequence[HostAccount], training: float) -> float | None:
    """Cores that the threads of the loop may have used or wanted in its steps, of the rank with most; None: not known.

    `training`: the share of the steps in the loop, as if they slept between them.
    """
    cores: dict[tuple[int, int], float] = defaultdict(float)
    for row in parts:
        if row.phase == PHASE and row.part in LOOP_THREADS:
            cores[row.rep, row.rank] += row.cores + (row.wait_cores or 0.0)
    return max(cores.values()) / training if cores and training else None


def lower(diagnosis: dict[str, Any], found: Mapping[str, Any] | None) -> None:
    """Put the contention into a diagnosis: its kind, the process, and a doubt for what else was found.

    `leads` says whether it is the answer: not where the stage that limits waits for something, which may be that very
    process. Of a thread that does not lead only the doubt is told.
    """
    diagnosis["process"] = None
    if found is None:
        return
    contention = contention_in(found)
    leads = not _may_feed(contention, diagnosis)
    if leads or not contention.is_thread:
        diagnosis["process"] = {**found, "leads": leads}
    if leads and not contention.is_thread:
        diagnosis["kind"] = KIND
    doubt = {
        "code": contention.kind, "share": contention.job_share, "what": contention.what, "pid": contention.pid,
    }  # fmt: skip
    for part in (diagnosis, diagnosis["network"]):
        if part is not None and part.get("confidence") is not None:
            part["doubts"] = [*part["doubts"], doubt]
            part["confidence"] = graded([doubt], part["confidence"])


def _takes_too_much(row: HostAccount, room: HostRoom | None) -> bool:
    if row.part == THREAD and room is not None:
        held = (room.gil_share or 0.0) >= LOCK_BESIDE_LOOP
        return bool(row.what) and held and min(row.cores, row.job_share or 0.0) >= LEAST_THREAD
    if row.part not in SUSPECTS or room is None or room.cores is None or room.idle_share is None:
        return False
    return (
        room.idle_share < NO_IDLE
        and (row.job_share or 0.0) >= LEAST_JOB_SHARE
        and row.cores >= LEAST_ROOM_SHARE * room.cores
    )


def _may_feed(contention: Contention, diagnosis: Mapping[str, Any]) -> bool:
    """Whether the stage that limits may wait for what the process makes: it neither computes nor is ready to.

    A thread may make the batches themselves.

    A stage whose process takes its CPU is ready for most of the time in which it does not compute. Its own readiness is
    not known; that of all threads of the pipeline is, relative to what they compute.
    """
    if contention.is_thread:
        other = (diagnosis["network"] or {}).get("limit") == OTHER_LOADER
        return other or (diagnosis["verdict"] == "input_bound" and diagnosis["kind"] in MAY_BE_FED)
    computing = (diagnosis["facts"] or {}).get("cpu_share")
    if diagnosis["verdict"] != "input_bound" or diagnosis["kind"] != "wait" or computing is None:
        return False
    wanted: float = computing * (1.0 + (contention.pipeline_wait_ratio or 0.0))
    return wanted < FEEDING


def _identity(row: HostAccount) -> tuple[str, ...]:
    """Key by which a process is recognised in another repetition."""
    return row.part, row.what, row.site, row.library, row.command


def _contention(row: HostAccount, room: HostRoom, parts: Sequence[HostAccount]) -> dict[str, Any]:
    key = (row.rep, row.rank, PHASE)
    all_own = [part for part in parts if (part.rep, part.rank, part.phase) == key and part.part in TRAINING]
    own = [part for part in all_own if _identity(part) != _identity(row)]
    pipeline = [part for part in own if part.part in PIPELINE]
    return {
        "kind": LOCK if row.part == THREAD else KIND,
        "rep": row.rep,
        "rank": row.rank,
        "part": row.part,
        "pid": row.pid,
        "processes": row.processes,
        "what": row.what,
        "command": row.command,
        "site": row.site,
        "library": row.library,
        "cores": row.cores,
        "job_share": row.job_share,
        "gil_share": room.gil_share,
        "own_wait_cores": row.wait_cores,
        "training_cores": sum(part.cores for part in own),
        "wait_cores": _waiting(own),
        "pipeline_wait_ratio": _ratio(_waiting(pipeline), sum(part.cores for part in pipeline)),
        "available_cores": room.cores,
        "idle_share": room.idle_share,
        "other_cores": _others(room),
        "sampled_ns": room.dur_ns,
    }


def _waiting(parts: Sequence[HostAccount]) -> float | None:
    """Cores that they were ready for and did not have; None when not counted."""
    waits = [part.wait_cores for part in parts if part.wait_cores is not None]
    return sum(waits) if waits else None


def _ratio(part: float | None, total: float) -> float | None:
    return part / total if part is not None and total else None


def _doubts(room: HostRoom, agree: int, of: int) -> list[dict[str, Any]]:
    doubts: list[dict[str, Any]] = []
    if room.dur_ns < LEAST_NS:
        doubts.append({"code": "short", "ns": room.dur_ns})
    others = _others(room)
    if others is not None and others >= OTHER_LOAD * (room.cores or 0.0):
        doubts.append({"code": "other_load", "other_cores": others, "cores": room.cores})
    if agree < of:
        doubts.append({"code": "repetitions_differ", "agree": agree, "of": of})
    return doubts


def _others(room: HostRoom) -> float | None:
    """Of the cores that the training may use, those that neither idled nor worked for the job; None if not known."""
    if room.cores is None or room.idle_share is None or room.job_cores is None:
        return None
    return max(0.0, room.cores * (1.0 - room.idle_share) - room.job_cores)
