"""Which file is which, and reading files that may be damaged: JSON, lines, whole numbers."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pipeprof.errors import SourceError
from pipeprof.record.bad_json import BAD_JSON, refuse_many_values
from pipeprof.record.plain_file import open_file
from pipeprof.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST = 1 << 62  # no time, size or number in these files can be as large
LARGEST_MS = LARGEST // NS_PER_MS
JSON_BYTES = 1 << 26
_LINE_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_LOG_BYTES = 1 << 24  # a log's first timing block comes after at most this much of other output

PIPELINE, RAW_CSV, CPU, ITERATOR, DEVICE_QUEUE, AICPU, GETNEXT, LOG = KINDS = (
    "pipeline",
    "pipeline_raw",
    "cpu",
    "iterator",
    "device_queue",
    "aicpu",
    "getnext",
    "log",
)
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
_DIGITS = re.compile(r"-?[0-9]{1,30}")


class Found(NamedTuple):
    """A recognised file. `rank` is None when its name has none (logs)."""

    path: Path
    kind: str
    rank: int | None


class Notes:
    """What was odd, for the user: `add` says it at once, `count` gathers equal oddities of one file into one line."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], None] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, message: str) -> None:
        """Say a thing once."""
        self._said[code, message] = None

    def count(self, path: Path, what: str, times: int = 1) -> None:
        """One more value of this file that was left out, for this reason."""
        if times:
            self._counts[path.name, what] += times

    def all(self) -> list[tuple[str, str]]:
        """(code, message) of everything, in the order it was found; left-out values last."""
        return list(self._said) + [
            ("bad_value", f"`{name}`: {'1 entry was' if times == 1 else f'{times:,} entries were'} left out: {what}")
            for (name, what), times in self._counts.items()
        ]


def identify(path: Path) -> Found | None:
    """What a file is, by its content; None for anything that is not known.

    A file that has a known name but other content is taken for what its name says, so that reading it says what is
    wrong with it. Iterator and device queue files look the same and are told apart by name. Raises SourceError for a
    file that cannot be read.
    """
    name = path.name.removesuffix(".gz")
    named = next((kind for kind, pattern in _NAMES.items() if pattern.fullmatch(name)), None)
    try:
        with _open(path) as file:
            head = file.read(_HEAD_BYTES)
            kind = _by_content(head, name) or named
            if kind is None and b"\0" not in head and _has_blocks(head, file):
                kind = LOG
    except (OSError, EOFError, zlib.error) as error:
        if named is None:
            raise SourceError(f"cannot read `{path}`: {error}") from error
        kind = named
    return None if kind is None else Found(path, kind, _rank(path, kind))


def _rank(path: Path, kind: str) -> int | None:
    found = _RANK.search(path.name)
    return int(found[1]) if found else None if kind == LOG else 0


def _by_content(head: bytes, name: str) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.partition(b"\n")[0]
    if text.startswith(b"{"):
        if b'"time_stamp"' in text or b'"cpu_processor_num"' in text:
            return CPU
        return PIPELINE if b'"op_info"' in text and (b'"num_workers"' in text or b'"output_queue"' in text) else None
    if b"op_id" in first and b"output_queue_size" in first:
        return RAW_CSV
    if _DEVICE_LINE.match(text):
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
        except (OSError, EOFError, zlib.error):
            return False
    return False


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of a file; NaN, Infinity and numbers beyond any float are None.

    Raises SourceError for a file that is empty, cut off, or holds anything else.
    """
    try:
        with _open(path) as file:
            data = file.read(JSON_BYTES + 1)
        if len(data) > JSON_BYTES:
            raise SourceError(f"`{path}` is larger than {JSON_BYTES >> 20} MiB, which no such file is", "remove it")
        if not data.strip():
            raise SourceError(f"`{path}` is empty, expected a JSON object", "restore the file, or remove it")
        refuse_many_values(data)
        content = json.loads(data.decode("utf-8-sig"), parse_constant=lambda _name: None)
    except (OSError, EOFError, zlib.error, ValueError, *BAD_JSON) as error:
        raise SourceError(
            f"cannot read `{path}`: {error}", "the process may have been killed while writing it"
        ) from error
    if not isinstance(content, dict):
        raise SourceError(f"`{path}` holds {type(content).__name__}, expected a JSON object")
    return content


def lines(path: Path, most: int | None = None) -> Iterator[str]:
    """Lines of a text file, one at a time, without their ends (LF or CRLF).

    Raises SourceError for a file that cannot be read, or has more than `most` bytes.
    """
    size = 0
    try:
        with _open(path) as file:
            while line := file.readline(_LINE_BYTES):  # a longer one comes in pieces
                size += len(line)
                if most is not None and size > most:
                    raise SourceError(f"`{path}` is larger than {most >> 20} MiB, which no such file is", "remove it")
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"cannot read `{path}`: {error}", "restore the file, or remove it") from error


def whole(value: object, largest: int = LARGEST) -> int | None:
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


def as_list(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_dict(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _open(path: Path) -> IO[bytes]:
    return open_file(path, packed=path.suffix == ".gz")
