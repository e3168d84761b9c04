"""Events of a trace of these profilers, which are a bare list, however long: a few MB at a time, and in lanes.

Numbers stay text until they are converted. A lane is a thread of a process; it says what its events become.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Decoders, Trace
from pipeprof.read.chrome.events import decode_one
from pipeprof.read.source.content import HINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Notes


LARGEST_EVENT = 16 << 20
_NOTHING = msgspec.Raw(b"")


class Bare(msgspec.Struct, gc=False):
    """What is read of every event; `ts` and `dur` as they stand in the file."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _NOTHING
    dur: msgspec.Raw = _NOTHING


class Event(Bare, gc=False):
    """An event with its `args`, as they stand in the file."""

    args: msgspec.Raw = _NOTHING


_T = TypeVar("_T", bound=Bare)


def events(
    path: Path, kind: type[_T], notes: Notes, chunk: int = CHUNK, marks: Sequence[bytes] = (b"",)
) -> Iterator[list[_T]]:
    """Events of a kind (`Bare`, or `Event`) in the order of the file, some thousands at a time.

    Where some thousands have none of the `marks` in their text, they are left out undecoded. What is damaged is passed
    over, and raised as SourceError after the last event.
    """
    many, one = msgspec.json.Decoder(list[kind]), msgspec.json.Decoder(kind)  # type: ignore[valid-type]
    decoders = Decoders(
        lambda text: many.decode(text) if any(mark in text for mark in marks) else [],
        lambda text: decode_one(text, one),
    )
    trace = Trace(path, decoders, chunk, LARGEST_EVENT)
    for batch in trace.batches():
        yield batch.events
    notes.count(path, "NaN, or bytes that are not UTF-8, in an event", trace.mended)
    if trace.damage:
        more = f" (and {trace.damaged - 1} more)" if trace.damaged > 1 else ""
        raise SourceError(f"damaged `{path}`: {trace.damage[0]}{more}", HINT)


MOST = 100_000  # lanes that are told apart; of more, only the processes
_NUMBER = 40  # characters of a number of a process or thread that has no name
_TRACK = 200
_CATEGORIES = {"CANN": "cann", "Overlap Analysis": "overlap", "HCCL": "hccl", "Communication": "hccl",
               "Ascend Hardware": "device"}  # fmt: skip


class Sort(enum.IntEnum):
    """What the events of a lane are."""

    SPAN = 0
    DEVICE = 1  # executions on the device
    HOST_OP = 2  # executions of MindSpore's CPU kernels
    COMMUNICATION = 3  # whole communication operators
    PLANE = 4  # the transfers they are made of, or operators without a group's lane
    LEFT_OUT = 5  # merged from what is there


@dataclass
class Names:
    """Names of processes and threads by their numbers; steps (start, end) and loader waits, in ns.

    `more` tells that these are not all.
    """

    processes: dict[object, str] = field(default_factory=dict)
    threads: dict[tuple[object, object], str] = field(default_factory=dict)
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)
    fetches: list[tuple[int, int]] = field(default_factory=list)
    more: bool = False


class Lane:
    """One lane, and the events of it that wait to be written."""

    __slots__ = ("category", "fallback", "sort", "thread", "track")

    def __init__(self, process: str, thread: str, track: str) -> None:
        self.thread = thread
        self.track = track
        self.sort = int(_sort(process, thread))
        self.category = _CATEGORIES.get(process)
        self.fallback = process.lower()[:_TRACK] or "other"


def _sort(process: str, thread: str) -> Sort:
    if process in ("HCCL", "Communication"):
        return Sort.COMMUNICATION if thread.startswith(("Group", "Communication")) else Sort.PLANE
    sorts = {"Ascend Hardware": Sort.DEVICE, "CPU OP": Sort.HOST_OP, "Scope Layer": Sort.LEFT_OUT}
    return sorts.get(process, Sort.SPAN)


Waiting = tuple[list["Bare"], list[Lane]]


class Lanes:
    """All lanes of a trace, made as their first event comes."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._lanes: dict[tuple[Any, Any], Lane] = {}
        self.more = False  # whether there are more than `MOST`

    def sorted(self, events: list[Bare]) -> list[Waiting]:
        """Complete events (ph X) with their lanes; for each `Sort`, in the order of the file."""
        waiting: list[Waiting] = [([], []) for _ in Sort]
        lanes = self._lanes
        for event in events:
            if event.ph != "X":
                continue
            try:
                lane = lanes.get((event.pid, event.tid)) or self._new(event)
            except TypeError:  # a list or an object, which has no hash
                lane = self._new(event)
            group = waiting[lane.sort]
            group[0].append(event)
            group[1].append(lane)
        return waiting

    def _new(self, event: Bare) -> Lane:
        pid, tid = number_of(event.pid), number_of(event.tid)
        lane = self._lanes.get((pid, tid))
        if lane is not None:
            return lane
        if len(self._lanes) >= MOST:
            self.more = True
            return self._lanes.get((None, "other")) or self._add(None, "other")
        return self._add(pid, tid)

    def _add(self, pid: object, tid: object) -> Lane:
        process = self._names.processes.get(pid, "")
        thread = self._names.threads.get((pid, tid)) or f"thread {str(tid)[:_NUMBER]}"
        track = f"{process or 'process ' + str(pid)[:_NUMBER]}: {thread}"[:_TRACK]
        lane = self._lanes[pid, tid] = Lane(process, thread, track)
        return lane


def number_of(value: object) -> object:
    """The number of a process or a thread, whatever stands in its place: short, and with a hash."""
    return value if isinstance(value, (int, float)) else str(value)[:_TRACK]
