"""Which file is which, and reading files that may be damaged: JSON, lines, whole numbers.

Timing blocks that MindSpore's dataset prints for every batch (`VLOG_v=10900`), found in any text.

Their wall clock is put onto the monotonic clock of the other files by counting batches.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeprof.errors import SourceError
from pipeprof.read.source.content import BROKEN, cannot_read, document, lines
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record import limits
from pipeprof.record.plain_file import open_file
from pipeprof.units import NS_PER_MS, ns_from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.read.tables.share import Notes


LARGEST_MS = LARGEST // NS_PER_MS
JSON_BYTES = 1 << 26
_HEAD_BYTES = 1 << 16
_LOG_BYTES = 1 << 24  # a log's first timing block comes after at most this much of other output

PIPELINE, RAW_CSV, CPU, ITERATOR, DEVICE_QUEUE = "pipeline", "pipeline_raw", "cpu", "iterator", "device_queue"
AICPU, GETNEXT, LOG = "aicpu", "getnext", "log"
_NAMES = {
    PIPELINE: re.compile(r"pipeline_profiling(_\d+)?\.json"),
    RAW_CSV: re.compile(r"minddata_pipeline_raw(_\d+)?\.csv"),
    CPU: re.compile(r"minddata_cpu_utilization(_\d+)?\.json"),
    ITERATOR: re.compile(r"dataset_iterator_profiling(_\d+)?\.txt"),
    DEVICE_QUEUE: re.compile(r"device_queue_profiling(_\d+)?\.txt"),
    AICPU: re.compile(r"minddata_aicpu(_\d+)?\.txt"),
    GETNEXT: re.compile(r"minddata_getnext_profiling(_\d+)?\.txt"),
}
_RANK = re.compile(r"_([0-9]{1,6})\.\w+(?:\.gz)?")
_QUEUE_LINE = re.compile(rb"[01](?:[ \t]+-?[0-9]+){3,4}[ \t\r]*(?:\n|$)")
_DEVICE_LINE = re.compile(rb"\S*dequeue_wait[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+-?[0-9]+")
_NAMED_LINE = re.compile(rb"[A-Za-z_][^\s]*[ \t]+[0-9]{1,30}[ \t]+[0-9]{1,30}[ \t]+-?[0-9]+")  # of a GPU: its operator
_DIGITS = re.compile(r"-?[0-9]{1,30}")


class SourceFile(NamedTuple):
    """A recognised file. `rank` is None when its name has none (logs)."""

    path: Path
    kind: str
    rank: int | None


def identify(path: Path) -> SourceFile | None:
    """What a file is, by its content; None for anything that is not known.

    A file that has a known name but other content is taken for what its name says, so that reading it says what is
    wrong with it. Iterator and device queue files look the same and are told apart by name. Raises SourceError for a
    file that cannot be read.
    """
    name = path.name.removesuffix(".gz")
    named = next((kind for kind, pattern in _NAMES.items() if pattern.fullmatch(name)), None)
    try:
        with open_file(path) as file:
            head = file.read(_HEAD_BYTES)
            kind = _by_content(head, name) or named
            if kind is None and b"\0" not in head and _has_blocks(head, file):
                kind = LOG
    except BROKEN as error:
        if named is None:
            raise cannot_read(path, error) from error
        kind = named
    return None if kind is None else SourceFile(path, kind, _rank(path, kind))


def _rank(path: Path, kind: str) -> int | None:
    match = _RANK.search(path.name)
    return int(match[1]) if match else None if kind == LOG else 0


def _by_content(head: bytes, name: str) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.partition(b"\n")[0]
    if text.startswith(b"{"):
        if b'"time_stamp"' in text or b'"cpu_processor_num"' in text:
            return CPU
        return PIPELINE if b'"op_info"' in text and (b'"num_workers"' in text or b'"output_queue"' in text) else None
    if b"op_id" in first and b"output_queue_size" in first:
        return RAW_CSV
    if _DEVICE_LINE.match(text) or ("getnext" in name and _NAMED_LINE.match(text)):
        return GETNEXT if "getnext" in name else AICPU if "aicpu" in name else None
    if _QUEUE_LINE.match(text):
        return DEVICE_QUEUE if "device_queue" in name else ITERATOR if "iterator" in name else None
    return None


def _has_blocks(head: bytes, file: IO[bytes]) -> bool:
    """Whether it is a log; one that is cut off before its first block is none, and may be another reader's file."""
    seen, tail, chunk = 0, b"", head
    while chunk and seen < _LOG_BYTES:
        if b"[PROF Dataset]" in tail + chunk:
            return True
        seen, tail = seen + len(chunk), chunk[-32:]
        try:
            chunk = file.read(_HEAD_BYTES)
        except BROKEN:
            return False
    return False


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of a file; NaN and Infinity are None. Raises SourceError as `document`, and for anything else."""
    content = document(path, JSON_BYTES, float)
    if not isinstance(content, dict):
        raise SourceError(f"`{path}` holds {type(content).__name__}, expected a JSON object")
    return content


def whole_number(value: object, largest: int = LARGEST) -> int | None:
    """A number that is whole and between 0 and `largest`; None for anything else."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= largest else None


def integer(text: str) -> int | None:
    """As `int`, for at most 30 decimal digits; None for anything else."""
    return int(text) if _DIGITS.fullmatch(text) else None


def ratio(value: object) -> float | None:
    """Percent as a ratio; None for anything that is not a number from 0 to a million."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1_000_000:
        return None
    return value / 100


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
