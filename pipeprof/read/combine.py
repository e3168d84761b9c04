"""Puts what several readers found in one tree into one run, table by table.

Readers do not know of each other: each writes a run of its own. A rank has one list of steps: that of the first reader
which has some. Rows of others that named their own steps lose that name, and nothing else.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.record import store
from pipeprof.record.schema import BY_NAME
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeprof.record.run import Manifest, Run


def combine(run: Run, parts: Sequence[Run]) -> None:
    """Move the tables of the parts, best first, into a run and fill in its manifest. The parts are gone afterwards."""
    stepped: set[int] = set()
    for part in parts:
        mine = {_rank(path) for path in part.files("step")}
        foreign = mine & stepped
        for table in BY_NAME:
            for path in part.files(table):
                if table != "step" or _rank(path) not in foreign:
                    _move(run, table, path, keeps_steps=_rank(path) not in foreign)
        if foreign:
            shown = ", ".join(map(str, sorted(foreign)))
            run.manifest.warn(
                "two_step_sources",
                f"steps of {part.manifest.source} were left out for rank {shown}: another source has better ones",
            )
        stepped |= mine
        _add_manifest(run.manifest, part.manifest)
        shutil.rmtree(part.path, ignore_errors=True)
    if len({rep.zero_realtime_ns for part in parts for rep in part.manifest.reps}) > 1:
        run.manifest.warn("clocks", "sources on several clocks were imported together; each begins at 0")


def _rank(path: Path) -> int:
    return int(path.parent.name.removeprefix("rank="))


def _move(run: Run, table: str, path: Path, *, keeps_steps: bool) -> None:
    rep = int(path.parent.parent.name.removeprefix("rep="))
    folder = store.partition(run, table, rep, _rank(path))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"part-{len(list(folder.glob('part-*.parquet'))):05d}.parquet"
    rows = pq.ParquetFile(reachable(path)).metadata.num_rows
    if keeps_steps or "step" not in BY_NAME[table].column_names:
        path.rename(target)
    else:
        data = pq.ParquetFile(reachable(path)).read()
        index = data.column_names.index("step")
        unnamed = data.set_column(index, "step", pa.nulls(len(data), pa.int64()))
        pq.write_table(unnamed, reachable(target), compression="zstd")
    run.manifest.tables[table] = run.manifest.tables.get(table, 0) + rows


def _add_manifest(manifest: Manifest, part: Manifest) -> None:
    for warning in part.warnings:
        if warning not in manifest.warnings:
            manifest.warnings.append(warning)
    for name, value in part.options.items():
        manifest.options.setdefault(name, value)
    if part.state != "complete" and manifest.state != "partial":
        manifest.decide(part.state, part.reason_facts)
    elif manifest.state == "running":
        manifest.state = part.state
    named = {entry.what for entry in manifest.not_measured}
    manifest.not_measured = [
        entry
        for entry in [*manifest.not_measured, *(entry for entry in part.not_measured if entry.what not in named)]
        if not manifest.tables.get(entry.what)
    ]
    if not manifest.reps:
        manifest.reps = part.reps
    elif part.reps:
        ranks = {rank.rank for rank in manifest.reps[0].ranks}
        manifest.reps[0].ranks += [rank for rank in part.reps[0].ranks if rank.rank not in ranks]
        manifest.reps += part.reps[len(manifest.reps) :]
        manifest.reps[0].dur_ns = max(manifest.reps[0].dur_ns or 0, part.reps[0].dur_ns or 0)
