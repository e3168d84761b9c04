"""Which file is which, and reading files that may be damaged: JSON, lines, whole numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.read.source.content import BROKEN, cannot_read, document
from pipeprof.read.source.numbers import LARGEST
from pipeprof.record.plain_file import open_file
from pipeprof.units import NS_PER_MS

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
