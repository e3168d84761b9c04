"""Parquet files of a run: written whole or not at all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import RunError
from pipeprof.record import pages
from pipeprof.record.plain_file import replacing
from pipeprof.record.run import is_compact
from pipeprof.record.schema import BY_NAME, PARTITIONS
from pipeprof.record.text import printable_all, reachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pipeprof.record.run import Run

ROWS_PER_GROUP = 1 << 17


def partition(run: Run, table: str, rep: int, rank: int) -> Path:
    """The folder of one table of one rank of one repetition."""
    return run.path / table / f"rep={rep}" / f"rank={rank}"


def part_name(part: int) -> str:
    """The name of a file of a partition."""
    return f"part-{part:05}.parquet"


def write(run: Run, table: str, rep: int, rank: int, rows: Iterable[Sequence[Any]], part: int = 0) -> int:
    """Write rows (tuples in the order of the schema) as one part of a partition and return their number.

    No file is made for no rows: an absent table means "not measured". The file appears under its name only when it
    is complete. Raises RunError when a value does not fit its column.
    """
    columns = list(zip(*rows, strict=True))
    if not columns:
        return 0
    return write_arrow(run, table, rep, rank, arrow(table, columns), part)


def write_arrow(run: Run, table: str, rep: int, rank: int, data: pa.Table, part: int = 0) -> int:
    """As `write`, from an Arrow table that already has the table's schema."""
    folder = partition(run, table, rep, rank)
    final = folder / part_name(part)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(final) as temporary:
            pq.write_table(data, reachable(temporary), compression="zstd", row_group_size=ROWS_PER_GROUP)
    except OSError as error:
        raise not_written(final, error) from error
    return int(data.num_rows)


def not_written(path: Path, error: OSError) -> RunError:
    """The error for a file of a table that could not be written, on a full disk most often."""
    return RunError(
        f"cannot write `{path}`: {error.strerror or error}", "free some space, then run the same command again"
    )


def read(run: Run, table: str) -> pa.Table:
    """All rows of a table with `rep` and `rank`, in file order; an empty table when the run does not have it.

    Raises RunError, naming the file, for one that is damaged or becomes more than queries may keep in memory.
    """
    schema = BY_NAME[table].arrow()
    parts = []
    for path in run.files(table):
        data = _checked(path)
        if is_compact(path):
            parts.append(data)
            continue
        keys = dict(part.split("=") for part in path.parts[-3:-1])
        for name in ("rank", "rep"):
            key = pa.repeat(pa.scalar(int(keys[name]), pa.int64()), data.num_rows)
            data = data.add_column(0, pa.field(name, pa.int64()), key)
        parts.append(data)
    full = pa.schema([pa.field("rep", pa.int64()), pa.field("rank", pa.int64()), *schema])
    try:  # an older pipeprof may have written some of them, without columns that were added since
        return pa.concat_tables(parts, promote_options="default") if parts else full.empty_table()
    except pa.ArrowException as error:
        raise RunError(
            f"damaged files in `{run.path / table}`: {error}", "collect or import the run again, or restore the file"
        ) from error


def places(path: Path) -> set[tuple[int, int]]:
    """Every (rep, rank) with rows in a file of a run. Raises RunError, naming it, for a compact one that is damaged."""
    if not is_compact(path):
        rep, rank = (int(part.partition("=")[2]) for part in path.parts[-3:-1])
        return {(rep, rank)}
    partitions: set[tuple[int, int]] = set()
    for group in row_groups(path, PARTITIONS):
        pairs = group.group_by(list(PARTITIONS)).aggregate([])
        partitions.update(zip(*(pairs.column(name).to_pylist() for name in PARTITIONS), strict=True))
    return partitions


def row_groups(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a file of a run, a row group at a time; texts are plain only when those of a group fit in the memory.

    Raises RunError, naming the file, for one that is damaged.
    """
    with _opened(path) as (file, schema):
        for number in range(file.num_row_groups):
            yield _plain(file.read_row_group(number, columns=None if columns is None else list(columns)), schema)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, pa.Schema]]:
    """A file of a run, whose pages are checked and whose texts are read once each, and its schema.

    Raises RunError, naming the file, for one that is damaged.
    """
    try:
        with pq.ParquetFile(reachable(path)) as file:
            schema = file.schema_arrow
            pages.check(file.metadata, path)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        with pq.ParquetFile(reachable(path), read_dictionary=texts) as file:
            yield file, schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RunError(
            f"damaged file `{path}`: {error}", "collect or import the run again, or restore the file"
        ) from error


def _checked(path: Path) -> pa.Table:
    """All rows of a file of a run."""
    with _opened(path) as (file, schema):
        return _plain(file.read(), schema)


def _plain(data: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with plain texts. Raises ValueError when these do not fit in the memory, however often they repeat."""
    pages.refuse_long_texts(data)
    return data.cast(pa.schema([schema.field(name) for name in data.column_names]))


def arrow(table: str, columns: Sequence[Sequence[Any]]) -> pa.Table:
    """One sequence per column of a table's schema as Arrow. Raises RunError when a value does not fit its column."""
    schema = BY_NAME[table].arrow()
    if len(columns) != len(schema):
        raise RunError(f"table `{table}` has {len(schema)} columns, got {len(columns)}")
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(_array(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
            raise RunError(f"column `{field.name}` of table `{table}` does not hold {field.type}: {error}") from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    """An array of exactly the wanted type; only integers may become floating-point numbers."""
    try:
        array = pa.array(values)
    except UnicodeEncodeError:  # a name that is bytes and no text
        array = pa.array(printable_all(values))
    if array.type.equals(wanted):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if pa.types.is_integer(array.type) and pa.types.is_floating(wanted):
        return pa.array(values, wanted)  # Arrow's own casts take a tenth of a second to import
    raise TypeError(f"found {array.type}")
