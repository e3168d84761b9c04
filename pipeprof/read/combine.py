"""Puts what several readers found in one tree into one run, table by table.

Readers do not know of each other: each writes a run of its own. A rank has one list of steps: that of the first reader
which has some. Rows of others that named their own steps lose that name, and nothing else. Operators, calls, source
locations and pipelines, which each reader numbers from 0, are numbered on from one reader to the next.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.record import store
from pipeprof.record.schema import BY_NAME
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeprof.record.run import Manifest, Run

_OF_PIPELINES = ("step", "pipeline", "pipeline_op", "pipeline_edge", "queue", "op_service", "fetch", "cpu")
_NUMBERED = {  # table -> column -> what it numbers. The op_id of a pipeline's operator is within the pipeline
    "op": {"op_id": "operator", "exec_id": "call", "parent_id": "call"},
    "op_info": {"op_id": "operator", "stack_id": "location"},
    "allocation": {"op_id": "operator"},
    "span": {"stack_id": "location"},
    "stack": {"stack_id": "location", "parent_id": "location"},
    **{table: {"pipeline_id": "pipeline"} for table in _OF_PIPELINES},
}


def combine(run: Run, parts: Sequence[Run]) -> None:
    """Move the tables of the parts, best first, into a run and fill in its manifest. The parts are gone afterwards."""
    stepped: set[int] = set()
    timed: set[int] = set()  # ranks with executions of operators
    numbers: dict[tuple[str, str], int] = {}
    for part in parts:
        mine = {_rank(path) for path in part.files("step")}
        foreign, operators = mine & stepped, {_rank(path) for path in part.files("op")}
        numbers |= _move(run, part, numbers, foreign)
        source = part.manifest.source
        _warn(run, "two_step_sources", foreign, f"steps of {source} were left out", "another source has better ones")
        _warn(
            run,
            "two_op_sources",
            operators & timed,
            f"operators of {source} were added",
            "it has those of another source, too",
        )
        stepped |= mine
        timed |= operators
        _add_manifest(run.manifest, part.manifest)
        shutil.rmtree(part.path, ignore_errors=True)
    if len({rep.zero_realtime_ns for part in parts for rep in part.manifest.reps}) > 1:
        run.manifest.warn("clocks", "sources on several clocks were imported together; each begins at 0")


def _warn(run: Run, code: str, ranks: set[int], what: str, why: str) -> None:
    if ranks:
        run.manifest.warn(code, f"{what} for rank {', '.join(map(str, sorted(ranks)))}: {why}")


def _rank(path: Path) -> int:
    return int(path.parent.name.removeprefix("rank="))


def _move(run: Run, part: Run, numbers: Mapping[tuple[str, str], int], foreign: set[int]) -> dict[tuple[str, str], int]:
    """Move the tables of a part. `numbers` and the result: the first that is free, by partition and what is numbered.

    Steps of the `foreign` ranks stay behind.
    """
    free = dict(numbers)
    for table in BY_NAME:
        for path in part.files(table):
            if table == "step" and _rank(path) in foreign:
                continue
            place = f"{path.parent.parent.name}/{path.parent.name}"
            first = {name: numbers.get((place, what), 0) for name, what in _NUMBERED.get(table, {}).items()}
            for name, what in _NUMBERED.get(table, {}).items():
                free[place, what] = max(free.get((place, what), 0), first[name] + _largest(path, name) + 1)
            _move_file(run, table, path, first, keeps_steps=_rank(path) not in foreign)
    return free


def _largest(path: Path, name: str) -> int:
    """The largest number in a column, by the statistics of the file, which every writer here makes; -1 without one."""
    with pq.ParquetFile(reachable(path)) as file:
        column, metadata = file.schema_arrow.get_field_index(name), file.metadata
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    return max((group.max for group in groups if group is not None and group.has_min_max), default=-1)


def _move_file(run: Run, table: str, path: Path, first: Mapping[str, int], *, keeps_steps: bool) -> None:
    """Move a file of a table, with each column of `first` numbered from there on, and without its steps if they go."""
    rep = int(path.parent.parent.name.removeprefix("rep="))
    folder = store.partition(run, table, rep, _rank(path))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / store.part_name(len(list(folder.glob("part-*.parquet"))))
    schema = BY_NAME[table].arrow()
    unnamed = not keeps_steps and "step" in schema.names
    rows = pq.ParquetFile(reachable(path)).metadata.num_rows
    run.manifest.tables[table] = run.manifest.tables.get(table, 0) + rows
    if not unnamed and not any(first.values()):
        path.rename(target)
        return
    with pq.ParquetWriter(reachable(target), schema, compression="zstd") as out:
        for group in store.row_groups(path):
            columns = {name: pc.add(group.column(name), by) for name, by in first.items()}
            columns |= {"step": pa.nulls(len(group), pa.int64())} if unnamed else {}
            out.write_table(pa.table([columns.get(name, group.column(name)) for name in schema.names], schema=schema))


def _add_manifest(manifest: Manifest, part: Manifest) -> None:
    for warning in part.warnings:
        if warning not in manifest.warnings:
            manifest.warnings.append(warning)
    for mine, theirs in ((manifest.options, part.options), (manifest.fingerprint, part.fingerprint)):
        for name, value in theirs.items():
            mine.setdefault(name, value)
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
