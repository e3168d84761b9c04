"""`trace_view.json` of torch_npu and MindSpore: a bare list of Chrome events, times in us since the epoch as text.

A first pass, which decodes next to nothing, finds the names of processes and threads and the steps; the second writes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeprof.read.ascend.columns import nanoseconds
from pipeprof.read.ascend.events import batches, marked
from pipeprof.read.ascend.files import mapping, text
from pipeprof.read.ascend.graph_ops import type_of
from pipeprof.read.ascend.values import collective_kind, duration, ns

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.ascend.events import Event
    from pipeprof.read.ascend.out import Out

CLOCK = "epoch"
_STEP = re.compile(r"ProfilerStep#([0-9]{1,12})")
_LOADER = "enumerate(DataLoader)"
_MARKS = (b'"process_name"', b'"thread_name"', b'"ProfilerStep#', b'"enumerate(DataLoader)')
_CATEGORIES = {"CANN": "cann", "Overlap Analysis": "overlap", "HCCL": "hccl", "Communication": "hccl",
               "Ascend Hardware": "device"}  # fmt: skip
_LEFT_OUT = frozenset(["Scope Layer"])  # merged from what is there
NAME = 1000  # characters of a name of a span


@dataclass
class Names:
    """Names of processes and threads by the text of their numbers; steps (start, end) and loader waits, in ns."""

    processes: dict[bytes, str] = field(default_factory=dict)
    threads: dict[tuple[bytes, bytes], str] = field(default_factory=dict)
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)
    fetches: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Wanted:
    """Which executions are to be taken from here: those that no better file of the rank has."""

    ops: bool = True
    collectives: bool = True
    steps: bool = True


def names_of(path: Path) -> Names:
    """Names and steps of a trace. Damage is not reported here: reading the events does."""
    found = Names()
    for event in marked(path, _MARKS):
        name, pid = event.get("name"), json.dumps(event.get("pid")).encode()
        shown = mapping(event.get("args")).get("name")
        if name == "process_name" and isinstance(shown, str):
            found.processes[pid] = shown
        elif name == "thread_name" and isinstance(shown, str):
            found.threads[pid, json.dumps(event.get("tid")).encode()] = shown
        elif isinstance(name, str) and event.get("ph") == "X":
            _add_interval(name, event, found)
    found.fetches.sort()
    return found


def _add_interval(name: str, event: dict[str, Any], found: Names) -> None:
    start, dur = ns(text(event.get("ts")), "us"), duration(text(event.get("dur")), "us")
    if start is None or dur is None or start < 0:
        return
    step = _STEP.fullmatch(name)
    if step:
        found.steps.setdefault(int(step[1]), (start, start + dur))
    elif name.startswith(_LOADER):
        found.fetches.append((start, start + dur))


def add_steps(names: Names, out: Out) -> None:
    """Steps by their `ProfilerStep#N` on the host. Forward begins when the loop has its batch."""
    if not names.steps:
        return
    out.steps.source = "trace_view"
    for number, (start, end) in sorted(names.steps.items(), key=lambda item: item[1]):
        waits = [fetch for fetch in names.fetches if start <= fetch[0] and fetch[1] <= end]
        handed = waits[-1][1] if waits else None
        position = out.steps.add(number, start, end, CLOCK)
        out.add(
            "step", step=position, kind_step=position, kind="train", start_ns=out.at(start, CLOCK),
            fp_ns=None if handed is None else out.at(handed, CLOCK), end_ns=out.at(end, CLOCK),
            data_wait_ns=None if handed is None else handed - start, fp_source=None if handed is None else "fetch",
            fetch_wait_ns=sum(until - since for since, until in waits) if waits else None, in_window=True,
        )  # fmt: skip


def add_fetches(names: Names, out: Out) -> None:
    """The loop's waits for batches, as its loader recorded them (match by name: the category differs by version)."""
    for number, (start, end) in enumerate(names.fetches):
        out.add(
            "fetch", fetch=number, step=out.steps.at(start, CLOCK), start_ns=out.at(start, CLOCK), wait_ns=end - start,
            side="iterator",
        )  # fmt: skip


class _Spans:
    """Columns of `span` that wait for their times."""

    def __init__(self) -> None:
        self.track: list[str] = []
        self.category: list[str] = []
        self.name: list[str] = []
        self.start: list[bytes] = []
        self.dur: list[bytes] = []


def read_trace(path: Path, names: Names, out: Out, wanted: Wanted) -> dict[str, int]:
    """Spans, and what else is wanted; returns the sums (ns) of Overlap Analysis by name, for the check."""
    sums: dict[str, int] = defaultdict(int)
    labels: dict[tuple[bytes, bytes], tuple[str, str]] = {}
    seen = 0
    for events in batches(path):
        seen += len(events)
        out.progress(f"rank {out.rank}: {path.name}, {seen} events")
        spans = _Spans()
        for event in events:
            if event.ph != "X":
                continue
            key = (bytes(event.pid), bytes(event.tid))
            label = labels.get(key)
            if label is None:
                label = labels[key] = _label(key, names)
            process, track = label
            name = event.name if isinstance(event.name, str) else str(event.name)
            if process in _LEFT_OUT:
                continue
            if process in _SPECIAL and _SPECIAL[process](path, event, name, track, out, wanted):
                continue
            if name.startswith((_LOADER, "ProfilerStep#")):
                continue
            cat = event.cat if isinstance(event.cat, str) and event.cat else process.lower() or "other"
            spans.track.append(track)
            spans.category.append(_CATEGORIES.get(process, cat))
            spans.name.append(name[:NAME])
            spans.start.append(bytes(event.ts).strip(b'"'))
            spans.dur.append(bytes(event.dur).strip(b'"'))
        _write(path, spans, out, sums)
    return dict(sums)


def _label(key: tuple[bytes, bytes], names: Names) -> tuple[str, str]:
    process = names.processes.get(key[0], "")
    thread = names.threads.get(key) or f"thread {key[1].decode('utf-8', 'replace')[:40]}"
    return process, f"{process or 'process ' + key[0].decode('utf-8', 'replace')[:40]}: {thread}"[:200]


def _times(event: Event) -> tuple[int, int] | None:
    start = ns(bytes(event.ts).strip(b'"').decode("utf-8", "replace"), "us")
    dur = duration(bytes(event.dur).strip(b'"').decode("utf-8", "replace"), "us")
    return None if start is None or dur is None or start < 0 else (start, dur)


def _add_device(path: Path, event: Event, name: str, track: str, out: Out, wanted: Wanted) -> bool:
    """A task on the device: an operator, unless kernel_details has them."""
    if not wanted.ops:
        return True
    return _add_op(path, event, name, track, out, "NPU")


def _add_cpu_op(path: Path, event: Event, name: str, track: str, out: Out, wanted: Wanted) -> bool:
    return _add_op(path, event, name, track, out, "CPU") if wanted.ops else True


def _add_op(path: Path, event: Event, name: str, track: str, out: Out, device: str) -> bool:
    times = _times(event)
    if times is None:
        out.notes.count(path, "execution without a start and a duration")
        return True
    start, dur = times
    out.add(
        "op", op_id=out.op_id(name, type_of(name), device), step=out.steps.at(start, CLOCK),
        start_ns=out.at(start, CLOCK), dur_ns=dur, self_ns=dur, track=track.partition(": ")[2],
    )  # fmt: skip
    return True


def _add_collective(path: Path, event: Event, name: str, track: str, out: Out, wanted: Wanted) -> bool:
    """A whole communication operator; the transfers it is made of (planes) are spans."""
    group = track.partition(": ")[2]
    if not (group.startswith(("Group", "Communication")) or name.startswith("hcom_")):
        return False
    times = _times(event)
    if not wanted.collectives:
        return True
    if times is None:
        out.notes.count(path, "communication without a start and a duration")
        return True
    start, dur = times
    out.add(
        "collective", step=out.steps.at(start, CLOCK), name=name, kind=collective_kind(name), group_name=group,
        track=group, start_ns=out.at(start, CLOCK), dur_ns=dur,
    )  # fmt: skip
    return True


_SPECIAL: dict[str, Any] = {
    "Ascend Hardware": _add_device,
    "CPU OP": _add_cpu_op,
    "HCCL": _add_collective,
    "Communication": _add_collective,
}


def _write(path: Path, spans: _Spans, out: Out, sums: dict[str, int]) -> None:
    if not spans.start:
        return
    start, has_start = nanoseconds(pa.array(spans.start, pa.binary()))
    dur, has_dur = nanoseconds(pa.array(spans.dur, pa.binary()))
    good = has_start & has_dur & (start >= 0) & (dur >= 0)
    bad = int((~good).sum())
    if bad:
        out.notes.count(path, "event without a start and a duration", bad)
    if bad == len(good):
        return
    for index, category in enumerate(spans.category):
        if category == "overlap" and good[index]:
            sums[spans.name[index]] += int(dur[index])
    for edge in (start[good].min(), (start[good] + dur[good]).max()):
        out.at(int(edge), CLOCK)
    mask = pa.array(good)
    columns = {
        "track": _texts(spans.track), "category": _texts(spans.category), "name": _texts(spans.name),
        "start_ns": pa.array(start - out.zeros.get(CLOCK, 0)), "dur_ns": pa.array(dur),
    }  # fmt: skip
    out.add_columns("span", {name: column.filter(mask) for name, column in columns.items()}, int(good.sum()))


def _texts(found: list[str]) -> pa.Array:
    try:
        return pa.array(found, pa.string())
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON allows
        return pa.array([text.encode("utf-8", "replace").decode() for text in found], pa.string())
