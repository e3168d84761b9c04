"""Files of MindSpore's CPU op recorder (folder FRAMEWORK): executions, launches and pool memory, as written.

Starts are ns since the epoch, durations decimal ms with six significant digits, converted without a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pipeprof.errors import SourceError
from pipeprof.read.source.content import lines
from pipeprof.read.source.numbers import duration, integer

_LARGEST = 1 << 61  # no time or size in these files can be larger
OPERATOR_BYTES = 1 << 26  # of a line, which has all executions of an operator
LINE, ITEM = "name;HostCpuOps;start,duration,flag ...", "start_ns,duration_ms,flag"
_ITEM = re.compile(r"\S+")
_LAST_PART = re.compile(r"(?P<type>.+?)-op[0-9]+")
_COLLECTIVES = {
    "allreduce": "all_reduce", "reducescatter": "reduce_scatter", "allgather": "all_gather", "alltoall": "all_to_all",
    "alltoallv": "all_to_all", "alltoallvc": "all_to_all", "broadcast": "broadcast", "send": "send",
    "receive": "receive", "recv": "receive", "batchsendrecv": "send_receive", "reduce": "reduce",
    "scatter": "scatter", "gather": "gather", "barrier": "barrier", "neighborexchange": "neighbor_exchange",
}  # fmt: skip
_COLLECTIVE_NAME = re.compile(r"(?:hcom_|.*/)?([A-Za-z]+)")


@dataclass(frozen=True)
class Execution:
    """One execution: full operator name, start (ns since the epoch), duration (ns), type and input shapes as text.

    `type` and `shapes` are None where the launch list has no such line. What only PyTorch tells: the time without what
    it called, the phase, the number that a forward operator shares with what takes its gradient, and the operations.
    """

    name: str
    start_ns: int
    dur_ns: int
    type: str | None = None
    shapes: str | None = None
    self_ns: int | None = None
    phase: str | None = None
    sequence: int | None = None
    flops: int | None = None

    @property
    def is_of_torch(self) -> bool:
        """Whether PyTorch executed it, whose types and shapes are not those of MindSpore."""
        return self.self_ns is not None


@dataclass(frozen=True)
class PoolSample:
    """Framework memory pool at one time (ns since the epoch), bytes."""

    t_ns: int
    allocated: int
    reserved: int
    active: int


def read_folder(folder: Path, since_ns: int = 0) -> tuple[list[Execution], list[PoolSample]]:
    """Executions in order of start, and pool samples in order of time, of all ranks' files in a folder.

    Both are empty when the folder has no such files. Pool samples before `since_ns` (since the epoch) are left out.
    Raises SourceError for a damaged file.
    """
    recorded: list[Execution] = []
    pool: list[PoolSample] = []
    for path in sorted(folder.glob("cpu_op_execute_timestamp_*.txt")):
        rank = path.stem.rpartition("_")[2]
        recorded += _with_launches(read_executions(path), folder / f"cpu_framework_{rank}.txt")
    for path in sorted(folder.glob("cpu_ms_memory_record_*.txt")):
        pool += read_pool(path, since_ns)
    return recorded, sorted(pool, key=lambda sample: sample.t_ns)


def read_executions(path: Path) -> list[Execution]:
    """Executions of one cpu_op_execute_timestamp file, in order of start. Raises SourceError for a damaged one."""

    def refuse(number: int, text: str, expected: str) -> None:
        raise _damaged(path, number, text, expected)

    listed = executions(path, "ms", refuse)
    return sorted((Execution(name, start, dur) for start, dur, name, _ in listed), key=lambda one: one.start_ns)


def executions(
    path: Path, unit: str, odd: Callable[[int, str, str], None]
) -> Iterator[tuple[int, int, str, int]]:  # fmt: skip
    """(start, duration, full name, position in its operator's line) of the executions in a file, ns.

    `odd` is told of what is none (its line, the text, what was expected) and may raise. Durations are in `unit`.
    """
    for number, line in enumerate(lines(path, longest=OPERATOR_BYTES), 1):
        name, first, rest = line.partition(";")
        _, second, items = rest.partition(";")
        if not first or not second or not name:
            if line.strip():
                odd(number, line, LINE)
            continue
        for item, text in enumerate(_ITEM.finditer(items)):
            fields = text[0].split(",", 3)
            start, dur = integer(fields[0]), duration(fields[1], unit) if len(fields) > 1 else None
            if start is None or dur is None or start < 0:
                odd(number, text[0], ITEM)
            else:
                yield start, dur, name, item


def launches(path: Path, longest: int = OPERATOR_BYTES) -> Iterator[tuple[str | None, str | None, str | None]]:
    """(type, last part of the name, shapes) of each launch in a cpu_framework file; None for what it does not say."""
    for fields in (line.split(";") for line in lines(path, longest=longest) if line.strip()):
        shapes = "; ".join(field.partition(":")[2] for field in fields[3:] if ":" in field)
        yield fields[0] or None, (fields[1:2] or [""])[0] or None, shapes or None


def read_pool(path: Path, since_ns: int = 0) -> list[PoolSample]:
    """Pool samples of one cpu_ms_memory_record file (comma-separated, in spite of its name), from a time on."""
    rows = lines(path, longest=OPERATOR_BYTES)
    header = next(rows, "")
    if header and not header.startswith("Timestamp"):
        raise _damaged(path, 1, header, "Timestamp(ns),Total Allocated(Byte),...")
    samples = []
    for number, line in enumerate(rows, 2):
        first = line.partition(",")[0]
        if first.isdecimal() and int(first) < since_ns:
            continue
        try:
            samples.append(PoolSample(*(_possible(int(field)) for field in line.split(",")[:4])))
        except (ValueError, TypeError) as error:
            raise _damaged(path, number, line, "four integers") from error
    return samples


@lru_cache(maxsize=1 << 14)
def op_type(name: str) -> str:
    """Type of an operator from its full name: `Default/c1-Conv2d/Conv2D-op0` is Conv2D."""
    last = name.rpartition("/")[2]
    match = _LAST_PART.fullmatch(last)
    return match["type"] if match else last


def collective_kind(name: str) -> str | None:
    """Kind of a communication operator by its name, such as `hcom_allReduce__586_0_1` or `AllReduce-op12`."""
    match = _COLLECTIVE_NAME.match(name)
    return _COLLECTIVES.get(match[1].lower()) if match else None


@lru_cache(maxsize=1 << 14)
def graph_collective(name: str) -> str | None:
    """Kind of a communication operator of a graph by its type or full name; `Gather` and `Scatter` compute."""
    match = _COLLECTIVE_NAME.match(name)
    word = match[1].lower() if match else ""
    return None if word in ("gather", "scatter") else _COLLECTIVES.get(word.removeprefix("collective"))


def _with_launches(recorded: list[Execution], path: Path) -> list[Execution]:
    """Types and shapes from the launch list, joined by position; left out when the two do not match."""
    listed = list(launches(path)) if path.is_file() else []
    if len(listed) != len(recorded):
        return recorded
    pairs = list(zip(recorded, listed, strict=True))
    if any(name is not None and name != execution.name.rpartition("/")[2] for execution, (_, name, _) in pairs):
        return recorded
    return [replace(execution, type=kind, shapes=shapes) for execution, (kind, _, shapes) in pairs]


def _possible(value: int) -> int:
    """Raises ValueError for a number that no time or size can be."""
    if abs(value) > _LARGEST:
        raise ValueError(value)
    return value


def _damaged(path: Path, number: int, text: str, expected: str) -> SourceError:
    return SourceError(
        f"damaged line {number} of `{path.name}`: found `{text[:60]}`, expected `{expected}`",
        "the process may have been killed while writing it",
    )
