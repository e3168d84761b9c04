"""One file for each table of a run instead of some for each rank: opening it, and a report, cost what its files do.

A table's `rows.parquet` has the columns `rep` and `rank` and is ordered by them, so that the statistics of its row
groups say which ranks they hold. It counts from the moment that the manifest notes its checksum, in one write for all
tables; until then the recorded files do. A compaction that was interrupted has changed nothing, or has only left files
behind that nothing reads any more, and the next one removes them.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import RunError
from pipeprof.record import checksums, limits, lock, store
from pipeprof.record.document import COMPACT
from pipeprof.record.lock import being_recorded
from pipeprof.record.plain_file import replacing, sync
from pipeprof.record.run import Share, is_compact, load
from pipeprof.record.schema import BY_NAME, PARTITIONS, TABLES
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

_RESTORE = "`pipeprof verify` checks all files; the run was left as it is"


class Compacted(NamedTuple):
    """How many files the tables of a run had, and have."""

    before: int
    after: int


def compact(path: Path, progress: Callable[[str], None] = lambda _text: None) -> Compacted:
    """Make one file of each table of a run.

    Raises RunError, and leaves the run as it is, when it is being recorded, is not complete, has a spool, or a file
    that is not as it was written; also when the disk is full.
    """
    with _held(path) as run:
        return _compacted(run, progress)


def put(path: Path, table: str, rows: pa.Table) -> Run:
    """Write all rows of a table, with `rep` and `rank`, as its one file, and return the run that notes it.

    The rows are in the order of repetition and rank. Raises RunError, and leaves the run as it is, where `compact`
    does, and OSError when its folder cannot be written.
    """
    with _held(path) as run:
        if run.manifest.parts is None:
            raise RunError(f"an older pipeprof wrote `{path}`: it has no checksums", "it can be read as it is")
        checksums.refuse_changed(run)
        run.path.joinpath(table).mkdir(exist_ok=True)
        run.manifest.tables[table] = rows.num_rows
        _write(run, table, iter([rows.cast(schema_of(table))]))
        _switch(run, [table])
        return run


@contextlib.contextmanager
def _held(path: Path) -> Iterator[Run]:
    """A complete run, kept from other processes meanwhile."""
    run = load(path)
    _refuse_unfinished(run)
    with lock.deciding(path):
        if being_recorded(path):
            raise RunError(f"`{path}` is being recorded, or another pipeprof changes it", "wait until that has ended")
        lock.take(path, run.manifest.run_id)
    try:
        run = load(path)  # another process may have changed it by now
        _refuse_unfinished(run)
        yield run
    finally:
        lock.release(path, run.manifest.run_id)


def _refuse_unfinished(run: Run) -> None:
    state = run.manifest.state
    if state != "complete" or run.spool.is_dir():
        problem = f"is {state}" if state != "complete" else "still has its spool"
        raise RunError(f"`{run.path}` {problem}: only complete runs are compacted", "it can be read as it is")


def _compacted(run: Run, progress: Callable[[str], None]) -> Compacted:
    checksums.refuse_changed(run)
    for change in checksums.changes(run):
        if change.file.startswith(f"{checksums.ANSWERS}/"):
            continue  # its rows are made of the others, and can be again
        raise RunError(f"damaged file `{run.path / change.file}`: it was changed after the run was made", _RESTORE)
    before = checksums.stored(run)
    waiting = [table.name for table in TABLES if any(not is_compact(path) for path in run.files(table.name))]
    for name in waiting:
        progress(f"table {name}")
        _write(run, name, _pieces(run, name))
    if waiting:
        _switch(run, waiting)
    _remove_recorded(run)
    return Compacted(len(before), len(checksums.stored(run)))


def _write(run: Run, table: str, pieces: Iterable[pa.Table]) -> None:
    """The rows of all ranks as one file, under its name when it is complete and on the disk."""
    folder = run.path / table
    for left in folder.glob(f".{COMPACT}.*.tmp"):  # of a compaction that was killed
        left.unlink(missing_ok=True)
    rows = 0
    try:
        with replacing(folder / COMPACT, durable=True) as temporary:
            with pq.ParquetWriter(reachable(temporary), schema_of(table), compression="zstd") as writer:
                for data in pieces:
                    writer.write_table(data, row_group_size=store.ROWS_PER_GROUP)
                    rows += data.num_rows
            _refuse_other_number(run, table, rows, temporary.stat().st_size)
        sync(folder)
    except OSError as error:
        raise RunError(
            f"cannot write `{folder / COMPACT}`: {error.strerror or error}",
            "free some space, then run the same command again; the run was left as it is",
        ) from error


def _pieces(run: Run, table: str) -> Iterator[pa.Table]:
    """All rows in the order of repetition, rank and file, in pieces of about a row group."""
    waiting: list[pa.Table] = []
    number = 0
    for share in _shares(run, table):
        for group in store.row_groups(share.path):
            waiting.append(_with_keys(group, share, table))
            number += group.num_rows
            if number >= store.ROWS_PER_GROUP:
                yield pa.concat_tables(waiting)
                waiting, number = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _shares(run: Run, table: str) -> list[Share]:
    keys = [(path, [int(part.partition("=")[2]) for part in path.parts[-3:-1]]) for path in run.files(table)]
    return sorted((Share(path, rep, rank) for path, (rep, rank) in keys), key=lambda one: (one.rep, one.rank, one.path))


def _with_keys(data: pa.Table, share: Share, table: str) -> pa.Table:
    """The columns of the schema after `rep` and `rank`; null where an older pipeprof did not write them.

    Raises RunError, naming the file, for a column of another type.
    """
    keys = {"rep": share.rep, "rank": share.rank}
    arrays: list[pa.Array | pa.ChunkedArray] = []
    for field in schema_of(table):
        if field.name in keys:
            arrays.append(pa.repeat(pa.scalar(keys[field.name], pa.int64()), data.num_rows))
        elif field.name not in data.column_names:
            arrays.append(pa.nulls(data.num_rows, field.type))
        else:
            _refuse_other_type(data.schema.field(field.name), field, share.path)
            arrays.append(data.column(field.name))
    return pa.Table.from_arrays(arrays, schema=schema_of(table))


def schema_of(table: str) -> pa.Schema:
    """Columns of a table's one file: `rep`, `rank`, and those of the schema."""
    return pa.schema([*(pa.field(name, pa.int64()) for name in PARTITIONS), *BY_NAME[table].arrow()])


def _refuse_other_type(column: pa.Field, wanted: pa.Field, path: Path) -> None:
    if not column.type.equals(wanted.type):
        raise RunError(
            f"damaged file `{path}`: its column `{column.name}` holds {column.type}, expected {wanted.type}", _RESTORE
        )


def _refuse_other_number(run: Run, table: str, rows: int, size: int) -> None:
    """Raises RunError when rows are missing, or are so many for their bytes that the table would not be opened."""
    written = run.manifest.tables.get(table)
    if written not in (None, rows):
        raise RunError(f"the table `{table}` of `{run.path}` has {rows:,} rows, {written:,} were written", _RESTORE)
    if rows > limits.most_rows(size):
        raise RunError(
            f"the table `{table}` of `{run.path}` would have {rows:,} rows in {size:,} bytes",
            limits.raised_by(limits.ROWS),
        )


def _switch(run: Run, tables: Sequence[str]) -> None:
    """Have the manifest note the new files in place of the recorded ones."""
    paths = {f"{table}/{COMPACT}": run.path / table / COMPACT for table in tables}
    others = {name: part for name, part in (run.manifest.parts or {}).items() if name.partition("/")[0] not in tables}
    parts = others | {name: checksums.part_of(path) for name, path in paths.items()}
    run.manifest.parts = {name: parts[name] for name in sorted(parts)}
    run.save()


def _remove_recorded(run: Run) -> None:
    """Remove the recorded files of compact tables; what cannot be removed is read by nothing."""
    for table in TABLES:
        if any(is_compact(path) for path in run.files(table.name)):
            for folder in {path.parent.parent for path in run.partitions(table.name)}:
                with contextlib.suppress(OSError):
                    shutil.rmtree(folder)
