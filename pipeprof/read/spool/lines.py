"""Reading the files of a spool: records of one type, one a line. What is damaged is left out, and named.

What the lines of a spool hold, as types: a line of another form is damaged. Older versions may lack some fields.

Times are ns of the monotonic clock, unless a name says otherwise. Numbers are so small that sums of them fit a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec

from pipeprof.record.document import BAD_JSON
from pipeprof.record.limits import BYTES, raised_by
from pipeprof.record.plain_file import cut_file
from pipeprof.record.text import printable_all
from pipeprof.record.whereabouts import At, Call, Count, Id, Spent

T = TypeVar("T")

MOST_BYTES = 1 << 30  # of one file; a day of samples of a large job has a tenth of that
_NAMED = 5  # damaged lines of one file


@dataclass
class SpoolNotes:
    """What was odd, for the user. `damage` is what makes a run partial: not the end that a kill cuts off."""

    all: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def cut(self, text: str) -> None:
        """Say what any process that is killed may leave behind."""
        self.all.append(text)

    def damaged(self, text: str) -> None:
        """Say what no kill explains."""
        self.all.append(text)
        self.damage.append(text)


def shown(path: Path) -> str:
    """A file of a spool as its notes name it."""
    return f"`{path.parent.name}/{path.name}`"


def content(path: Path, notes: SpoolNotes) -> bytes:
    """The bytes of a file; none when it is not there or is no regular file of this spool, up to a limit."""
    try:
        data, is_whole = cut_file(path, MOST_BYTES, inside=_home(path))
    except FileNotFoundError:
        return b""
    except OSError as error:
        notes.damaged(f"cannot read {shown(path)}: {error.strerror}")
        return b""
    if not is_whole:
        notes.damaged(f"{shown(path)} has more than {len(data):,} bytes, the rest was left out: {raised_by(BYTES)}")
    return data


def records(path: Path, decode: Callable[[bytes], T], notes: SpoolNotes) -> list[T]:
    """The records of the lines of a file, in order, without those that `decode` refuses."""
    *lines, last = content(path, notes).split(b"\n")
    decoded: list[T] = []
    wrong = 0
    for number, line in enumerate(lines, 1):
        try:
            decoded.append(decode(line))
        except BAD_JSON as error:
            wrong += 1
            if wrong <= _NAMED:
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                notes.damaged(f"damaged line {number} of {shown(path)} was left out: {why}")
    if wrong > _NAMED:
        notes.damaged(f"{wrong - _NAMED:,} more damaged lines of {shown(path)} were left out")
    if last:
        try:
            decoded.append(decode(last))
        except BAD_JSON:
            notes.cut(f"{shown(path)} ends in the middle of a line, which was left out")
    return decoded


class Reader:
    """Decodes JSON of one type. Text that is bytes and no text comes with escapes, as Python's `json` writes it."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def __call__(self, line: bytes) -> Any:
        """Raises one of BAD_JSON."""
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            try:
                value = json.loads(line, parse_constant=_refuse)
            except ValueError:
                raise error from None
            return msgspec.convert(printable_all(value), self._kind)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _home(path: Path) -> Path:
    """The folder of the repetition that a file of a spool lies in."""
    return next((folder for folder in path.parents if folder.name.startswith("rep=")), path.parent)


Calls = Annotated[int, msgspec.Meta(ge=1, le=1 << 61)]
Seconds = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Status = Annotated[int, msgspec.Meta(gt=-(1 << 31), lt=1 << 32)]
Rank = Annotated[int, msgspec.Meta(ge=0, lt=1 << 20)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Caller = Annotated[int, msgspec.Meta(ge=-1, lt=1 << 32)]
Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
TensorForm = tuple[str, list[Size]]  # data type and shape
Operand = tuple[str, list[TensorForm], list[TensorForm], list[tuple[str, At | list[At]]]]
Frame = tuple[str, Id, str, bool | int, Call | None]


def _record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    """The type of an object with fields that it must have, and others that it may have."""
    base: Any = TypedDict("base", required)  # type: ignore[misc]
    maker: Any = type(base)
    return maker("record", (base,), {"__annotations__": optional or {}, "__module__": __name__}, total=False)


def _event(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Any:
    return _record({"e": str, "t": At, **required}, optional)


class Event(msgspec.Struct):
    """What every event has: its name and its time."""

    e: str
    t: At


class _Node(TypedDict):
    type: str


class Node(_Node, total=False):
    """An operator of a dataset as its program describes it."""

    node: Id
    workers: At | None
    site: str | None
    callers: str | None
    name: str | None
    python: bool | None
    processes: bool | None
    iterated: bool | None
    wrapped: bool | None
    inlined: bool | None
    code: str | None
    batch: At | None
    capacity: At | None
    rows: Count | None
    children: list[Node] | None


_NOT_DONE = _event({"why": str})  # something that was asked for
_EVENTS = {
    # The first event of a process. `monotonic` and `realtime` are the two clocks at one moment.
    "process": _event(
        {"pid": Id, "started": At},
        {
            "host": str, "python": str | None, "rank": Rank | None, "run_id": str | None, "monotonic": At,
            "realtime": At, "inprocess": bool, "hooks": str | None, "cpu_limit_s": Count | None,
        },
    ),
    # A dataset iterator was made.
    "iterator": _event(
        {"number": Id, "begin": At, "end": At},
        {
            "hidden": bool | None, "site": str | None, "epochs": Any, "graph": Node | None, "queues": str | None,
            "again": bool | None, "settings": dict[str, Any], "iteration": Count,
        },
    ),
    # Of consecutive batches of a loader with workers: how many were ready behind it, how many of them it had held up,
    # and how many were still to be begun. `first` counts from 0.
    "ready": _event({"number": Id, "first": Count, "depth": list[Id], "held": list[Id], "tasks": list[Id]}),
    # Looks at where the training was: time, what was found (1: it waits for a loader without hooks), and for which one.
    "looks": _event({"samples": list[tuple[At, Id, Id]]}),
    # How many bytes batches of an iterator hold: position, bytes.
    "weights": _event({"number": Id, "rows": list[tuple[Id, Count]]}),
    # MindSpore or PyTorch was imported; without a library: MindSpore.
    "import": _event({}, {"library": str, "begin": At | None, "end": At | None, "version": str | None}),
    # What the training runs on.
    "context": _event({}, {"device_target": str | None, "mode": str | None, "numpy": str | None}),
    # An optimizer, a graph or a function that is called, by its number in the marks; `owner`: its class.
    "unit": _event({"number": Id}, {"owner": str | None}),
    # What a `Model.train` that begins is to do: `batches` in each of its epochs.
    "plan": _event({"epochs": Calls, "batches": Calls}),
    "closed": _event({"number": Id}),  # an iterator is gone
    "workers_ended": _event({"number": Id, "took": Count}),  # those of a loader, in ns
    # An op window begins; `began`: when it was open.
    "window_open": _event({"number": Id, "warmup": Count, "begin": At}, {"began": At, "memory": bool}),
    # An op window has ended; `closing`: when writing what it holds began.
    "window": _event(
        {
            "number": Id, "ticks": Annotated[list[At], msgspec.Meta(min_length=1)], "begin": At, "end": At,
            "monotonic": At, "realtime": At,
        },
        {"warmup": Count, "closing": At},
    ),
    # A step that was run line by line: when each line began, and which of `sites` it is; -1: nobody's caller.
    "lines": _event({"sites": list[str], "rows": list[tuple[At, Id]]}, {"callers": list[Caller]}),
    # Looks at the stack of the thread that trains: frames that are new, each with the number of its caller (-1: none),
    # numbered from 0 through all such events; of each look its time, how long it stands for, and the innermost frame.
    "stacks": _event({"sites": list[tuple[Caller, str]], "rows": list[tuple[At, Count, Id]]}),
    # Calls of cells in a step: each kind (name, number of the kind around it or -1, frame), and when it was called.
    "cells": _event({"kinds": list[tuple[str, Caller, str]], "rows": list[tuple[Id, At, At]]}),
    # A cell that was compiled: the names of its cells, and the frames of those that are the program's.
    "modules": _event({"frame": str, "cells": list[tuple[str, str]]}),
    # What one PyNative step called operators with, in order: `calls` are positions in `kinds`.
    # A kind is the operator's type, its inputs, its outputs, and attributes.
    "operands": _event({"kinds": list[Operand], "calls": list[Id]}),
    # A call of a network, or of a function that makes its gradients, which is the subject of sections.
    "pass": _event({"number": Id}, {"site": str | None, "cell": str, "own": bool, "network": Id | None}),
    "user_profile": _event({"monotonic": At, "realtime": At}, {"folder": str | None}),  # the script's own was started
    # Timing lines of a fetch: kind, operator, mean, largest, smallest, rows, reading; all as text.
    "service": _event({"pipeline": Id, "ops": list[tuple[str, str, str, str, str, str, str]]}),
    # What MindSpore recorded of consecutive batches of an iterator; `first` counts from 0.
    "batches": _event(
        {
            "number": Id, "first": Count, "push_ms": list[Milliseconds], "batch_ms": list[Milliseconds],
            "depth": list[Id], "capacity": list[Id],
        }
    ),
    # From now on the queues of an iterator are read so often only.
    "spacing": _event({"number": Id, "ms": Annotated[int, msgspec.Meta(ge=1, lt=1 << 40)]}),
    # Timed calls of the user's Python in an operator, ns.
    "calls": _event(
        {"pipeline": Id, "node": Id, "calls": Count, "timed": Count, "wall": Count, "cpu": Count, "batches": At},
        {"part": Id} | dict.fromkeys(("delay", "read", "given", "made", "max", "min"), Count | None),
    ),
    "workers": _event({"pipeline": Id, "node": Id | None, "pids": list[Id]}),  # processes of an operator
    # Share of time for which other threads held the lock. `waiting`: pipeline, node, its threads that waited for it.
    "gil": _event({"held": Share}, {"waiting": list[tuple[Id, Id, Share]]}),
    # An interval that the program named.
    "span": _event(
        {"begin": At, "end": At, "label": str},
        {"track": str | None, "category": str | None, "stack": list[str] | None},
    ),
    # A class of callbacks that took long, by its number in the marks.
    "callback": _event({"number": Id, "label": str}, {"site": str}),
    # A line of the program that writes checkpoints or evaluates, by its number in the marks; 0 there is none.
    "part_site": _event({"number": Id, "site": str}),
    # A line that waits for the network, by its number in the marks; `via`: the file of MindSpore between.
    "sync_site": _event({"number": Id, "call": str, "site": str, "via": str}),
    # A graph was compiled. `owner` tells the objects of one name apart; a size that is not fixed is below 0.
    "compiled": _event({"label": str, "owner": str, "shapes": list[list[At]], "begin": At, "end": At}),
    "thread": _event(  # of Python's; `what`: the function that it runs, `site`: its file:line
        {"tid": Id}, {**dict.fromkeys(("label", "module", "what", "site"), str | None), "ours": bool | None}
    ),
    "warning": _event({"code": str, "message": str}),  # what the probe has to say to the user
    "stopped": _event({"steps": Count}),  # the probe ended the training after so many steps
    "override_missed": _NOT_DONE,
    "stand_in_failed": _NOT_DONE,
    # The fingerprint of one of the first batches of an epoch that an iterator handed out.
    "batch_digest": _event({"number": Id, "site": str, "row": Count, "epoch": Count, "digest": str}),
}  # fmt: skip
# A process in a sample; seconds are since it was born.
_PROCESS = _record(
    {"pid": Id, "ppid": Id, "user": Seconds, "sys": Seconds, "rss": Count},
    {"born": Seconds, "ended": Seconds, "command": str | None},
)
# Threads of a process in a sample: (id, ns on a CPU, ns waiting for one) and (id, name, start).
_INSIDE = _record({"cpu": list[tuple[Id, Count, Count | None]], "names": list[tuple[Id, str, Count]]})
# What CPU a process may use.
_ROOM = _record(
    {"cpus": Share, "idle": Seconds}, {"quota": Share | None} | dict.fromkeys(("used", "throttled"), Seconds | None)
)
# What the launcher saw at one time; `self`: its own CPU so far. Host figures are since boot.
_SAMPLE = _record(
    {
        "t": At, "user": Seconds, "sys": Seconds, "idle": Seconds, "steal": Seconds, "used": Count,
        "procs": list[_PROCESS],  # type: ignore[valid-type]
    },
    {
        "pressure": Seconds | None, "self": Seconds,
        "inside": dict[str, _INSIDE], "room": dict[str, _ROOM],  # type: ignore[valid-type]
    },
)  # fmt: skip
# What the launcher wrote when a repetition began, or ended.
_LAUNCH = _record(
    {},
    {
        "monotonic": At | None, "realtime": At | None, "run_id": str | None, "status": Status | None,
        "problem": str | None, "reason": str | None, "oom_kills": Count | None,
        "cpu_s": Spent | None, "cpu_limit_s": Count | None, "calibration_ns": Count | None,
    },
)  # fmt: skip
# The exception that ended a process.
_FAILURE = _record({"pid": Id, "t": At, "error": str, "place": str | None, "code": str | None, "lines": list[str]})
# A thread, or a worker process with its time, that is in one thing; `tree` and `node`: the row that it makes.
_HELD = _record({"since": At, "stack": list[Frame], "line": str}, {"t": At, "pid": Id, "tree": Id, "node": Id | None})
# What a process is in at this moment; `moved`: when something was recorded last.
_NOW = _record(
    {"t": At, "moved": At, "stack": list[Frame]},
    {"calls": Count, "line": str, "threads": list[_HELD]},  # type: ignore[valid-type]
)
_readers = {name: Reader(kind) for name, kind in _EVENTS.items()}
_known = Reader(Event)
_other = Reader(dict[str, Any])
sample = Reader(_SAMPLE)
launch = Reader(_LAUNCH)
failure = Reader(_FAILURE)
stopped = Reader(_record({"pid": int, "problem": str}))  # a process that recorded no further
now = Reader(_NOW)
held = Reader(_HELD)


def event(line: bytes) -> dict[str, Any]:
    """An event of its own type; of one that nobody asks for, name and time alone are checked. Raises BAD_JSON."""
    fields: dict[str, Any] = _readers.get(_known(line).e, _other)(line)
    return fields
