"""Batches as the dataset recorded them: on the host's side of the queue, and on the device's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.minddata.files import LARGEST_MS, integer
from pipeprof.read.source.content import lines
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record import limits
from pipeprof.units import NS_PER_MS, format_count

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.tables.share import Notes

_DEVICE_LINE = re.compile(r"(\S+)\s+([0-9]{1,30})\s+([0-9]{1,30})\s+(-?[0-9]{1,30})\s*")
_PARTS = ("wait", "push", "batch")


@dataclass(frozen=True)
class FetchRecord:
    """One batch by the dataset's own count from 1: whole ms, times in ns of the monotonic clock."""

    batch: int
    wait_ns: int | None
    push_ns: int | None
    batch_ns: int | None
    t_ns: int | None
    depth: int | None
    capacity: int | None


class DeviceFetch(NamedTuple):
    """One batch taken from the device's queue; `depth` is that of this queue, None when impossible."""

    start_ns: int
    wait_ns: int
    depth: int | None


def read_records(path: Path, notes: Notes) -> list[FetchRecord]:
    """Records of a dataset_iterator_profiling or device_queue_profiling file, by batch.

    Lines are `type extra batch value [time_ms]`. What is ragged (the last line, when the process was killed), negative
    or too large is left out and counted in `notes`. The time of a batch is that of its line of type 1. Raises
    TooManyRows before more are kept than a table may have.
    """
    most = limits.most_imported_rows(in_memory=True)
    batches: dict[int, dict[str, int]] = {}
    ragged = 0
    for line in lines(path):
        fields = [integer(part) for part in line.split()[:5]]
        if not fields:
            continue
        values = [value for value in fields if value is not None]
        if len(values) < max(4, len(fields)) or values[0] not in (0, 1):
            ragged += 1
        elif not 0 <= values[2] <= LARGEST:
            notes.count(path, "impossible batch number")
        else:
            _add_line(path, batches.setdefault(values[2], {}), values, notes)
            limits.refuse_rows("fetch", len(batches), most)
    if ragged:
        bad = format_count(ragged, "line")
        notes.add("ragged", f"`{path.name}`: left out {bad} without four or five whole numbers")
    return [_record(path, batch, entry, notes) for batch, entry in sorted(batches.items()) if entry]


def read_device_side(path: Path, unit_ns: int, notes: Notes) -> list[DeviceFetch]:
    """Lines `GetNext_dequeue_wait start end depth` of a minddata_aicpu (us) or minddata_getnext_profiling (ns) file.

    In time order. Lines of other names are no dequeues and are passed over; where all lines have one name, as those of
    a GPU have, which are named for the operator, each is a dequeue. Raises SourceError when there is none.
    """
    most = limits.most_imported_rows(in_memory=True)
    fetches: list[DeviceFetch] = []
    ragged = 0
    alone = _only_name(path)
    for line in lines(path):
        fields = _DEVICE_LINE.fullmatch(line.strip())
        if fields is None:
            ragged += bool(line.strip())
            continue
        if not fields[1].endswith("dequeue_wait") and fields[1] != alone:
            continue
        start, end, depth = int(fields[2]) * unit_ns, int(fields[3]) * unit_ns, int(fields[4])
        if end < start or end > LARGEST:
            notes.count(path, "dequeue ends before it starts, or at an impossible time")
            continue
        if not 0 <= depth <= LARGEST:
            notes.count(path, "impossible depth of the device's queue")
        fetches.append(DeviceFetch(start, end - start, depth if 0 <= depth <= LARGEST else None))
        limits.refuse_rows("fetch", len(fetches), most)
    if not fetches:
        raise SourceError(
            f"no batch in `{path}`, expected lines `GetNext_dequeue_wait start end depth`",
            "restore the file, or remove it",
        )
    if ragged:
        notes.add("ragged", f"`{path.name}`: left out {format_count(ragged, 'line')} without a dequeue")
    return sorted(fetches)


def _only_name(path: Path) -> str | None:
    """The name that all lines of a file have; None where there are several, or none."""
    name = None
    for line in lines(path):
        fields = _DEVICE_LINE.fullmatch(line.strip())
        if fields is not None:
            if name not in (None, fields[1]):
                return None
            name = fields[1]
    return name


def _add_line(path: Path, entry: dict[str, int], values: list[int], notes: Notes) -> None:
    kind, extra, _, value = values[:4]
    name = "depth" if kind == 1 else _PARTS[extra] if 0 <= extra < 3 else ""
    if not name:
        notes.count(path, "line of an unknown kind")
    elif name in entry:
        notes.count(path, "batch with the same value a second time")
    elif not 0 <= value <= (LARGEST if kind == 1 else LARGEST_MS):
        notes.count(path, f"impossible {'depth' if kind == 1 else 'time'}")
    else:
        entry[name] = value if kind == 1 else value * NS_PER_MS
        if kind == 1:
            entry["capacity"] = extra
    if len(values) > 4:
        if 0 <= values[4] <= LARGEST_MS:
            if kind == 1 or "t" not in entry:
                entry["t"] = values[4] * NS_PER_MS
        else:
            notes.count(path, "impossible time stamp")


def _record(path: Path, batch: int, entry: dict[str, int], notes: Notes) -> FetchRecord:
    depth, capacity = entry.get("depth"), entry.get("capacity")
    if capacity is not None and not 0 <= capacity <= LARGEST:
        notes.count(path, "impossible capacity")
        capacity = None
    if depth is not None and capacity is not None and depth > capacity:
        notes.count(path, "depth above the capacity")
        depth = None
    return FetchRecord(
        batch=batch, wait_ns=entry.get("wait"), push_ns=entry.get("push"), batch_ns=entry.get("batch"),
        t_ns=entry.get("t"), depth=depth, capacity=capacity,
    )  # fmt: skip
