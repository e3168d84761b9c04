"""Timing blocks that MindSpore's dataset prints for every batch (`VLOG_v=10900`), found in any text."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pipeprof.read.source.content import lines
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record import limits
from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.source.notes import Notes

MARK = "[PROF Dataset]"
EXTRAS = ("throughput_time", "push_device_time")
_HEADER = re.compile(
    r"\[V10900\] *\w+\(([0-9]{1,10}),[^,()]*,[^()]*\):"
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]{2}:[0-9]{2}:[0-9]{2})\.([0-9]{3})\.([0-9]{3})"
)
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_OP = re.compile(
    rf"-- (\w+)\(ID:([0-9]{{1,9}})\)\s*: worker_time \(avg: ?{_NUMBER}ms, max: ?(?:{_NUMBER}ms|/), "
    rf"min: ?(?:{_NUMBER}ms|/), count: ?([0-9]{{1,12}})\)(?:, io_time \(avg: ?{_NUMBER}ms)?"
)
_EXTRA = re.compile(rf"({'|'.join(EXTRAS)})\b[^0-9]{{0,12}}{_NUMBER} ?ms")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_LEGEND = "worker_time:"
_REACH = 50  # lines of other output that may stand between a block's parts


class OpTime(NamedTuple):
    """One operator in one block, ns; None where the block says `/` or nothing."""

    op_id: int
    op_type: str
    avg_ns: int
    max_ns: int | None
    min_ns: int | None
    rows: int
    io_ns: int | None


@dataclass
class Block:
    """What was printed for one batch. `wall_ns`: the wall clock, of an unknown zone, when the batch was handed over."""

    pid: int
    wall_ns: int
    ops: list[OpTime] = field(default_factory=list)
    extras: dict[str, int] = field(default_factory=dict)


def read_blocks(path: Path, notes: Notes) -> list[Block]:
    """The blocks of a log in its order. Lines of other output between and inside them are passed over.

    A block without a time stamp, without operators, or with an operator twice (two processes wrote over each other)
    is left out and counted in `notes`. Raises TooManyRows when they are more
    than a table may have.
    """
    blocks: list[Block] = []
    header: tuple[int, int] | None = None
    block: Block | None = None
    since = rows = 0
    most = limits.most_imported_rows(in_memory=True)
    for line in lines(path):
        stamp = _HEADER.search(line)
        if stamp:
            _close(path, block, blocks, notes)
            header, block, since = _stamp(stamp), None, 0
        since += 1
        if MARK in line:
            _close(path, block, blocks, notes)
            if header is None:
                notes.count(path, "timing block without a time stamp")
            block = Block(*header) if header else None
            header, since = None, 0
        if block is not None:
            rows += _add_line(block, line)
            limits.refuse_rows("op_service", rows, most)
            if since > _REACH:
                _close(path, block, blocks, notes)
                block = None
    _close(path, block, blocks, notes)
    return blocks


def _close(path: Path, block: Block | None, blocks: list[Block], notes: Notes) -> None:
    if block is None:
        return
    numbers = [op.op_id for op in block.ops]
    if not numbers:
        notes.count(path, "timing block without operators")
    elif len(set(numbers)) < len(numbers):
        notes.count(path, "timing block with an operator twice")
    else:
        blocks.append(block)


def _add_line(block: Block, line: str) -> int:
    """Add what a line says; the number of operators in it, of which a terminal may join several."""
    before = len(block.ops)
    for fields in _OP.finditer(line):
        kind, number, average, largest, smallest, rows, reading = fields.groups()
        most, least, io = (None if text is None else ns_from_text(text, "ms") for text in (largest, smallest, reading))
        block.ops.append(OpTime(int(number), kind, ns_from_text(average, "ms"), most, least, int(rows), io))
    if len(block.ops) == before and not line.startswith(_LEGEND):
        for name, value in _EXTRA.findall(line):
            block.extras.setdefault(name, ns_from_text(value, "ms"))
    return len(block.ops) - before


def _stamp(match: re.Match[str]) -> tuple[int, int] | None:
    pid, day, time, milli, micro = match.groups()
    try:
        at = dt.datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=dt.timezone.utc)
    except ValueError:
        return None
    seconds = (at - _EPOCH) // dt.timedelta(seconds=1)
    wall = (seconds * 1_000_000 + int(milli) * 1_000 + int(micro)) * 1_000
    return (int(pid), wall) if 0 <= wall <= LARGEST else None
