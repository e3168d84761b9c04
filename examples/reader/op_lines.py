"""An example of a reader: logs with one JSON line per operator, or per step, of each rank.

{"op": "Conv2D", "name": "net/conv1", "start_us": "1.5", "dur_us": "30.25", "step": 0}
{"step": 0, "start_us": "0", "dur_us": "400"}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeprof.read.source.content import json_lines, lines
from pipeprof.read.source.numbers import duration, ns
from pipeprof.read.tables import ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Outcome, RankTables, Share
    from pipeprof.record.run import Run

KIND = "op-lines"
WHAT = "logs with one JSON line per operator"
_MISSING = {"op": "no line is an operator", "step": "no line is a step", "queue": "operators have no queues"}


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line. Times are decimal text: they become nanoseconds without a float between."""

    start_us: str
    dur_us: str
    step: int | None = None
    op: str | None = None
    name: str | None = None


def recognise(path: Path) -> bool:
    """Whether the first line is one of these. Raises SourceError when the file cannot be read."""
    first = next(lines(path), "")
    return '"start_us"' in first and '"dur_us"' in first


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the logs of all ranks into a run."""
    ranks.add_files(__name__, paths, run, progress, _begins, _MISSING)


def read_rank(share: Share, run: Run, progress: Callable[[str], None]) -> Outcome:
    """Read the logs of one rank, perhaps in a process of its own."""
    return ranks.read_files(share, run, progress, _read_file)


def _begins(path: Path) -> int | None:
    return next((ns(line.start_us, "us") for _, line in json_lines(path, Line) if line is not None), None)


def _read_file(path: Path, out: RankTables) -> None:
    for number, line in json_lines(path, Line):
        start, dur = (ns(line.start_us, "us"), duration(line.dur_us, "us")) if line else (None, None)
        if line is None or start is None or dur is None:
            out.odd(path, "line that is no operator and no step", f"line {number}")
            continue
        begin, end = out.at(start, ranks.CLOCK), out.at(start + dur, ranks.CLOCK)
        if line.op is not None:
            op_id = out.op_id(line.name or line.op, None, type=line.op)
            out.add("op", op_id=op_id, step=line.step, start_ns=begin, dur_ns=dur, self_ns=dur)
        elif line.step is not None:
            out.add("step", step=line.step, kind_step=line.step, kind="train", start_ns=begin, end_ns=end)
