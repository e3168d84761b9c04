"""Step trace of MindSpore on a GPU: `step_trace_profiling_<r>.txt`, of which there are two kinds.

One line per point (FP, BP, iteration end, then communication operators): its name, then `start,end` per step in 10 ns.
Or, where kernels are launched asynchronously, one line per step: `name,ns` of its start, FP, BP and end, then
`name,start,end` of every communication operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.ascend.step_trace import Event, Step, add_steps
from pipeprof.read.ascend.values import ticks
from pipeprof.read.source.content import HINT, whole_text
from pipeprof.read.source.numbers import integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeprof.read.ascend.out import Out

    Points = dict[str, str]

_TEXT_BYTES = 1 << 26  # of a file, which is read whole


def read_gpu_steps(path: Path, out: Out) -> Points:
    """Steps and communication events of one rank; returns FP and BP of the first step."""
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
