"""Timing blocks that MindSpore's dataset prints for every batch (`VLOG_v=10900`), found in any text.

Their wall clock is put onto the monotonic clock of the other files by counting batches.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeprof.read.source.content import lines
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record import limits
from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.read.tables.share import Notes


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


_SLACK = 3  # blocks that may be missing at either end beyond the difference in number
_LOOKED_AT = 256
_CLEARLY = 1_000_000  # ns: the other files' times are whole ms


class Alignment(NamedTuple):
    """`offset_ns` is wall clock minus monotonic clock; `doubtful`: another count of batches fits about as well."""

    offset_ns: int
    doubtful: bool


def align(walls: Sequence[int], stamps: Sequence[int]) -> Alignment:
    """Align the times of timing blocks with those of the batches they were printed for, both in order, none empty.

    Block k was printed for batch k + shift. The shift is the one under which the differences of the two clocks scatter
    least; of several equal ones that which pairs the last block with the last batch, as the first blocks are missing
    more often than the last.
    """
    wall, stamp = np.asarray(walls, dtype=np.int64), np.asarray(stamps, dtype=np.int64)
    surplus = len(stamp) - len(wall)
    places = np.unique(np.linspace(0, len(wall) - 1, _LOOKED_AT).astype(np.int64))
    needed = max(1, min(len(places), len(stamp)) // 2)
    fits: dict[int, tuple[float, float]] = {}
    for shift in range(min(0, surplus) - _SLACK, max(0, surplus) + _SLACK + 1):
        here = places[(places + shift >= 0) & (places + shift < len(stamp))]
        if len(here) < needed:
            continue
        differences = wall[here] - stamp[here + shift]
        middle = float(np.median(differences - differences[0]))
        spread = float(np.median(np.abs(differences - differences[0] - middle)))
        fits[shift] = (spread, float(differences[0]) + middle)
    best = min(spread for spread, _ in fits.values())
    near = [shift for shift, (spread, _) in fits.items() if spread <= best * 1.5 + _CLEARLY / 4]
    chosen = min(near, key=lambda shift: (abs(shift - surplus), fits[shift][0]))
    others = max(abs(fits[shift][1] - fits[chosen][1]) for shift in near)
    counted = surplus == 0 == chosen  # as many blocks as batches: no other count is likely
    return Alignment(_offset(wall, stamp, chosen), others > _CLEARLY and not counted)


def _offset(
    wall: np.ndarray[tuple[int], np.dtype[np.int64]], stamp: np.ndarray[tuple[int], np.dtype[np.int64]], shift: int
) -> int:
    begin, end = max(0, -shift), min(len(wall), len(stamp) - shift)
    differences = np.sort(wall[begin:end] - stamp[begin + shift : end + shift])
    return int(differences[len(differences) // 2])
