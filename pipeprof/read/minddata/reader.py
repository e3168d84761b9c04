"""A whole import: the files of all ranks, into a run."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeprof.errors import SourceError
from pipeprof.read.minddata import files
from pipeprof.read.minddata.folder import RankFiles, read_rank
from pipeprof.read.minddata.rows import add_rows
from pipeprof.read.tables.outcome import Damage, count, decide
from pipeprof.read.tables.rows import RankRows
from pipeprof.record import limits, store
from pipeprof.record.run import Rank, Rep
from pipeprof.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.read.minddata.files import SourceFile
    from pipeprof.record.run import Manifest, Run

KIND = "minddata"
WHAT = "MindSpore dataset profiling (pipeline_profiling_0.json and the files beside it)"
MEASURED = ("queue", "cpu", "memory", "op_service", "step", "fetch")
_APART_NS = 3_600 * 1_000_000_000
_FOLDER_RANK = re.compile(r"rank[_=-]?([0-9]{1,6})")


def recognise(path: Path) -> bool:
    """Whether a file is one of these, by its content. Raises SourceError when it cannot be read."""
    return files.identify(path) is not None


def add_files(paths: Sequence[Path], run: Run, progress: Callable[[str], None]) -> None:
    """Read the files into repetition 0 of a run and fill in its manifest, which is not saved.

    Raises SourceError when a rank has two files of a kind, or when nothing usable is in any file.
    """
    manifest = run.manifest
    ranks = _by_rank([item for path in paths if (item := files.identify(path)) is not None], manifest)
    read: dict[int, RankFiles] = {}
    for rank, mine in sorted(ranks.items()):
        progress(f"rank {rank}: reading {format_count(len(mine), 'file')}")
        read[rank] = read_rank(mine)
    zero = min((time for content in read.values() if (time := content.earliest()) is not None), default=0)
    rep = Rep(rep=0, zero_realtime_ns=0, zero_monotonic_ns=zero)
    for rank, content in read.items():
        progress(f"rank {rank}: writing its tables")
        if _write(run, rank, content, zero):
            rep.ranks.append(_rank_entry(rank, content, zero))
        for code, message in content.notes.all():
            manifest.warn(code, message, rep=0, rank=rank)
    damage = [error for content in read.values() for error in content.damage]
    if not any(manifest.tables.get(table) for table in MEASURED):
        nothing = f"nothing to import: no sample and no batch in {format_count(len(paths), 'file')} has a time"
        hint = "import a folder that has the time stamps (minddata_cpu_utilization) too"
        raise damage[0] if damage else SourceError(nothing, hint)
    manifest.reps = [rep]
    rep.dur_ns = max((time for content in read.values() if (time := content.latest()) is not None), default=zero) - zero
    cores = {content.cpu.machine_cores for content in read.values() if content.cpu.machine_cores}
    if len(cores) == 1:  # machines that differ have no number in common
        manifest.fingerprint["cpu_cores"] = cores.pop()
    _decide(manifest, read)
    _clocks(manifest, read)


def _by_rank(recognised: Sequence[SourceFile], manifest: Manifest) -> dict[int, dict[str, Path]]:
    ranks: dict[int, dict[str, Path]] = {}
    for item in recognised:
        if item.rank is not None:
            _assign(ranks.setdefault(item.rank, {}), item.rank, item)
    for item in recognised:
        if item.rank is None or item.kind == files.LOG:
            _assign_log(ranks, item, recognised, manifest)
    return ranks


def _assign(mine: dict[str, Path], rank: int, item: SourceFile) -> None:
    if item.kind == files.LOG:
        return
    other = mine.get(item.kind)
    if other is not None:
        raise SourceError(
            f"two files of the same kind for rank {rank}: `{other}` and `{item.path}`, expected those of one training",
            "import one of their folders",
        )
    mine[item.kind] = item.path


def _assign_log(
    ranks: dict[int, dict[str, Path]], item: SourceFile, recognised: Sequence[SourceFile], manifest: Manifest
) -> None:
    """A log's rank is that in its own or its folder's name, that of the files beside it, or the only one there is."""
    beside = {other.rank for other in recognised if other.path.parent == item.path.parent and other.kind != files.LOG}
    named = _FOLDER_RANK.search(item.path.parent.name)
    others = {rank for rank, mine in ranks.items() if mine.keys() - {files.LOG}}
    wanted = [item.rank, int(named[1]) if named else None, next(iter(beside)) if len(beside) == 1 else None]
    rank = next((rank for rank in wanted if rank is not None and rank in others), None)
    if rank is None and len(others) <= 1:
        rank = next(iter(others), item.rank or 0)
    if rank is None or files.LOG in ranks.setdefault(rank, {}):
        why = "its rank is not known" if rank is None else f"rank {rank} has another log"
        manifest.warn("left_out", f"`{item.path}` with timing blocks was left out: {why}")
        return
    ranks[rank][files.LOG] = item.path


def _write(run: Run, rank: int, content: RankFiles, zero: int) -> bool:
    out = RankRows(0, rank, zero, most=limits.most_imported_rows(kept=True))
    add_rows(content, out)
    if not any(out.rows.get(table) for table in MEASURED):
        return False
    for table, rows in out.rows.items():
        count(run.manifest, table, store.write(run, table, 0, rank, rows))
    return True


def _rank_entry(rank: int, content: RankFiles, zero: int) -> Rank:
    evidence = None
    if content.records and not content.sink:
        evidence = "iterator file"
    elif content.device:
        evidence = "device side of the queue"
    return Rank(
        rank=rank, pid=content.pid or 0, host="", zero_realtime_ns=0, zero_monotonic_ns=zero, step_evidence=evidence
    )


def _decide(manifest: Manifest, read: dict[int, RankFiles]) -> None:
    sink = any(content.sink for content in read.values())
    timeless = any(record.t_ns is None for content in read.values() for record in content.records)
    batches = "the queue file has no time stamps" if timeless else "no queue file with batches"
    why = {
        "step": "in data sink mode only the device's file has steps, and it is missing" if sink else batches,
        "op": "dataset profiling does not record operators of the network",
        "queue": "no queue samples with a time",
        "op_service": "no log with MindSpore's timing blocks (VLOG_v=10900)",
        "memory": "no CPU file with memory",
        "cpu": "no CPU file",
        "fetch": batches,
    }
    damage = [Damage(error.message, error.hint, rank) for rank, content in read.items() for error in content.damage]
    decide(manifest, damage, why, "left out: ")


def _clocks(manifest: Manifest, read: dict[int, RankFiles]) -> None:
    """Warn when parts of the import lie more than an hour apart: they are not of one clock, or not of one training."""
    spans = []
    for rank, content in read.items():
        parts = {
            "samples": content.times,
            "batches": [record.t_ns for record in content.records if record.t_ns is not None],
            "device side": [fetch.start_ns for fetch in content.device],
        }
        spans += [(min(times), max(times), f"{name} of rank {rank}") for name, times in parts.items() if times]
    spans.sort()
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start - end > _APART_NS:
            hours = (start - end) / _APART_NS
            manifest.warn(
                "clocks",
                f"{one} end {hours:.0f} h before {other} begin: their clocks differ, or they are of two trainings",
            )
