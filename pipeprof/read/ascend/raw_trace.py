"""Raw step trace as the device wrote it: `training_trace.*.slice_N` (20-byte records), `ts_track*` (40-byte records).

Little-endian. training_trace: tag u64, task u16, stream u16, count u64. Tag 0 or above 255 begins a step, 1 is FP, 2 is
BP, 255 the step's end; others are begin and end of a communication operator in turn; `Framework.host.vm.point` names
their operators. ts_track: mode u8, type u8 (10), size u16, pad u32, count u64, index u64, model u64, stream u16,
task u16, tag u16, pad u16. Tag 0 and 1 are the model's start and end, 2 FP, 3 BP, 4 the iteration's end, 10000 to 19999
communication: even begins, odd ends. Counts are ticks of 10 ns.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeprof.read.ascend.out import NS_PER_TICK, Out
from pipeprof.read.ascend.step_trace import Event, NoStepError, Step, add_steps
from pipeprof.read.source.content import BROKEN, HINT, cannot_read, whole_text
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record.plain_file import open_file
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_TRACE = np.dtype([("tag", "<u8"), ("task", "<u2"), ("stream", "<u2"), ("count", "<u8")])
_TRACK = np.dtype([
    ("mode", "u1"), ("type", "u1"), ("size", "<u2"), ("pad", "<u4"), ("count", "<u8"), ("index", "<u8"),
    ("model", "<u8"), ("stream", "<u2"), ("task", "<u2"), ("tag", "<u2"), ("end", "<u2"),
])  # fmt: skip
_RECORDS = 1 << 16  # that are read at once
MOST_RECORDS = 8_000_000  # of ts_track, which is sorted as a whole
MOST_MODELS = 10_000
_SLICE = re.compile(r"slice_([0-9]+)")
_POINT = re.compile(r"([0-9]{1,9})\s+(\S.{0,3999})")
_REPORT = 10
_ITERATION_END = 4
_TRACK_FP = 2
# Tag -> that of training_trace.
_TRACK_TAGS = {0: 0, _TRACK_FP: 1, 3: 2, 4: 255, **{tag: 3 + tag % 2 for tag in range(10_000, 20_000)}}
FP, BP, END, BEGIN = 1, 2, 255, 0


class Point(NamedTuple):
    """One record: a tag as in training_trace, its stream and its time in ns."""

    tag: int
    stream: int
    time_ns: int


def point_names(paths: Sequence[Path]) -> dict[int, str]:
    """Operators by the tag of their point, from `Framework.host.vm.point`: 1 is FP, 2 is BP."""
    names: dict[int, str] = {}
    for path in sorted(paths, key=_slice):
        lines = whole_text(path, 1 << 24).splitlines()
        names |= {int(match[1]): match[2].strip() for line in lines if (match := _POINT.fullmatch(line.strip()))}
    return names


def read_training_trace(paths: Sequence[Path], names: Mapping[int, str], out: Out) -> None:
    """Steps and events of one rank from all slices, in the order of the numbers at the end of their names."""
    ordered = sorted(paths, key=_slice)
    points = (point for path in ordered for point in _trace_points(path, out))
    add_steps(ordered[0], steps_of(points, ordered[0], names, out), out)


def read_ts_track(paths: Sequence[Path], out: Out) -> None:
    """As `read_training_trace`, from the newer records. Of several models, that with the most steps counts."""
    ordered = sorted(paths, key=_slice)
    ends: Counter[int] = Counter()
    for records in _track_records(ordered, out):
        for model in np.unique(records["model"]):
            if int(model) in ends or len(ends) < MOST_MODELS:
                ends[int(model)] += int(np.count_nonzero(records["tag"][records["model"] == model] == _ITERATION_END))
    if not ends:
        raise NoStepError(f"no step record in `{ordered[0]}`", HINT)
    model = min(ends, key=lambda number: (-ends[number], number))
    if len(ends) > 1:
        out.notes.add(
            "models",
            f"`{ordered[0].name}`: it holds {len(ends)} models; the steps are those of model {model}, and where they "
            "begin is not certain",
        )
    points = _sorted_points([records[records["model"] == model] for records in _track_records(ordered, None)])
    add_steps(ordered[0], steps_of(points, ordered[0], {}, out), out)


def forward_times(path: Path, kind: str) -> list[int]:
    """Times in ns of forward points among the first records of a `training_trace` or `ts_track` file."""
    form, tag = (_TRACE, FP) if kind == "training_trace" else (_TRACK, _TRACK_FP)
    for records in _records(path, form, None):
        chosen = (records["tag"] == tag) & (records["count"] < LARGEST // NS_PER_TICK)
        chosen &= form is _TRACE or records["type"] == _REPORT
        return [count * NS_PER_TICK for count in records["count"][chosen].tolist()]
    return []


def steps_of(points: Iterable[Point], path: Path, names: Mapping[int, str], out: Out) -> Iterator[Step]:
    """Steps by their points. A step begins where the one before ended; the first, and one behind a gap, at its FP."""
    number, previous = 0, None
    fp = bp = None
    events: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for point in points:
        if point.tag == BEGIN or point.tag > END:
            if fp is not None or bp is not None or events:
                out.notes.count(path, "step without an end")
                previous = None
            fp, bp, events = None, None, defaultdict(list)
        elif point.tag == FP:
            fp = point.time_ns
        elif point.tag == BP:
            bp = point.time_ns
        elif point.tag != END:
            events[point.stream].append((point.tag, point.time_ns))
        else:
            number += 1
            start, end = (fp if previous is None else previous), point.time_ns
            if fp is None or start is None or not start <= end or end < fp:
                out.notes.count(path, "step without a forward point before its end")
            else:
                pairs = tuple(_pairs(events, names, path, out))
                yield Step(number, start, max(fp, start), bp if bp is None or bp >= fp else None, end, pairs, number)
            previous = end
            fp, bp, events = None, None, defaultdict(list)


def _pairs(
    events: dict[int, list[tuple[int, int]]], names: Mapping[int, str], path: Path, out: Out
) -> Iterator[Event]:  # fmt: skip
    for stream, points in sorted(events.items()):
        if len(points) % 2:
            out.odd(path, "step with an odd number of communication points on a stream", f"stream {stream}")
            continue
        for index in range(0, len(points), 2):
            (tag, begin), (_, end) = points[index], points[index + 1]
            name = names.get(tag, "").rpartition("/")[2]
            column = f"stream_{stream}_{index // 2}_{name}" if name else f"stream_{stream}_parallel_{index // 2}"
            if end >= begin:
                yield Event(column, begin, end)
            else:
                out.notes.count(path, "communication operator that ends before it begins")


def _trace_points(path: Path, out: Out) -> Iterator[Point]:
    for records in _records(path, _TRACE, out):
        good = records["count"] < LARGEST // NS_PER_TICK
        if not good.all():
            out.notes.count(path, "record with an impossible time", int((~good).sum()))
        yield from _points(records[good])


def _points(records: NDArray[Any], tags: Mapping[int, int] | None = None) -> Iterator[Point]:
    """Records whose tag has a meaning: by `tags`, or as it is."""
    for tag, stream, count in zip(*(records[name].tolist() for name in ("tag", "stream", "count")), strict=True):
        if tags is None or tag in tags:
            yield Point(tag if tags is None else tags[tag], stream, count * NS_PER_TICK)


def _track_records(paths: Sequence[Path], out: Out | None) -> Iterator[NDArray[Any]]:
    """Records of steps, of at most `MOST_RECORDS`."""
    seen = 0
    for path in paths:
        for records in _records(path, _TRACK, out):
            chosen = records[(records["type"] == _REPORT) & (records["count"] < LARGEST // NS_PER_TICK)]
            room = MOST_RECORDS - seen
            seen += len(chosen)
            if len(chosen) > room and out is not None:
                out.notes.add(
                    "records", f"`{path.name}`: more than {MOST_RECORDS} records, the later ones are left out"
                )
            yield chosen[: max(0, room)]


def _sorted_points(parts: Sequence[NDArray[Any]]) -> Iterator[Point]:
    records = np.concatenate(parts)
    for begin in range(0, len(order := np.argsort(records["count"], kind="stable")), _RECORDS):
        yield from _points(records[order[begin : begin + _RECORDS]], _TRACK_TAGS)


def _records(path: Path, kind: np.dtype[Any], out: Out | None) -> Iterator[NDArray[Any]]:
    """Whole records, some thousands at a time; says what is left at the end."""
    rest = b""
    try:
        with open_file(path) as file:
            while data := file.read(_RECORDS * kind.itemsize):
                data, rest = rest + data, b""
                complete = len(data) - len(data) % kind.itemsize
                rest = data[complete:]
                yield np.frombuffer(data[:complete], kind)
    except BROKEN as error:
        raise cannot_read(path, error) from error
    if rest and out is not None:
        size = f"{format_count(len(rest), 'byte')} of a record of {kind.itemsize}"
        out.notes.add("ragged", f"`{path.name}` is cut off: it ends with {size}")


def _slice(path: Path) -> tuple[int, str]:
    match = _SLICE.search(path.name)
    return (int(match[1]) if match else 0, path.name)
