"""What the lines of a spool hold, as types: a line of another form is damaged. Older versions may lack some fields.

Times are ns of the monotonic clock, unless a name says otherwise. Numbers are so small that sums of them fit a table.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec

from pipeprof.read.spool.lines import Reader

At = Annotated[int, msgspec.Meta(ge=-(1 << 61), le=1 << 61)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 61)]
Id = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]  # of a process, a thread, an iterator, an operator
Calls = Annotated[int, msgspec.Meta(ge=1, le=1 << 61)]
Seconds = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Status = Annotated[int, msgspec.Meta(gt=-(1 << 31), lt=1 << 32)]


class Event(msgspec.Struct):
    """What every event has: its name and its time."""

    e: str
    t: At


class _Event(TypedDict):
    e: str
    t: At


class _About(_Event):
    pid: Id
    started: At


class About(_About, total=False):
    """The first line of a process. `monotonic` and `realtime` are the two clocks at one moment."""

    ppid: Id
    host: str
    python: str | None
    executable: str | None
    rank: Annotated[int, msgspec.Meta(ge=0, lt=1 << 20)] | None
    role: str | None
    run_id: str | None
    monotonic: At
    realtime: At
    inprocess: bool


class _Node(TypedDict):
    type: str


class Node(_Node, total=False):
    """An operator of a dataset as its program describes it."""

    node: Id
    workers: At | None
    site: str | None
    name: str | None
    python: bool | None
    native: bool | None
    processes: bool | None
    code: str | None
    batch: At | None
    rows: Count | None
    children: list[Node] | None


class _Iterator(_Event):
    number: Id
    begin: At
    end: At


class Iterator(_Iterator, total=False):
    """A dataset iterator was made."""

    hidden: bool | None
    site: str | None
    epochs: Any
    graph: Node | None
    queues: str | None
    thread: Any
    again: bool | None


class FirstBatch(_Event):
    """How many bytes the first batch of an iterator holds."""

    number: Id
    bytes: Count


class Import(_Event, total=False):
    """MindSpore was imported."""

    begin: At | None
    end: At | None
    version: str | None


class Context(_Event, total=False):
    """What the training runs on."""

    device_target: str | None
    mode: str | None
    numpy: str | None


class Plan(_Event):
    """What a `Model.train` that begins is to do: `batches` in each of its epochs."""

    epochs: Calls
    batches: Calls


class Closed(_Event):
    """An iterator is gone."""

    number: Id


class _WindowOpen(_Event):
    number: Id
    warmup: Count
    begin: At


class WindowOpen(_WindowOpen, total=False):
    """An op window begins; `began`: when it was open."""

    began: At


class _Window(_Event):
    number: Id
    ticks: Annotated[list[At], msgspec.Meta(min_length=1)]
    begin: At
    end: At
    monotonic: At
    realtime: At


class Window(_Window, total=False):
    """An op window has ended; `closing`: when writing what it holds began."""

    warmup: Count
    closing: At


class _Lines(_Event):
    sites: list[str]
    rows: list[tuple[At, Id]]


Caller = Annotated[int, msgspec.Meta(ge=-1, lt=1 << 32)]


class Lines(_Lines, total=False):
    """A step that was run line by line: when each line began, and which of `sites` it is; -1: nobody's caller."""

    callers: list[Caller]


class Cells(_Event):
    """Calls of cells in a step: each kind (name, number of the kind around it or -1, frame), and when it was called."""

    kinds: list[tuple[str, Caller, str]]
    rows: list[tuple[Id, At, At]]


class Modules(_Event):
    """A cell that was compiled: the names of its cells, and the frames of those that are the program's."""

    frame: str
    cells: list[tuple[str, str]]


Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
TensorForm = tuple[str, list[Size]]  # data type and shape
Operand = tuple[str, list[TensorForm], list[TensorForm], list[tuple[str, At | list[At]]]]


class Operands(_Event):
    """What one PyNative step called operators with, in order: `calls` are positions in `kinds`.

    A kind is the operator's type, its inputs, its outputs, and attributes.
    """

    kinds: list[Operand]
    calls: list[Id]


class _Pass(_Event):
    number: Id


class Pass(_Pass, total=False):
    """A call of a network, or of a function that makes its gradients, which is the subject of sections."""

    site: str | None
    cell: str
    own: bool
    network: Id | None


class _UserProfile(_Event):
    monotonic: At
    realtime: At


class UserProfile(_UserProfile, total=False):
    """The script's own profiler was started."""

    folder: str | None


class Service(_Event):
    """Timing lines of a fetch: kind, operator, mean, largest, smallest, rows, reading; all as text."""

    pipeline: Id
    ops: list[tuple[str, str, str, str, str, str, str]]


Milliseconds = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Batches(_Event):
    """What MindSpore recorded of consecutive batches of an iterator; `first` counts from 0."""

    number: Id
    first: Count
    push_ms: list[Milliseconds]
    batch_ms: list[Milliseconds]
    depth: list[Id]
    capacity: list[Id]


class Spacing(_Event):
    """From now on the queues of an iterator are read so often only."""

    number: Id
    ms: Annotated[int, msgspec.Meta(ge=1, lt=1 << 40)]


class _Calls(_Event):
    pipeline: Id
    node: Id
    calls: Count
    timed: Calls
    wall: Count
    cpu: Count
    batches: At


class CallTimes(_Calls, total=False):
    """Timed calls of the user's Python in an operator, ns."""

    part: Id
    delay: Count | None
    read: Count | None
    given: Count | None
    made: Count | None
    max: Count | None
    min: Count | None


class Workers(_Event):
    """Worker processes of an operator."""

    pipeline: Id
    node: Id | None
    pids: list[Id]


class Gil(_Event):
    """Share of time for which other threads held the lock."""

    held: Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class _Span(_Event):
    begin: At
    end: At
    label: str


class Span(_Span, total=False):
    """An interval that the program named."""

    track: str | None
    category: str | None
    stack: list[str] | None


class Callback(_Event):
    """A class of callbacks that took long, by its number in the marks."""

    number: Id
    label: str


class SyncSite(_Event):
    """A line that waits for the network, by its number in the marks; `via`: the file of MindSpore between."""

    number: Id
    call: str
    site: str
    via: str


class Compiled(_Event):
    """A graph was compiled. `owner` tells the objects of one name apart; a size that is not fixed is below 0."""

    label: str
    owner: str
    shapes: list[list[At]]
    begin: At
    end: At


class _Thread(_Event):
    tid: Id


class Thread(_Thread, total=False):
    """A thread of Python's."""

    label: str | None
    module: str | None
    ours: bool | None


class Warning_(_Event):  # noqa: N801 - there is a Warning already
    """What the probe has to say to the user."""

    code: str
    message: str


class Why(_Event):
    """Something that was asked for was not done."""

    why: str


class BatchDigest(_Event):
    """The fingerprint of one of the first batches of an epoch that an iterator handed out."""

    number: Id
    site: str
    row: Count
    epoch: Count
    digest: str


class _Process(TypedDict):
    pid: Id
    ppid: Id
    user: Seconds
    sys: Seconds
    rss: Count


class Process(_Process, total=False):
    """A process in a sample; seconds are since it was born."""

    born: Seconds
    name: str | None
    ended: Seconds
    threads: Count | None
    command: str | None


class Inside(TypedDict):
    """Threads of a process in a sample: (id, ns on a CPU, ns waiting for one) and (id, name, start)."""

    cpu: list[tuple[Id, Count, Count | None]]
    names: list[tuple[Id, str, Count]]


class _Room(TypedDict):
    cpus: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    idle: Seconds


class Room(_Room, total=False):
    """What CPU a process may use."""

    quota: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None
    used: Seconds | None
    throttled: Seconds | None


class _Sample(TypedDict):
    t: At
    user: Seconds
    sys: Seconds
    idle: Seconds
    steal: Seconds
    used: Count
    procs: list[Process]


class Sample(_Sample, total=False):
    """What the launcher saw at one time; `self`: its own CPU so far. Host figures are since boot."""

    pressure: Seconds | None
    cores: Count | None
    load: float | None
    inside: dict[str, Inside]
    room: dict[str, Room]
    self: Seconds


class Launch(TypedDict, total=False):
    """What the launcher wrote when a repetition began, or ended."""

    monotonic: At | None
    realtime: At | None
    run_id: str | None
    status: Status | None
    problem: str | None
    reason: str | None


class Failure(TypedDict):
    """The exception that ended a process."""

    pid: Id
    t: At
    error: str
    place: str | None
    code: str | None
    lines: list[str]


Frame = tuple[str, Id, str, bool | int, dict[str, Any] | None]


class _Held(TypedDict):
    since: At
    stack: list[Frame]
    line: str


class Held(_Held, total=False):
    """A thread, or a worker process with its time, that is in one thing; `tree` and `node`: the row that it makes."""

    t: At
    pid: Id
    name: str | None
    tree: Id
    node: Id | None


class _Now(TypedDict):
    t: At
    moved: At
    stack: list[Frame]


class Now(_Now, total=False):
    """What a process is in at this moment; `moved`: when something was recorded last."""

    calls: Count
    line: str
    threads: list[Held]


_EVENTS = {
    "process": About, "iterator": Iterator, "first_batch": FirstBatch, "import": Import, "context": Context,
    "plan": Plan, "closed": Closed,
    "window_open": WindowOpen, "window": Window, "user_profile": UserProfile, "service": Service, "calls": CallTimes,
    "lines": Lines, "cells": Cells, "modules": Modules,
    "operands": Operands, "pass": Pass, "callback": Callback, "compiled": Compiled,
    "sync_site": SyncSite,
    "workers": Workers, "gil": Gil, "span": Span, "thread": Thread, "warning": Warning_, "override_missed": Why,
    "stand_in_failed": Why, "batch_digest": BatchDigest, "batches": Batches, "spacing": Spacing,
}  # fmt: skip
_event = Reader(Event)
_other = Reader(dict[str, Any])
_readers = {name: Reader(kind) for name, kind in _EVENTS.items()}
sample = Reader(Sample)
launch = Reader(Launch)
failure = Reader(Failure)
now = Reader(Now)
held = Reader(Held)


def event(line: bytes) -> dict[str, Any]:
    """An event of its own type; of one that nobody asks for, name and time alone are checked. Raises BAD_JSON."""
    fields: dict[str, Any] = _readers.get(_event(line).e, _other)(line)
    return fields
