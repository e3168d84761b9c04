"""Files of MindSpore's CPU op recorder (folder FRAMEWORK): executions, launches and pool memory, as written.

Starts are ns since the epoch, durations decimal ms with six significant digits, converted without a float.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.source.content import lines
from pipeprof.units import ns_from_text

if TYPE_CHECKING:
    from pathlib import Path


_LARGEST = 1 << 61  # no time or size in these files can be larger
_LONGEST = 1 << 26  # characters of a line


@dataclass(frozen=True)
class Execution:
    """One execution: full operator name, start (ns since the epoch), duration (ns), type and input shapes as text.

    `type` and `shapes` are None where the launch list has no such line.
    """

    name: str
    start_ns: int
    dur_ns: int
    type: str | None = None
    shapes: str | None = None


@dataclass(frozen=True)
class PoolSample:
    """Framework memory pool at one time (ns since the epoch), bytes."""

    t_ns: int
    allocated: int
    reserved: int
    active: int


def read_folder(folder: Path) -> tuple[list[Execution], list[PoolSample]]:
    """Executions in order of start, and pool samples in order of time, of all ranks' files in a folder.

    Both are empty when the folder has no such files. Raises SourceError for a damaged file.
    """
    executions: list[Execution] = []
    pool: list[PoolSample] = []
    for path in sorted(folder.glob("cpu_op_execute_timestamp_*.txt")):
        rank = path.stem.rpartition("_")[2]
        executions += _with_launches(read_executions(path), folder / f"cpu_framework_{rank}.txt")
    for path in sorted(folder.glob("cpu_ms_memory_record_*.txt")):
        pool += read_pool(path)
    return executions, sorted(pool, key=lambda sample: sample.t_ns)


def read_executions(path: Path) -> list[Execution]:
    """Executions of one cpu_op_execute_timestamp file, in order of start."""
    found = []
    for number, line in enumerate(lines(path, piece=_LONGEST), 1):
        if not line.strip():
            continue
        name, _, rest = line.partition(";")
        _, separator, items = rest.partition(";")
        if not separator:
            raise _damaged(path, number, line, "name;HostCpuOps;start,duration,flag ...")
        for item in items.split():
            fields = item.split(",")
            try:
                found.append(Execution(name, _possible(int(fields[0])), _possible(ns_from_text(fields[1], "ms"))))
            except (ValueError, IndexError) as error:
                raise _damaged(path, number, item, "start_ns,duration_ms,flag") from error
    return sorted(found, key=lambda execution: execution.start_ns)


def read_pool(path: Path) -> list[PoolSample]:
    """Pool samples of one cpu_ms_memory_record file (comma-separated, in spite of its name)."""
    rows = lines(path, piece=_LONGEST)
    header = next(rows, "")
    if header and not header.startswith("Timestamp"):
        raise _damaged(path, 1, header, "Timestamp(ns),Total Allocated(Byte),...")
    samples = []
    for number, line in enumerate(rows, 2):
        try:
            samples.append(PoolSample(*(_possible(int(field)) for field in line.split(",")[:4])))
        except (ValueError, TypeError) as error:
            raise _damaged(path, number, line, "four integers") from error
    return samples


def op_type(name: str) -> str:
    """Type of an operator from its full name: `Default/c1-Conv2d/Conv2D-op0` is Conv2D."""
    last = name.rpartition("/")[2]
    head, separator, tail = last.rpartition("-op")
    return head if separator and tail.isdigit() else last


def _with_launches(executions: list[Execution], path: Path) -> list[Execution]:
    """Types and shapes from the launch list, joined by position; left out when the two do not match."""
    if not path.is_file():
        return executions
    launches = [line.split(";") for line in lines(path, piece=_LONGEST) if line.strip()]
    if len(launches) != len(executions):
        return executions
    joined = []
    for execution, fields in zip(executions, launches, strict=True):
        if fields[1:2] and fields[1] and fields[1] != execution.name.rpartition("/")[2]:
            return executions
        shapes = "; ".join(field.partition(":")[2] for field in fields[3:] if ":" in field)
        joined.append(
            Execution(execution.name, execution.start_ns, execution.dur_ns, fields[0] or None, shapes or None)
        )
    return joined


def _possible(value: int) -> int:
    """Raises ValueError for a number that no time or size can be."""
    if abs(value) > _LARGEST:
        raise ValueError(value)
    return value


def _damaged(path: Path, number: int, found: str, expected: str) -> SourceError:
    return SourceError(
        f"damaged line {number} of `{path.name}`: found `{found[:60]}`, expected `{expected}`",
        "the process may have been killed while writing it",
    )
