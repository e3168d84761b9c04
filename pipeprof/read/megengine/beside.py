"""Memory files beside a profile or a timeline: lifetimes of tensors go into the rank of their process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import SourceError
from pipeprof.read.megengine import kinds
from pipeprof.read.megengine.file_rows import write
from pipeprof.read.megengine.kinds import by_pid
from pipeprof.read.megengine.memory_flow import read_memory_flow
from pipeprof.read.megengine.static_memory import read_static_memory
from pipeprof.read.tables.outcome import leave_out
from pipeprof.record import store
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run


def add_beside(
    files: Sequence[tuple[str | None, Path]], run: Run, progress: Callable[[str], None], damage: list[SourceError]
) -> None:
    """Add memory files to repetition 0: to the rank with the process number of their names, else to the next one."""
    reps = run.manifest.reps
    ranks = {rank.pid: rank.rank for rank in reps[0].ranks if rank.pid} if reps else {}
    following = {kinds.MEMORY_FLOW: 0, kinds.STATIC_MEMORY: 0}
    for kind, path in sorted(files, key=lambda item: by_pid(item[1])):
        if kind is None:
            continue
        progress(f"reading {path.name}")
        pid = by_pid(path)[0]
        if ranks and pid and pid not in ranks:
            leave_out(run.manifest, [path], f"process {pid} has no timeline here; import it by itself")
            continue
        rank = ranks.get(pid, following[kind])
        following[kind] = rank + 1
        if store.partition(run, "allocation", 0, rank).exists():
            leave_out(run.manifest, [path], "the rank has the lifetimes of another file already")
            continue
        try:
            _add(kind, path, run, rank, damage)
        except SourceError as error:
            damage.append(error)


def _add(kind: str, path: Path, run: Run, rank: int, damage: list[SourceError]) -> None:
    """One file. Its operators come behind those that the rank has."""
    op_info = store.partition(run, "op_info", 0, rank) / store.part_name(0)
    first = 0
    if op_info.exists():
        ids = pq.read_table(reachable(op_info), columns=["op_id"], partitioning=None)["op_id"]
        first = pc.max(ids).as_py() + 1
    if kind == kinds.MEMORY_FLOW:
        outcome = read_memory_flow(path, first, _later(run, rank))
    else:
        outcome = read_static_memory(path)
        if op_info.exists():
            outcome.tables.rows.pop("op_info", None)  # of the same graph, and no lifetime refers to them
    write(outcome, run, 0, rank, damage, part=int(op_info.exists()))


def _later(run: Run, rank: int) -> int:
    """Time in ns that a process's recording began after the first one."""
    for rep in run.manifest.reps[:1]:
        for entry in rep.ranks:
            if entry.rank == rank and entry.zero_realtime_ns:
                return entry.zero_realtime_ns - rep.zero_realtime_ns
    return 0
