"""Raw step trace as the device wrote it: `training_trace.*.slice_N` (20-byte records), `ts_track*` (40-byte records).

Little-endian. training_trace: tag u64, task u16, stream u16, count u64. Tag 0 or above 255 begins a step, 1 is FP, 2 is
BP, 255 the step's end; others are begin and end of a communication operator in turn. ts_track: mode u8, type u8 (10),
size u16, pad u32, count u64, index u64, model u64, stream u16, task u16, tag u16, pad u16. Tag 0 and 1 are the model's
start and end, 2 FP, 3 BP, 4 the iteration's end, 10000 to 19999 communication: even begins, odd ends. Counts are ticks
of 10 ns.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.ascend.checks import Checks
from pipeprof.read.ascend.files import BROKEN, HINT, cannot_read, open_bytes
from pipeprof.read.ascend.step_trace import Event, Step, add_steps
from pipeprof.read.ascend.values import LARGEST, NS_PER_TICK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_TRACE = struct.Struct("<QHHQ")
_TRACK = struct.Struct("<BBHIQQQHHHH")
_SLICE = re.compile(r"slice_([0-9]+)")
_REPORT = 10
FP, BP, END, BEGIN = 1, 2, 255, 0


class Point(NamedTuple):
    """One record: a tag as in training_trace, its stream and its time in ns."""

    tag: int
    stream: int
    time_ns: int


def read_training_trace(paths: Sequence[Path], out: Out) -> None:
    """Steps and events of one rank from all slices, in the order of the numbers at the end of their names."""
    ordered = sorted(paths, key=_slice)
    points = [point for path in ordered for point in _trace_points(path, out)]
    steps = list(steps_of(points, ordered[0], out))
    add_steps(ordered[0], steps, out, Checks(out.notes))


def read_ts_track(paths: Sequence[Path], out: Out) -> None:
    """As `read_training_trace`, from the newer records. Of several models, that with most steps counts."""
    ordered = sorted(paths, key=_slice)
    by_model: dict[int, list[Point]] = defaultdict(list)
    for path in ordered:
        for model, point in _track_points(path, out):
            by_model[model].append(point)
    if not by_model:
        raise SourceError(f"no step record in `{ordered[0]}`", HINT)
    ends = Counter({model: sum(point.tag == END for point in points) for model, points in by_model.items()})
    model = min(ends, key=lambda number: (-ends[number], number))
    if len(by_model) > 1:
        out.notes.add(
            "models",
            f"`{ordered[0].name}`: {len(by_model)} models, steps of model {model}: cuts between them are unsure",
        )
    points = sorted(by_model[model], key=lambda point: point.time_ns)
    add_steps(ordered[0], list(steps_of(points, ordered[0], out)), out, Checks(out.notes))


def steps_of(points: Iterable[Point], path: Path, out: Out) -> Iterator[Step]:
    """Steps by their points. A step begins where the one before ended; the first at its FP."""
    number, previous = 0, None
    fp = bp = None
    events: dict[int, list[int]] = defaultdict(list)
    for point in points:
        if point.tag == BEGIN or point.tag > END:
            fp, bp, events = None, None, defaultdict(list)
        elif point.tag == FP:
            fp = point.time_ns
        elif point.tag == BP:
            bp = point.time_ns
        elif point.tag != END:
            events[point.stream].append(point.time_ns)
        elif fp is None or point.time_ns < fp:
            out.notes.count(path, "step without a forward point")
        else:
            number += 1
            start = fp if previous is None else previous
            previous = point.time_ns
            yield Step(number, start, max(fp, start), bp, point.time_ns, tuple(_pairs(events, path, out)), number)
            fp, bp, events = None, None, defaultdict(list)


def _pairs(events: dict[int, list[int]], path: Path, out: Out) -> Iterator[Event]:
    for stream, times in sorted(events.items()):
        if len(times) % 2:
            out.notes.count(path, f"step with an odd number of communication points on stream {stream}")
            continue
        for index in range(0, len(times), 2):
            if times[index + 1] >= times[index]:
                yield Event(f"stream_{stream}_parallel_{index // 2}", times[index], times[index + 1])


def _trace_points(path: Path, out: Out) -> Iterator[Point]:
    for tag, _, stream, count in _TRACE.iter_unpack(_whole_records(path, _TRACE.size, out)):
        if count < LARGEST // NS_PER_TICK:
            yield Point(tag, stream, count * NS_PER_TICK)
        else:
            out.notes.count(path, "record with an impossible time")


def _track_points(path: Path, out: Out) -> Iterator[tuple[int, Point]]:
    for _, kind, _, _, count, _, model, stream, _, tag, _ in _TRACK.iter_unpack(_whole_records(path, _TRACK.size, out)):
        if kind != _REPORT or count >= LARGEST // NS_PER_TICK:
            continue
        known = {0: BEGIN, 2: FP, 3: BP, 4: END}.get(tag)
        if known is not None:
            yield model, Point(known, stream, count * NS_PER_TICK)
        elif 10_000 <= tag < 20_000:
            yield model, Point(3 + tag % 2, stream, count * NS_PER_TICK)


def _whole_records(path: Path, size: int, out: Out) -> bytes:
    try:
        with open_bytes(path) as file:
            data = file.read()
    except BROKEN as error:
        raise cannot_read(path, error) from error
    if len(data) % size:
        out.notes.add("ragged", f"`{path.name}`: {len(data) % size} byte(s) at the end are no whole record of {size}")
    return data[: len(data) - len(data) % size]


def _slice(path: Path) -> tuple[int, str]:
    found = _SLICE.search(path.name)
    return (int(found[1]) if found else 0, path.name)
