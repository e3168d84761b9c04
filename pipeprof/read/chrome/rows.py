"""Events of one batch to rows of numbers: calls, memory, device work, flows.

A column at a time: a loop over one field is several times as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.read.chrome.dialect import (
    API,
    CALLS,
    DEVICE,
    HOST_CALLS,
    LAUNCHER,
    LOADER,
    MEMORY,
    OLD_CATEGORIES,
    OLD_PROCESSES,
    PLAIN,
    RECORDS,
    SIDES,
    STEP,
    STEP_LINE,
    STREAM,
    UNLISTED,
    WORK_LINE,
    Info,
    Marks,
)
from pipeprof.read.chrome.events import ASYNC, NOTHING, Args, Event, Loose, identity, int64
from pipeprof.read.chrome.links import CATEGORIES, OPERATOR
from pipeprof.read.chrome.numbering import shortened
from pipeprof.read.chrome.ops import CONVOLUTION
from pipeprof.read.chrome.spill import ALLOCATE, CALL, LAUNCH, LAUNCH_ABOVE, NONE
from pipeprof.read.source.numbers import UNKNOWN, Ints, times_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeprof.read.chrome.gather import Gathered

_NO_ARGS = Args()
MOST_PERCENT = 100
_ELEMENT_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "long": 8, "int": 4, "short": 2, "byte": 1, "char": 1, "bool": 1,
}  # fmt: skip
_Rows = list[tuple[int, ...]]


class BatchRows:
    """Sorts the events of one batch into rows."""

    def __init__(self, gathered: Gathered, starts: Ints) -> None:
        self.gathered = gathered
        self.starts = starts
        self.ends = starts.copy()
        self.calls: list[int] = []
        self.launchers: list[int] = []
        self.others: list[int] = []
        self.instants: list[int] = []
        self.flows: list[int] = []
        self.points: _Rows = []  # of `call`: allocations, and launches that flows tell of
        self.readings: _Rows = []

    def add(self, events: Sequence[Event]) -> None:
        """Route every event, then write the rows."""
        calls, others, flows, metas = self.calls, self.others, self.flows, []
        called = self.gathered.dialect.calls
        self._name_device_events(events)
        for number, event in enumerate(events):
            phase = event.ph
            if phase == "X":
                category = event.cat
                if (category not in PLAIN if called is None else category in called) and event.name not in UNLISTED:
                    calls.append(number)
                elif category in PLAIN:
                    others.append(number)
                else:
                    self._look_closer(event, number)
            elif phase == ASYNC:
                others.append(number)
            elif phase in SIDES:
                flows.append(number)
            elif phase == "M":
                metas.append(number)
                self.gathered.tracks.describe(event)
            elif phase != "C":
                self._moment(event, number)
        if self.gathered.dialect.form == RECORDS:
            self.launchers = [number for number in calls if events[number].cat in API]
        self._end(events, metas)
        self._write(events)

    def _name_device_events(self, events: Sequence[Event]) -> None:
        """Give events of a device's process a category, where a program has none. Names of lines stand in front."""
        if self.gathered.dialect.calls is not None:
            return
        tracks = self.gathered.tracks
        for event in events:
            if event.ph == "M":
                tracks.describe(event)
            elif event.ph == "X" and not event.cat and event.pid in tracks.devices:
                event.cat = self._of_device(event)

    def _of_device(self, event: Event) -> str:
        """The category of an event by its line of a device. What other lines derive from these are ranges."""
        line = self.gathered.tracks.threads.get((event.pid, event.tid), "")
        if line == STEP_LINE and event.name.isdecimal():
            event.name = f"{STEP}{event.name}"
        streams = self.gathered.tracks.devices[event.pid]
        works = line.startswith(STREAM) if streams else line == WORK_LINE
        return "kernel" if works else "gpu_user_annotation"

    def _end(self, events: Sequence[Event], metas: Sequence[int]) -> None:
        """Ends of intervals; what has none is left out."""
        gathered, starts, ends = self.gathered, self.starts, self.ends
        complete = self.calls + self.others
        ends[complete] = gathered.ends(starts[complete], times_ns([events[number].dur for number in complete]))
        usable = ends != UNKNOWN
        if not usable.all():
            lost = sum(not usable[number] for number in self.flows)
            if lost:
                gathered.dropped["no time"] += lost
            for part in (self.calls, self.launchers, self.others, self.flows):
                part[:] = [number for number in part if usable[number]]
        if self.instants:
            self.others = sorted(self.others + self.instants)
        ends = ends.copy()
        ends[list(metas)] = UNKNOWN
        gathered.note_times(starts, ends)

    def _look_closer(self, event: Event, number: int) -> None:
        """An interval that is no call by its category; older traces and relatives of Kineto have calls among them."""
        category = event.cat or ""
        if category in OLD_CATEGORIES:
            event.cat = OLD_CATEGORIES[category]
        elif not category and event.pid in OLD_PROCESSES:
            event.cat = OLD_PROCESSES[str(event.pid)]
        if event.name.startswith(LAUNCHER) and category.endswith(HOST_CALLS):
            self.launchers.append(number)
            self.calls.append(number)
        else:
            (self.calls if event.cat in CALLS and event.name not in UNLISTED else self.others).append(number)

    def _moment(self, event: Event, number: int) -> None:
        """An event without a duration."""
        start, phase = int(self.starts[number]), event.ph
        if start == UNKNOWN:
            self.gathered.dropped["no time"] += 1
        elif event.name == MEMORY:
            self._allocate(event, start)
        elif phase in ("i", "I", "R"):
            self.instants.append(number)
        else:
            self.gathered.dropped[f"kind `{phase[:8]}`"] += 1

    def _write(self, events: Sequence[Event]) -> None:
        spill = self.gathered.spill
        parts = [self._call_rows(events), self._launch_rows(events), *self._other_rows(events)]
        self._flow_rows(events)
        if self.points:
            parts.append(np.array(self.points, np.int64))
        rows = [part for part in parts if len(part)]
        if rows:
            spill.add("call", np.concatenate([part.T for part in rows], axis=1).T)
        spill.add("reading", self.readings)

    def _call_rows(self, events: Sequence[Event]) -> Ints:
        if not self.calls:
            return _NO_ROWS
        gathered, chosen = self.gathered, [events[number] for number in self.calls]
        starts, ends, args = self.starts[self.calls], self.ends[self.calls], _arguments(chosen)
        names = self._marked([event.name for event in chosen], starts, ends)
        tracks = gathered.tracks.of_events(chosen)
        if gathered.loop is not None:
            for mark in zip(names, starts.tolist(), ends.tolist(), tracks.tolist(), strict=True):
                gathered.loop.add(*mark)
        backward = [_is_backward(one, name) for one, name in zip(args, names, strict=True)]
        links = _ids([one.external_id for one in args])
        sequences = _ids([one.sequence for one in args])
        infos = self._infos(chosen, names, args)
        return _stacked(CALL, starts, ends, tracks, infos, links, sequences, backward, 0, 0, 0)

    def _infos(self, events: Sequence[Event], names: Sequence[str], args: Sequence[Args]) -> list[int]:
        """What each call has in common with others, as a number. The keys are equal to an Info, and made faster."""
        keys = [
            (
                event.cat,
                name,
                b"" if one.dims is NOTHING else bytes(one.dims),
                b"" if one.types is NOTHING else bytes(one.types),
                b"" if one.stack is NOTHING else bytes(one.stack),
                b"" if name != CONVOLUTION and one.flops is None else _beside_shapes(one),
            )
            for event, name, one in zip(events, names, args, strict=True)
        ]
        numbers = list(map(self.gathered.infos.numbers.get, keys))  # type: ignore[arg-type]
        return [
            self._new_info(Info(key[0] or "", *key[1:])) if number is None else number
            for number, key in zip(numbers, keys, strict=True)
        ]

    def _new_info(self, key: Info) -> int:
        gathered = self.gathered
        if len(key.stack) > 2:
            gathered.with_stacks = True
        if key.category == "python_function":
            gathered.with_python_functions = True
        texts = {name: getattr(key, name)[:8000] for name in ("dims", "types", "extra")}
        info = key._replace(name=shortened(key.name), **texts)
        if info in gathered.infos.numbers:
            return gathered.infos.numbers[info]
        return gathered.infos.add(info, sum(map(len, info)))

    def _marked(self, names: list[str], starts: Ints, ends: Ints) -> list[str]:
        """Note steps and loaders' waits; all steps get the name that they share."""
        dialect = self.gathered.dialect
        usual = dialect.step is None
        for number, name in enumerate(names):
            if usual and not name.startswith(_MARKED):
                continue
            start, end = int(starts[number]), int(ends[number])
            step = dialect.step_of(name)
            if step is not None:
                self.gathered.steps.append(Marks(NONE if step[0] is None else step[0], start, end))
                names[number] = step[1]
            elif name.startswith(LOADER):
                self.gathered.loads.append(Marks(self.gathered.texts.number(name), start, end))
        return names

    def _launch_rows(self, events: Sequence[Event]) -> Ints:
        """Launches by calls that are operators: the work belongs to who called them, of records to themselves."""
        if not self.launchers:
            return _NO_ROWS
        chosen = [events[number] for number in self.launchers]
        correlations = _ids([one.correlation for one in _arguments(chosen)])
        starts, tracks = self.starts[self.launchers], self.gathered.tracks.of_events(chosen)
        kind = LAUNCH if chosen[0].cat in API else LAUNCH_ABOVE
        return _launches(kind, starts, tracks, correlations)

    def _other_rows(self, events: Sequence[Event]) -> list[Ints]:
        """Write events that are no calls; returns the launches among them, as rows of `call`."""
        if not self.others:
            return []
        gathered, chosen = self.gathered, [events[number] for number in self.others]
        starts, ends, args = self.starts[self.others], self.ends[self.others], _arguments(chosen)
        tracks = gathered.tracks.of_events(chosen)
        self._mark_device_steps(chosen, starts, ends, tracks)
        links = _ids([one.old_external_id if one.external_id is None else one.external_id for one in args])
        correlations = _ids([one.correlation for one in args])
        categories = gathered.texts.of([event.cat or "" for event in chosen])
        names = gathered.texts.of([event.name for event in chosen])
        durations = ends - starts
        gathered.spill.add(
            "other",
            _stacked(
                starts, durations, tracks, categories, names, links, correlations, _payloads(args),
                _groups(gathered, args), _occupancies(args),
            ),
        )  # fmt: skip
        numbers, which = np.unique(categories, return_inverse=True)
        words = [gathered.texts.values[number] for number in numbers]
        at = np.array([word in DEVICE for word in words])[which]
        gathered.launches.add(links[at], correlations[at], durations[at])
        at = np.array([word.endswith(HOST_CALLS) for word in words])[which]
        return [_launches(LAUNCH, starts[at], tracks[at], correlations[at])]

    def _mark_device_steps(self, events: Sequence[Event], starts: Ints, ends: Ints, tracks: Ints) -> None:
        """Note the steps that a device marks itself."""
        for at, event in enumerate(events):
            if event.cat == "gpu_user_annotation" and (step := self.gathered.dialect.step_of(event.name)) is not None:
                number = NONE if step[0] is None else step[0]
                self.gathered.device_steps[int(tracks[at])].append(Marks(number, int(starts[at]), int(ends[at])))

    def _flow_rows(self, events: Sequence[Event]) -> None:
        if not self.flows:
            return
        gathered, chosen = self.gathered, [events[number] for number in self.flows]
        numbers = [int64(event.id) for event in chosen]
        words = [
            NONE if number is not None else gathered.texts.number(_id_text(event))
            for number, event in zip(numbers, chosen, strict=True)
        ]
        starts, tracks = self.starts[self.flows], gathered.tracks.of_events(chosen)
        categories = [event.cat or "" for event in chosen]
        gathered.spill.add(
            "flow",
            _stacked(
                [number or 0 for number in numbers], words, gathered.texts.of(categories),
                gathered.texts.of([event.name for event in chosen]), [SIDES[event.ph] for event in chosen],
                starts, tracks,
            ),
        )  # fmt: skip
        for at, category in enumerate(categories):
            if category in CATEGORIES:
                number = numbers[at]
                self._tie(chosen[at], -2 - words[at] if number is None else number, int(starts[at]), int(tracks[at]))

    def _tie(self, event: Event, number: int, start: int, track: int) -> None:
        """A flow that ties device work to the operator or to the call that queued it."""
        if event.ph == "f":
            self.gathered.flow_links.end(event.cat or "", number, track, start)
        elif event.ph == "s" and event.cat == OPERATOR:
            self.points.append((LAUNCH, start, start, track, 0, number, NONE, False, 0, 0, 0))
        elif event.ph == "s":
            self.gathered.flow_links.queued(number, start)

    def _allocate(self, event: Event, start: int) -> None:
        gathered, args = self.gathered, event.args or _NO_ARGS
        delta = int64(args.delta)
        if delta is None or abs(delta) >= 2**60:
            gathered.dropped["memory without a size"] += 1
            return
        kind, index = int64(args.device_type) or 0, int64(args.device_id)
        on_host = kind in _HOST
        device = gathered.texts.number("CPU" if on_host else f"{_DEVICES.get(kind, f'device {kind}')}:{index or 0}")
        address = int64(args.address)
        track = gathered.tracks.number((event.pid, event.tid))
        self.points.append((ALLOCATE, start, start, track, 0, NONE, NONE, False, delta, address or 0, device))
        gathered.memory.add(start, delta, on_host=on_host)
        allocated, reserved = int64(args.allocated), int64(args.reserved)
        if allocated is not None and gathered.memory.known_total(device, delta, allocated):
            self.readings.append((start, device, allocated, NONE if reserved is None else reserved))


# c10/core/DeviceType.h: CPU, MKLDNN, IDEEP; and the others
_HOST = frozenset({0, 2, 5})
_DEVICES = {1: "CUDA", 6: "HIP", 9: "XLA", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA", 20: "NPU"}
_NO_ROWS = np.zeros((0, 11), np.int64)
_MARKED = (STEP, LOADER)


def _id_text(event: Event) -> str:
    """The id of a flow as text; one that is its process's own, with the process."""
    process, number = identity(event)
    return "/".join(str(part) for part in (process, number) if part is not None)


def _launches(kind: int, starts: Ints, tracks: Ints, correlations: Ints) -> Ints:
    """Rows of `call` for calls of the host that queue device work and say which."""
    tied = correlations != NONE
    starts, tracks, correlations = starts[tied], tracks[tied], correlations[tied]
    return _stacked(kind, starts, starts, tracks, 0, correlations, NONE, 0, 0, 0, 0) if len(starts) else _NO_ROWS


def _arguments(events: Sequence[Event]) -> list[Args]:
    """The arguments of each event; empty ones where it has none."""
    return [event.args or _NO_ARGS for event in events]


def _ids(values: Sequence[Loose]) -> Ints:
    """Ids and counts, from numbers or text; NONE for what is none, or does not fit."""
    try:
        return np.array([value if value.__class__ is int else _number_of(value) for value in values], np.int64)
    except OverflowError:
        return np.array([_number_of(value) for value in values], np.int64)


def _number_of(value: Loose) -> int:
    """One id or count; NONE for what is none."""
    if value is None:
        return NONE
    number = int64(value)
    return NONE if number is None else number


def _groups(gathered: Gathered, args: Iterable[Args]) -> list[int]:
    """The communication group of each event; NONE for none."""
    return [NONE if one.group is None else gathered.texts.number(str(one.group)) for one in args]


def _payloads(args: Iterable[Args]) -> list[int]:
    """Bytes that each event copied or sent; NONE when it does not say."""
    return [
        NONE if one.moved_bytes is None and one.size is None and one.elements is None else _payload(one) for one in args
    ]


def _payload(args: Args) -> int:
    for value in (args.moved_bytes, args.size):
        number = int64(value)
        if number is not None and number >= 0:
            return number
    elements = int64(args.elements)
    width = _ELEMENT_BYTES.get(str(args.element_type).lower()) if elements is not None else None
    return elements * width if elements is not None and width and 0 <= elements < 2**56 else NONE


def _occupancies(args: Iterable[Args]) -> list[int]:
    """Estimated occupancy of each kernel in percent, which the profiler rounds; NONE when it does not say."""
    return [
        NONE if one.occupancy is None or not 0 <= (number := _number_of(one.occupancy)) <= MOST_PERCENT else number
        for one in args
    ]


def _is_backward(args: Args, name: str) -> bool:
    """Whether a call is a node of the backward graph itself: those have their forward operator's thread."""
    return args.forward_thread not in (None, 0, "0") and not name.startswith("autograd::engine::")


def _beside_shapes(args: Args) -> bytes:
    """What the number of a call's operations needs beside its shapes; see Info."""
    return bytes(args.concrete) if args.flops is None else str(int64(args.flops) or "").encode()


def _stacked(*columns: Any) -> Ints:
    """Rows from columns, some of which may be one number for all rows; the result's columns lie in one piece each."""
    length = max(np.size(column) for column in columns)
    table: Ints = np.empty((len(columns), length), np.int64)
    for number, column in enumerate(columns):
        table[number] = column
    rows: Ints = table.T
    return rows
