"""JSON of msprof in a `PROF_*/device_<d>/timeline` folder: steps, tasks on streams, communication, host calls.

Times are us of CLOCK_MONOTONIC_RAW, which `start_info.<d>` relates to the epoch; in newer files they are since the
epoch. An `Iteration` here begins where the model starts, behind the wait for its input. A step begins, as everywhere
else, where the one before ended; the iteration itself is a span.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipeprof.errors import SourceError
from pipeprof.read.ascend.step_trace import FIRST_EPOCH_NS
from pipeprof.read.ascend.trace_view import Event, events, names_of, number_of
from pipeprof.read.mindspore_ops import collective_kind, op_type
from pipeprof.read.source.content import BROKEN, HINT, document, mapping, text
from pipeprof.read.source.numbers import integer, ns, raw_ns
from pipeprof.record.document import BAD_JSON
from pipeprof.record.plain_file import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

_ARGS = msgspec.json.Decoder(float_hook=str)
_OF_MODEL = re.compile(r"step_trace_[0-9]+_([0-9]+)_")  # device, model, and the iteration it was written for
_KERNELS = "Communication Kernel"
_NO_RANK = 2**32 - 1
_ROUNDING_NS = 3
_HEAD_BYTES, _LONGEST = 1 << 16, 64  # that are looked at, and of a time with its name
# Up to what follows the number: the bytes that are looked at may end within it.
_EVENT_TIME = re.compile(rb'"ts"\s*:\s*"?([0-9]{1,20}(?:\.[0-9]{1,12})?)[\s",}]')


class Clock(NamedTuple):
    """The clock of a folder: `epoch` with what must be added to its times, or `raw` when nothing relates the two."""

    name: str
    offset_ns: int


class Iteration(NamedTuple):
    """One iteration in ns of the folder's clock; `begin_ns` is the model's start, `bp_ns` None when it is not said."""

    number: int
    begin_ns: int
    fp_ns: int
    bp_ns: int | None
    end_ns: int


def read_clock(path: Path | None) -> Clock:
    """The clock by `start_info.<d>`; `raw` without one. Raises SourceError for a damaged file."""
    if path is None:
        return Clock("raw", 0)
    said = mapping(document(path))
    begin, raw = ns(text(said.get("collectionTimeBegin")), "us"), integer(text(said.get("clockMonotonicRaw")))
    if begin is None or raw is None or raw <= 0:
        raise SourceError(f"no pair of times in `{path}`, expected collectionTimeBegin and clockMonotonicRaw", HINT)
    return Clock("epoch", begin - raw)


def clock_in(path: Path, clock: Clock) -> Clock:
    """The clock of a file: of newer ones, which need no `start_info`, the wall clock, else that of their folder."""
    try:
        is_wall = min(first_times_in(path), default=0) >= FIRST_EPOCH_NS
    except BROKEN:  # reading it will say so
        return clock
    return Clock("epoch", 0) if is_wall else clock


def first_times_in(path: Path, pattern: re.Pattern[bytes] = _EVENT_TIME, unit: str = "us") -> list[int]:
    """Times, ns, in the first piece of a file that has any: names of processes and threads may come before them."""
    text = b""
    with open_file(path) as file:
        while piece := file.read(_HEAD_BYTES):
            text = text[-_LONGEST:] + piece
            times = [ns(item[1].decode(), unit) for item in pattern.finditer(text)]
            if positive := [time for time in times if time is not None and time > 0]:
                return positive
    return []


class _Model(NamedTuple):
    """Iterations of one model by number, and its reduce events (start, end) by number and name."""

    iterations: dict[int, Iteration]
    reduces: dict[tuple[int, str], tuple[int, int]]


def read_steps(paths: Sequence[Path], out: Out, clock: Clock) -> None:
    """Steps and reduce events from `step_trace_*` files, some of which may be copies: of the model with most."""
    models: dict[str, _Model] = {}
    clock = clock_in(paths[0], clock)
    for path in paths:
        named = _OF_MODEL.match(path.name)
        _read_iterations(path, out, models.setdefault(named[1] if named else "", _Model({}, {})))
    chosen = min(models, key=lambda model: (-len(models[model].iterations), len(model), model))
    if not models[chosen].iterations:
        raise SourceError(f"no iteration in `{paths[0]}`", HINT)
    if len(models) > 1:
        others = ", ".join(sorted(models.keys() - {chosen}))
        out.notes.add(
            "models", f"the steps are those of model {chosen}, which has the most; left out: those of {others}"
        )
    out.steps.source = "msprof"
    previous = None
    for iteration in sorted(models[chosen].iterations.values(), key=lambda one: one.begin_ns):
        previous = _add_step(iteration, previous, out, clock)
    for (number, name), (start, end) in models[chosen].reduces.items():
        out.add(
            "collective", step=out.steps.position(number), name=name, kind="all_reduce",
            start_ns=out.at(start + clock.offset_ns, clock.name), dur_ns=end - start,
        )  # fmt: skip


def _read_iterations(path: Path, out: Out, model: _Model) -> None:
    parts: dict[tuple[int, str], int] = {}
    for event, args in _events(path, out):
        number = integer(text(args.get("Iteration ID")))
        if number is not None and not _take(event, args, number, model, parts):
            out.notes.count(path, "iteration whose model start, FP, BP and end are not in order")
    for iteration in model.iterations.values():
        _check(path, iteration, parts, out)


def _take(event: Event, args: dict[str, Any], number: int, model: _Model, parts: dict[tuple[int, str], int]) -> bool:
    """Use an event of an iteration; False for an iteration that cannot be one."""
    name = str(event.name)
    if event.cat == "Iteration Time":
        begin = raw_ns(bytes(event.ts), "us")
        fp, bp, end = (ns(text(args.get(what)), "us") for what in ("FP Start", "BP End", "Iteration End"))
        if begin is None or fp is None or end is None or not begin <= fp <= (bp or fp) <= end:
            return False
        model.iterations.setdefault(number, Iteration(number, begin, fp, bp or None, end))
    elif event.cat == "Reduce" and name.startswith("Reduce_"):
        index = name.rpartition("_")[2]
        start, end = (ns(text(args.get(f"Reduce {what} {index}")), "us") for what in ("Start", "End"))
        if start is not None and end is not None and 0 < start <= end:
            model.reduces.setdefault((number, name), (start, end))
    for what in ("Iteration Time", "FP_BP Time", "Iteration Refresh"):
        value = ns(text(args.get(f"{what}(ns)")), "ns")
        if value is not None:
            parts[number, what] = value
    return True


def _check(path: Path, one: Iteration, parts: dict[tuple[int, str], int], out: Out) -> None:
    total, *rest = (parts.get((one.number, what)) for what in ("Iteration Time", "FP_BP Time", "Iteration Refresh"))
    if total is not None and None not in rest:
        spent = sum(part or 0 for part in rest) + one.fp_ns - one.begin_ns
        rule = "Iteration Time = FP_BP Time + Iteration Refresh + FP Start - start"
        out.checks.that(abs(spent - total) <= _ROUNDING_NS, path, one.number, rule, f"{total} ns and {spent} ns")


def _add_step(one: Iteration, previous: int | None, out: Out, clock: Clock) -> int:
    start = one.begin_ns if previous is None or previous > one.begin_ns else previous
    begin, fp, end = (time + clock.offset_ns for time in (start, one.fp_ns, one.end_ns))
    bp = None if one.bp_ns is None else one.bp_ns + clock.offset_ns
    out.add_step(one.number, (begin, fp, bp, end), clock.name, in_window=False)
    out.add(
        "span", track="step trace", category="iteration", name=f"Iteration {one.number}",
        start_ns=out.at(one.begin_ns + clock.offset_ns, clock.name), dur_ns=one.end_ns - one.begin_ns,
    )  # fmt: skip
    return one.end_ns


def read_tasks(path: Path, out: Out, clock: Clock) -> None:
    """Tasks on the device's streams, to `op`."""
    clock = clock_in(path, clock)
    for event, args, start, dur in _timed(path, out, clock):
        name = str(event.name)
        stream = integer(text(args.get("Stream Id", args.get("Physic Stream Id"))))  # newer ones call it so
        device = text(args.get("Task Type")) or "NPU"
        out.add(
            "op", op_id=out.operator(name, op_type(name), device[:100]), step=out.steps.at(start, clock.name),
            start_ns=out.at(start, clock.name), dur_ns=dur, self_ns=dur,
            track=None if stream is None else f"stream {stream}",
        )  # fmt: skip


def read_communication(path: Path, out: Out, clock: Clock, *, collectives: bool) -> None:
    """Communication operators, to `collective` when wanted; transfers to `span`, what they moved to `rank_link`."""
    clock = clock_in(path, clock)
    threads = names_of(path).threads
    for event, args, begin, dur in _timed(path, out, clock):
        name = str(event.name)
        track = threads.get((number_of(event.pid), number_of(event.tid)), "plane")
        start, step = out.at(begin, clock.name), out.steps.at(begin, clock.name)
        if track == _KERNELS:
            if collectives:
                out.add(
                    "collective", step=step, name=name, kind=collective_kind(op_type(name)), track=track,
                    start_ns=start, dur_ns=dur,
                )  # fmt: skip
            continue
        out.add("span", track=track[:200], category="hccl", name=name[:1000], start_ns=start, dur_ns=dur)
        moved = integer(text(args.get("size(Byte)")))
        if moved and moved > 0 and dur:
            ends = [integer(text(args.get(what))) for what in ("src rank", "dst rank")]
            src, dst = (None if end in (None, _NO_RANK) else end for end in ends)
            out.add(
                "rank_link", step=step, src_rank=src, dst_rank=dst, transport=text(args.get("transport type")) or None,
                bytes=moved, dur_ns=dur,
            )  # fmt: skip


def read_host(path: Path, out: Out, clock: Clock) -> None:
    """Calls on the host (process CANN) of the merged view, to `span`. The rest of that file is in the others."""
    clock = clock_in(path, clock)
    names = names_of(path)
    for event, _, start, dur in _timed(
        path, out, clock, {pid for pid, name in names.processes.items() if name == "CANN"}
    ):
        track = f"CANN: {names.threads.get((number_of(event.pid), number_of(event.tid)), 'thread')}"
        out.add(
            "span", track=track[:200], category="cann", name=str(event.name)[:1000],
            start_ns=out.at(start, clock.name), dur_ns=dur,
        )  # fmt: skip


def _events(path: Path, out: Out) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Complete events (ph X) with their arguments."""
    for batch in events(path, Event, out.notes):
        for event in batch:
            if event.ph == "X":
                try:
                    yield event, mapping(_ARGS.decode(bytes(event.args) or b"{}"))
                except BAD_JSON as error:
                    raise SourceError(f"damaged event in `{path}`: {error}", HINT) from error


def _timed(
    path: Path, out: Out, clock: Clock, pids: set[object] | None = None
) -> Iterator[tuple[Event, dict[str, Any], int, int]]:
    """Complete events, of some processes or of all, with their arguments, their start on the clock, and duration."""
    for event, args in _events(path, out):
        if pids is not None and number_of(event.pid) not in pids:
            continue
        start, dur = raw_ns(bytes(event.ts), "us"), raw_ns(bytes(event.dur), "us")
        if start is None or dur is None or start < 0 or dur < 0:
            out.notes.count(path, "event without a start and a duration")
        else:
            yield event, args, start + clock.offset_ns, dur
