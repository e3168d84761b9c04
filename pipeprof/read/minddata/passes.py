"""The two passes over a rank's files, each in any process: what they hold, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipeprof import processes
from pipeprof.read.minddata.folder import read_rank
from pipeprof.read.minddata.rows import add_rows
from pipeprof.read.tables.halfway import Waiting
from pipeprof.read.tables.rows import RankRows
from pipeprof.read.tables.share import Outcome, folder_alone
from pipeprof.read.tables.workers import check_folder
from pipeprof.record import limits, store
from pipeprof.units import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from pipeprof.read.minddata.folder import RankFiles

MEASURED = ("queue", "cpu", "memory", "op_service", "step", "fetch")


class Files(NamedTuple):
    """A rank's files by kind, and a folder for what is read of them."""

    rank: int
    paths: dict[str, Path]
    folder: Path


class Half(NamedTuple):
    """A rank after the first pass; `earliest` is the first time in its files, ns."""

    rank: int
    waiting: Waiting
    earliest: int | None


class Written(NamedTuple):
    """What came of a rank, and facts of its files; `spans` are the first and last time of each part of them, ns."""

    outcome: Outcome
    pid: int
    sink: bool
    timeless: bool
    cores: int | None
    latest: int | None
    spans: list[tuple[int, int, str]]


def read_files(files: Files) -> Half:
    """First pass. Raises TooManyRows."""
    check_folder(files.folder)
    processes.say(f"rank {files.rank}: reading {format_count(len(files.paths), 'file')}")
    content = read_rank(files.paths)
    return Half(files.rank, Waiting(content, files.folder), min(content.all_times(), default=None))


def write_rank(part: tuple[Path, Half, int]) -> Written:
    """Second pass: a rank's tables into a run's folder, with times from a zero on."""
    folder, half, zero = part
    check_folder(folder)
    processes.say(f"rank {half.rank}: writing its tables")
    content: RankFiles = half.waiting.take()
    out = RankRows(0, half.rank, zero, most=limits.most_imported_rows(in_memory=True))
    add_rows(content, out)
    counts = {}
    if any(out.rows.get(table) for table in MEASURED):
        run = folder_alone(folder)
        counts = {table: store.write(run, table, 0, half.rank, rows) for table, rows in out.rows.items()}
    damage = [(error.message, error.hint) for error in content.damage]
    return Written(
        Outcome(half.rank, counts, content.notes.all(), damage, steps=_evidence(content)),
        pid=content.pid or 0,
        sink=content.sink,
        timeless=any(record.t_ns is None for record in content.records),
        cores=content.cpu.machine_cores,
        latest=max(content.all_times(), default=None),
        spans=_spans(content, half.rank),
    )


def _evidence(content: RankFiles) -> str | None:
    if content.records and not content.sink:
        return "iterator file"
    return "device side of the queue" if content.device else None


def _spans(content: RankFiles, rank: int) -> list[tuple[int, int, str]]:
    parts = {
        "samples": content.times,
        "batches": [record.t_ns for record in content.records if record.t_ns is not None],
        "device side": [fetch.start_ns for fetch in content.device],
    }
    return [(min(times), max(times), f"{name} of rank {rank}") for name, times in parts.items() if times]
