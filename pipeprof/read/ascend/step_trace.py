"""Step trace of graph mode: MindInsight's CSV of it, the rows that the raw binary gives, and that of a GPU.

Every value of the CSV is in ticks of 10 ns of the device's counter. The average row at the end is never used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.ascend.out import NS_PER_TICK, Out, ticks
from pipeprof.read.mindspore_ops import collective_kind
from pipeprof.read.source.content import HINT, whole_text
from pipeprof.read.source.numbers import integer
from pipeprof.read.source.sheet import Sheet, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Points = dict[str, str]

COUNTER, EPOCH = "counter", "epoch"
FIRST_EPOCH_NS = 10**18  # a counter that began with the device would need 31 years to get there
_TEXT_BYTES = 1 << 26  # of the file of a GPU, which is read whole
_EVENT = re.compile(r"stream_(ops|[0-9]+)_(?:parallel_[0-9]+|[0-9]+(?:_(?P<op>.+))?)")


class NoStepError(SourceError):
    """Nothing in a file is a step."""


class Event(NamedTuple):
    """One communication event of a step, ns; `column` is its name in the header."""

    column: str
    start_ns: int
    end_ns: int


class Step(NamedTuple):
    """One step, ns of the device's counter. `bp_ns` is None in inference; `line` is where it stands in its file."""

    number: int
    start_ns: int
    fp_ns: int
    bp_ns: int | None
    end_ns: int
    events: tuple[Event, ...]
    line: int


def clock_of(time_ns: int) -> str:
    """The clock of a step trace: the device's counter, or the wall clock (on a GPU)."""
    return EPOCH if time_ns >= FIRST_EPOCH_NS else COUNTER


def add_steps(path: Path, steps: Iterable[Step], out: Out, *, joined: bool = True) -> None:
    """Write steps in their order, each of which begins where the one before ended, when they are to be `joined`.

    Raises NoStepError when there is none.
    """
    previous: Step | None = None
    clock = COUNTER
    for step in steps:
        if previous is None:
            out.steps.source = "step_trace"
            clock = clock_of(step.start_ns)
        if previous is not None and joined:
            shown = f"{_ticks(step.start_ns)} after {_ticks(previous.end_ns)}"
            out.checks.that(
                step.start_ns == previous.end_ns, path, step.line, "start is the previous step's end", shown
            )
        _add_step(step, clock, out)
        previous = step
    if previous is None:
        raise NoStepError(f"no step in `{path}`, expected one row for each", HINT)


def _add_step(step: Step, clock: str, out: Out) -> None:
    times = (step.start_ns, step.fp_ns, step.bp_ns, step.end_ns)
    position = out.add_step(step.number, times, clock, in_window=False)
    for event in step.events:
        match = _EVENT.fullmatch(event.column)
        name = (match and match["op"]) or event.column
        out.add(
            "collective", step=position, name=name, kind=collective_kind(name) if match and match["op"] else None,
            track=f"stream {match[1]}" if match else None, start_ns=out.at(event.start_ns, clock),
            dur_ns=event.end_ns - event.start_ns,
        )  # fmt: skip


def read_steps(path: Path, out: Out) -> Iterator[Step]:
    """Steps and communication events of one rank from `step_trace_raw_<r>_detail_time.csv`."""
    sheet = Sheet(path)
    at = _layout(sheet)
    ended = False
    for line, row in sheet.rows():
        number = integer(row[at["step_num"]])
        if number is None or number <= 0:
            ended = ended or row[at["step_num"]].strip() in ("-", "0")
            if not ended:
                out.notes.count(path, "row without a step number")
            continue
        if ended:
            out.notes.count(path, "row after the average row")
            continue
        step = _step(number, line, row, at, path, out)
        if step is None:
            out.notes.count(path, "step without a start and an end in this order")
        else:
            yield step
    if not ended:
        out.notes.add("no_average", f"`{path.name}` has no average row at its end: it may have been cut off")


def _layout(sheet: Sheet) -> dict[str, Any]:
    """Where the columns are: each by its name, `parts` of the total, and `events`."""
    at: dict[str, Any] = {
        name: sheet.need(name) for name in ("step_num", "start_point", "fp_point", "end_point", "total")
    }
    parts = (sheet.index("iteration_interval"), sheet.index("fp_and_bp", "fp"), sheet.index("tail"))
    events = []
    for index, name in enumerate(sheet.names):
        base = name.removesuffix("_start_point")
        end = sheet.index(f"{base}_end_point")
        if base != name and base and end is not None:
            events.append((base, index, end, sheet.index(base)))
    return at | {"bp_point": sheet.index("bp_point"), "parts": parts, "events": events}


def _step(number: int, line: int, row: list[str], at: dict[str, Any], path: Path, out: Out) -> Step | None:
    start, end = ticks(row[at["start_point"]]), ticks(row[at["end_point"]])
    fp = ticks(row[at["fp_point"]])
    bp = ticks(field(row, at["bp_point"])) or None
    if start is None or end is None or fp is None or end < start:
        return None
    _check_parts(line, row, at, path, out)
    ordered = start <= fp <= (fp if bp is None else bp) <= end
    shown = ", ".join(str(_ticks(value)) for value in (start, fp, bp, end) if value is not None)
    if not out.checks.that(ordered, path, line, "start <= fp <= bp <= end", shown):
        fp, bp = (min(max(fp, start), end), None)
    return Step(number, start, fp, bp, end, tuple(_events(line, row, at, path, out, end)), line)


def _check_parts(line: int, row: list[str], at: dict[str, Any], path: Path, out: Out) -> None:
    total = integer(row[at["total"]])
    parts = [integer(field(row, index)) for index in at["parts"] if index is not None]
    numbers = [part for part in parts if part is not None]
    if total is not None and len(numbers) == len(parts):
        shown = f"{total} and {' + '.join(map(str, numbers))} = {sum(numbers)}"
        out.checks.that(total == sum(numbers), path, line, "total = iteration_interval + fp_and_bp + tail", shown)


def _events(
    line: int, row: list[str], at: dict[str, Any], path: Path, out: Out, step_end: int
) -> Iterator[Event]:  # fmt: skip
    for column, start_at, end_at, dur_at in at["events"]:
        start, end = ticks(row[start_at]), ticks(row[end_at])
        if not start or not end:  # stored as 0,0,0, or beyond the end of a short row: not in this step
            continue
        dur = integer(field(row, dur_at))
        shown = f"{column}: {dur}, {_ticks(start)} to {_ticks(end)}"
        out.checks.that(
            dur is None or dur == _ticks(end - start), path, line, "an event's duration is end - start", shown
        )
        if end >= start:
            shown = f"{column}: {_ticks(end)} > {_ticks(step_end)}"
            out.checks.that(end <= step_end, path, line, "no event ends after its step's end", shown)
            yield Event(column, start, end)


def _ticks(value_ns: int) -> int:
    return value_ns // NS_PER_TICK


def read_gpu_steps(path: Path, out: Out) -> Points:
    """Steps and communication events of a rank from `step_trace_profiling_<r>.txt`; returns FP and BP of the first.

    One line per point (FP, BP, iteration end, then communication operators): its name, then `start,end` per step in
    10 ns. Or, where kernels are launched asynchronously, one line per step: `name,ns` of its start, FP, BP and end,
    then `name,start,end` of every communication operator.
    """
    lines = [line.split() for line in whole_text(path, _TEXT_BYTES).splitlines() if line.strip()]
    by_step = bool(lines) and "," in lines[0][0]
    if by_step:
        steps = list(_steps_of_lines(path, lines, out))
        names = [item.split(",")[0] for item in lines[0][1:3]]
    else:
        steps = list(_steps_of_points(path, lines))
        names = [line[0] for line in lines[:2]]
    add_steps(path, steps, out, joined=not by_step)
    return dict(zip(("fp_start", "bp_end"), names, strict=False))


def _steps_of_points(path: Path, lines: list[list[str]]) -> Iterator[Step]:
    """A step begins where the one before ended; the first at its FP."""
    points = [[_pair(item) for item in line[1:]] for line in lines]
    lengths = {len(line) for line in points}
    if len(points) < 3 or len(lengths) != 1:
        raise SourceError(
            f"`{path}` has {len(points)} lines of {', '.join(map(str, sorted(lengths)[:5]))} steps, "
            "expected FP, BP, iteration end and communication, each with every step",
            HINT,
        )
    previous = None
    for number, (fp, bp, end, *others) in enumerate(zip(*points, strict=True), 1):
        if fp is None or bp is None or end is None:
            raise SourceError(f"step {number} of `{path}` is not `start,end` in whole numbers", HINT)
        start = fp[0] if previous is None else previous
        previous = end[1]
        events = [
            Event(f"stream_ops_{index}_{lines[index + 3][0].rpartition('/')[2]}", *pair)
            for index, pair in enumerate(others)
            if pair is not None and 0 < pair[0] <= pair[1]
        ]
        yield Step(number, start, fp[0], bp[1], end[1], tuple(events), number)


def _pair(text: str) -> tuple[int, int] | None:
    start, _, end = text.partition(",")
    first, last = ticks(start), ticks(end)
    return None if first is None or last is None else (first, last)


def _steps_of_lines(path: Path, lines: list[list[str]], out: Out) -> Iterator[Step]:
    for number, line in enumerate(lines, 1):
        times = [integer(item.rpartition(",")[2]) for item in line[:4]]
        if len(times) < 4 or None in times or times != sorted(times, key=lambda time: time or 0):
            out.notes.count(path, "step without start, FP, BP and end in this order")
            continue
        start, fp, bp, end = (time or 0 for time in times)
        events = []
        for index, item in enumerate(line[4:]):
            name, first, last = [*item.rsplit(",", 2), "", ""][:3]
            begin, stop = integer(first), integer(last)
            if begin is not None and stop is not None and 0 < begin <= stop:
                events.append(Event(f"stream_ops_{index}_{name.rpartition('/')[2]}", begin, stop))
        yield Step(number, start, fp, bp, end, tuple(events), number)
