"""`trace_view.json` of torch_npu and MindSpore: a bare list of Chrome events, times in us since the epoch as text.

A first pass, which decodes next to nothing, finds the names of processes and threads and the steps; the second writes.
Such a list may be long: it is read a few MB at a time, and in lanes. A lane is a thread of a process; it says what its
events become. Numbers stay text until they are converted.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_left
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import SourceError
from pipeprof.read.chrome.container import CHUNK, Decoders, Trace
from pipeprof.read.chrome.events import decode_one
from pipeprof.read.mindspore_ops import collective_kind, op_type
from pipeprof.read.source.content import HINT, mapping
from pipeprof.read.source.numbers import Bools, Ints, joined, nanoseconds, raw_ns
from pipeprof.read.tables.share import Notes
from pipeprof.read.tables.steps import outermost
from pipeprof.record.document import BAD_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

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


CLOCK = "epoch"
_STEP = re.compile(r"ProfilerStep#([0-9]{1,12})")
_LOADER = "enumerate(DataLoader)"
_OWN = (_LOADER, "ProfilerStep#")  # these are steps and batches
_NAMES = ("process_name", "thread_name")
_MARKS = (b'"process_name"', b'"thread_name"', b'"ProfilerStep#', b'"enumerate(DataLoader)')
_INTERVALS = 1_000_000  # names, steps and waits for batches that are looked at
_PIECE = 1 << 17  # bytes of the first pass that are decoded, or passed over, as one
NAME = 1000  # characters of a name of a span


def names_of(path: Path) -> Names:
    """Names and steps of a trace. Damage is not reported here: reading the events does."""
    names = Names()
    seen = 0
    with suppress(SourceError):
        for event in chain.from_iterable(events(path, Event, Notes(), _PIECE, _MARKS)):
            if not isinstance(event.name, str) or not event.name.startswith(_NAMES if event.ph == "M" else _OWN):
                continue
            seen += 1
            if seen > _INTERVALS:
                names.more = True
                break
            if event.ph == "M":
                _add_name(event, names)
            elif event.ph == "X":
                _add_interval(event.name, event, names)
    names.fetches = outermost(names.fetches)
    return names


def _add_name(event: Event, names: Names) -> None:
    shown = None
    with suppress(*BAD_JSON):
        shown = mapping(msgspec.json.decode(event.args)).get("name")
    if not isinstance(shown, str):
        return
    if event.name == "process_name" and len(names.processes) < MOST:
        names.processes[number_of(event.pid)] = shown[:NAME]
    elif event.name == "thread_name" and len(names.threads) < MOST:
        names.threads[number_of(event.pid), number_of(event.tid)] = shown[:NAME]


def _add_interval(name: str, event: Event, names: Names) -> None:
    start, dur = (raw_ns(bytes(time), "us") for time in (event.ts, event.dur))
    if start is None or dur is None or start < 0 or dur < 0:
        return
    step = _STEP.fullmatch(name)
    if step:
        names.steps.setdefault(int(step[1]), (start, start + dur))
    elif name.startswith(_LOADER):
        names.fetches.append((start, start + dur))


def add_steps(names: Names, out: Out) -> None:
    """Steps by their `ProfilerStep#N` on the host.

    The data wait of a step is the time of the waits that begin in it, put at its front, where forward then begins: the
    loop may ask for the next batch at a step's end, or for several batches.
    """
    if not names.steps:
        return
    out.steps.source = "trace_view"
    begins = [begin for begin, _ in names.fetches]
    for number, (start, end) in sorted(names.steps.items(), key=lambda item: item[1]):
        waits = names.fetches[bisect_left(begins, start) : bisect_left(begins, end)]
        wait = sum(min(until, end) - since for since, until in waits) if begins else None
        forward = None if wait is None else min(start + wait, end)
        out.add_step(
            number, (start, forward, None, end), CLOCK, kind="train", fp_source=None if wait is None else "fetch",
            fetch_wait_ns=wait, in_window=True,
        )  # fmt: skip


def add_fetches(names: Names, out: Out) -> None:
    """The loop's waits for batches, as its loader recorded them (match by name: the category differs by version)."""
    for number, (start, end) in enumerate(names.fetches, out.total("fetch")):
        out.add(
            "fetch", fetch=number, step=out.steps.at(start, CLOCK), start_ns=out.at(start, CLOCK), wait_ns=end - start,
            side="iterator",
        )  # fmt: skip


def read_trace(path: Path, names: Names, out: Out, *, ops: bool, collectives: bool) -> dict[str, int]:
    """Spans, and executions where no better file of the rank has them.

    Returns the sums (ns) of Overlap Analysis by name, for the check.
    """
    sums: dict[str, int] = defaultdict(int)
    lanes = Lanes(names)
    seen = 0
    for batch in events(path, Bare, out.notes):
        seen += len(batch)
        out.progress(f"rank {out.rank}: {path.name}, {seen} events")
        waiting = lanes.sorted(batch)
        if ops:
            _add_ops(path, waiting[Sort.DEVICE], "NPU", out)
            _add_ops(path, waiting[Sort.HOST_OP], "CPU", out)
        operators, parts = _operators_of(waiting[Sort.PLANE])
        if collectives:
            _add_collectives(path, waiting[Sort.COMMUNICATION], out)
            _add_collectives(path, operators, out)
        _add_spans(path, parts, out, sums)
        _add_spans(path, waiting[Sort.SPAN], out, sums)
    if names.more:
        out.notes.add(
            "names", f"`{path.name}` has too many names, steps or waits for batches: the later ones are left out"
        )
    if lanes.more:
        out.notes.add("threads", f"`{path.name}` has more than {MOST} threads: the others are put together as one")
    return dict(sums)


def _operators_of(planes: Waiting) -> tuple[Waiting, Waiting]:
    """What is a whole communication operator by its name, and what is not."""
    operators: Waiting = ([], [])
    parts: Waiting = ([], [])
    for event, lane in zip(*planes, strict=True):
        chosen = operators if isinstance(event.name, str) and event.name.startswith("hcom_") else parts
        chosen[0].append(event)
        chosen[1].append(lane)
    return operators, parts


def _names(events: list[Bare]) -> list[str]:
    names = [event.name for event in events]
    return [str(name) for name in names] if set(map(type, names)) - {str} else names


def _times(path: Path, events: list[Bare], out: Out) -> tuple[Ints, Ints, Bools]:
    """(start, duration, which events have both), ns; the good ones are remembered as the rank's first and last."""
    start, has_start = nanoseconds(joined([event.ts for event in events]))
    dur, has_dur = nanoseconds(joined([event.dur for event in events]))
    good = has_start & has_dur & (start >= 0) & (dur >= 0)
    bad = int((~good).sum())
    if bad:
        out.notes.count(path, "event without a start and a duration", bad)
    if bad < len(good):
        for edge in (start[good].min(), (start[good] + dur[good]).max()):
            out.at(int(edge), CLOCK)
    return start, dur, good


def _add_ops(path: Path, waiting: Waiting, device: str, out: Out) -> None:
    """Executions, to `op`."""
    events, lanes = waiting
    if not events:
        return
    start, dur, good = _times(path, events, out)
    names = _names(events)
    op_ids = {name: out.operator(name, op_type(name), device) for name in dict.fromkeys(names)}
    lengths = pa.array(dur)
    columns = {
        "op_id": pa.array([op_ids[name] for name in names], pa.int64()), "step": out.steps.all_at(start, CLOCK),
        "start_ns": pa.array(start - out.zeros.get(CLOCK, 0)), "dur_ns": lengths, "self_ns": lengths,
        "track": _texts([lane.thread for lane in lanes]),
    }  # fmt: skip
    out.add_columns("op", columns, good)


def _add_collectives(path: Path, waiting: Waiting, out: Out) -> None:
    """Whole communication operators, to `collective`."""
    events, lanes = waiting
    if not events:
        return
    start, dur, good = _times(path, events, out)
    names = _names(events)
    kinds = {name: collective_kind(name) for name in dict.fromkeys(names)}
    groups = _texts([lane.thread for lane in lanes])
    columns = {
        "step": out.steps.all_at(start, CLOCK), "name": _texts(names),
        "kind": pa.array([kinds[name] for name in names], pa.string()), "group_name": groups, "track": groups,
        "start_ns": pa.array(start - out.zeros.get(CLOCK, 0)), "dur_ns": pa.array(dur),
    }  # fmt: skip
    out.add_columns("collective", columns, good)


def _add_spans(path: Path, waiting: Waiting, out: Out, sums: dict[str, int]) -> None:
    """Everything else, to `span`. What is a step or a wait for a batch is left out: these have their own tables."""
    events, lanes = waiting
    names = _names(events)
    if any(name.startswith(_OWN) for name in set(names)):
        others = [index for index, name in enumerate(names) if not name.startswith(_OWN)]
        events, lanes = [events[index] for index in others], [lanes[index] for index in others]
        names = [names[index] for index in others]
    if not events:
        return
    start, dur, good = _times(path, events, out)
    categories = [
        lane.category or (event.cat if type(event.cat) is str and event.cat else lane.fallback)
        for event, lane in zip(events, lanes, strict=True)
    ]
    overlaps = [index for index, category in enumerate(categories) if category == "overlap"]
    if overlaps:
        for index, length in zip(overlaps, np.where(good, dur, 0)[overlaps].tolist(), strict=True):
            sums[names[index]] += length
    columns = {
        "track": _texts([lane.track for lane in lanes]), "category": _texts(categories),
        "name": _texts(names), "start_ns": pa.array(start - out.zeros.get(CLOCK, 0)),
        "dur_ns": pa.array(dur),
    }  # fmt: skip
    out.add_columns("span", columns, good)


def _texts(values: list[Any]) -> pa.Array:
    """A column of texts, cut where they are too long."""
    try:
        column = pa.array(values, pa.string())
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON allows
        column = pa.array([text.encode("utf-8", "replace").decode() for text in values], pa.string())
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return column if longest <= NAME else pc.utf8_slice_codeunits(column, 0, NAME)
