"""What a file that is read may cost at most, and the environment variables that allow more. See docs/limits.md."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pipeprof import processes
from pipeprof.errors import SourceError, UsageError

BYTES, ROWS, SECONDS, MEMORY = (
    "PIPEPROF_MAX_BYTES",
    "PIPEPROF_MAX_ROWS",
    "PIPEPROF_MAX_SECONDS",
    "PIPEPROF_MAX_MEMORY_MIB",
)
SPILL = "PIPEPROF_MAX_SPILL_MIB"
QUERY_SECONDS = "PIPEPROF_MAX_QUERY_SECONDS"
_SECONDS = 3600
_MEMORY_MIB = 512
_KEPT_TIMES = 40  # medians over 64 ranks of 100,000 steps keep 30 to 40 bytes for each that the steps are stored in
_STEP_BYTES = 1 << 10  # six phases of a step that are compared with those of other ranks
_SPILL_MIB = 8192
_QUERY_SECONDS = 300
_LONGEST = 1 << 22  # seconds
_FEW_ROWS, _ROWS_PER_BYTE = 1 << 20, 4
_IMPORTED_ROWS, _KEPT_ROWS = 1 << 28, 1 << 20
_PACKED_FEW, _PACKED_TIMES = 1 << 30, 100
_HOLES_FEW = 1 << 26


class TooManyRows(SourceError):  # noqa: N818 - named as all errors here
    """Files become more rows than a table may have: none of them is left out instead."""


def most_bytes(default: int) -> int:
    """How many bytes of one file are read: the default of its reader, or what the user allows."""
    return _chosen(BYTES) or default


def most_unpacked(packed: int) -> int:
    """How many bytes a compressed file may unpack to: 1 GiB, or 100 times its size. Profiles pack 5 to 30 times."""
    return _chosen(BYTES) or max(_PACKED_FEW, _PACKED_TIMES * packed)


def most_with_holes(stored: int) -> int:
    """How many bytes of a file that is read whole and stores so many: 64 MiB, or 100 times as many as are stored."""
    return _chosen(BYTES) or max(_HOLES_FEW, _PACKED_TIMES * stored)


def most_rows(stored: int) -> int:
    """How many rows the Parquet files of a table may have: 2**20, or 4 for each byte. Ours need bytes for each row."""
    return _chosen(ROWS) or max(_FEW_ROWS, _ROWS_PER_BYTE * stored)


def most_imported_rows(*, in_memory: bool = False) -> int:
    """How many rows of a table a rank's foreign files may become: 2**28, or 2**20 where they are kept in memory."""
    return _chosen(ROWS) or (_KEPT_ROWS if in_memory else _IMPORTED_ROWS)


def refuse_rows(table: str, rows: int, most: int) -> None:
    """Raises TooManyRows when foreign files become more rows of a table than they may."""
    if rows > most:
        raise TooManyRows(f"the files become more than {most:,} rows of the table `{table}`", raised_by(ROWS))


def most_seconds() -> int:
    """How long one file may be read."""
    return _chosen(SECONDS) or _SECONDS


def most_memory() -> int:
    """Bytes that the query engine keeps in memory. An answer may take twice as much."""
    return (_chosen(MEMORY) or _MEMORY_MIB) << 20


def most_memory_for(stored: int, steps: int) -> int:
    """As `most_memory`, for queries of ours on so many steps in so many bytes: at most half of the machine's.

    That is 40 for each byte, or 1 KiB for each step where they are stored in less.

    Processes that share work keep to `most_memory`, each of them.
    """
    if _chosen(MEMORY) or processes.is_one_of_several():
        return most_memory()
    return max(
        most_memory(),
        min(max(_KEPT_TIMES * stored, _STEP_BYTES * min(steps, _ROWS_PER_BYTE * stored)), _machine() // 2),
    )


def _machine() -> int:
    """Bytes of memory of this machine, or of the container that it is."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            most = min(most, int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii")))
    return most


def most_spilled() -> int:
    """Bytes that a query may put into the temporary folder, for want of memory."""
    return (_chosen(SPILL) or _SPILL_MIB) << 20


def most_query_seconds() -> int:
    """How long one query may take. No timer waits for longer than some weeks."""
    return min(_chosen(QUERY_SECONDS) or _QUERY_SECONDS, _LONGEST)


def raised_by(name: str) -> str:
    """The hint of an error about a limit."""
    return f"if the file is yours and meant to be so large, set {name} to allow more"


def _chosen(name: str) -> int:
    """The value of a variable, 0 when it is not set. Raises UsageError for one that is no positive whole number."""
    text = os.environ.get(name, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text)):
        raise UsageError(f"{name} is `{text[:40]}`, expected a whole number above 0", f"unset {name}, or correct it")
    return int(text)
