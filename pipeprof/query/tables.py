"""The tables of a run in DuckDB: how its Parquet files are read, and which of them is damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipeprof.errors import RunError
from pipeprof.record import limits, pages
from pipeprof.record.run import is_compact
from pipeprof.record.schema import PARTITIONS, TABLES, Table
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.part import Part
    from pipeprof.record.run import Run

READ_AHEAD = 1 << 21  # rows that Arrow reads before they are asked for: 16 batches of 2**17
# What there is one row of. Rows that are there again multiply those of every other table that they belong to.
_ONCE = {"pipeline": ("rep", "rank", "pipeline_id"), "pipeline_op": ("rep", "rank", "pipeline_id", "op_id")}
# A table is read into memory once when it has at most so many bytes of Parquet and so many values, which may be packed
# to next to nothing; or so many files that opening them for each query takes longest, and at most so many values.
MEMORY_BYTES, FEW_VALUES, MANY_FILES, MEMORY_VALUES = 1 << 20, 1 << 21, 16, 1 << 24


def make_tables(
    connection: duckdb.DuckDBPyConnection,
    run: Run,
    tables: Sequence[Table] = TABLES,
    *,
    files: bool = True,
    part: Part | None = None,
) -> None:
    """Tables of the schema: empty, in memory when it is small, else a view of its files. `part`: its rows alone.

    Without `files`, of an Arrow dataset: DuckDB can read that when it may not open any file.
    """
    stored_in = {table.name: _stored(run, table.name, part) for table in tables}
    where = part.of_tables if part else ""
    counts = _row_counts(connection, stored_in)
    _refuse_many_rows(run, stored_in, counts)
    in_memory = {table.name for table in tables if _fits_memory(table, stored_in[table.name], counts[table.name])}
    connection.execute(";".join(_empty_sql(table) for table in tables if not stored_in[table.name]))
    for table in tables:
        paths = stored_in[table.name]
        if not paths:
            continue
        if not files and table.name not in in_memory:
            _make_arrow_view(connection, run, table, paths)
            continue
        kind = "TABLE" if (part and part.is_copied) or table.name in in_memory else "VIEW"
        source, keys = _source(paths), _keys_sql(paths)
        try:
            connection.execute(
                f'CREATE {kind} "{table.name}" AS {_table_sql(table, source, keys, table.column_names) + where}'
            )
        except duckdb.BinderException:  # an older pipeprof wrote the files: they do not have all columns
            stored = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]  # noqa: S608
            connection.execute(f'CREATE {kind} "{table.name}" AS {_table_sql(table, source, keys, stored) + where}')
    for table in tables:
        if table.name in _ONCE and stored_in[table.name]:
            _refuse_again(connection, run, table.name)


def _stored(run: Run, table: str, part: Part | None) -> list[Path]:
    paths = run.files(table) if part is None or part.place is None else run.files(table, part.place)
    return paths if part is None else [path for path in paths if part.has(path)]


def _refuse_again(connection: duckdb.DuckDBPyConnection, run: Run, name: str) -> None:
    """Raises RunError for a table that has more than one row of the same thing."""
    keys = ", ".join(_ONCE[name])
    text = f'SELECT count(*) FROM "{name}" WHERE {_ONCE[name][-1]} IS NOT NULL GROUP BY {keys} ORDER BY 1 DESC LIMIT 1'  # noqa: S608
    row = connection.execute(text).fetchone()
    if row is not None and row[0] > 1:
        raise RunError(
            f"damaged table `{name}` of `{run.path}`: found {row[0]:,} rows with the same {keys}, expected one",
            "collect or import the run again, or restore its files",
        )


def _row_counts(connection: duckdb.DuckDBPyConnection, stored_in: Mapping[str, Sequence[Path]]) -> dict[str, int]:
    """Rows of each table, as its files say."""
    paths = [path for files in stored_in.values() for path in files]
    if not paths:
        return dict.fromkeys(stored_in, 0)
    names = ", ".join(quoted(reachable(absolute(path))) for path in paths)
    counts = connection.execute(f"SELECT num_rows FROM parquet_file_metadata([{names}])").fetchall()  # noqa: S608
    rows = iter(count for (count,) in counts)
    return {table: sum(next(rows) for _ in files) for table, files in stored_in.items()}


def _refuse_many_rows(run: Run, stored_in: Mapping[str, Sequence[Path]], counts: Mapping[str, int]) -> None:
    """Raises RunError for a table that has many more rows than its bytes can hold: a few may stand for billions."""
    for table, files in stored_in.items():
        total, size = counts[table], _bytes(files)
        if total > limits.most_rows(size):
            raise RunError(
                f"damaged table `{table}` of `{run.path}`: found {total:,} rows in {size:,} bytes, "
                f"expected at most {limits.most_rows(size):,}",
                limits.raised_by(limits.ROWS),
            )


def _bytes(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _make_arrow_view(connection: duckdb.DuckDBPyConnection, run: Run, table: Table, paths: Sequence[Path]) -> None:
    """A view of the same columns over an Arrow dataset of the files; what a file does not have is null."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.dataset as ds  # noqa: PLC0415

    texts = [column.name for column in table.columns if column.type == "varchar"]
    _refuse_wide(paths)
    folders = pa.schema([(name, pa.int64()) for name in PARTITIONS])
    text = pa.dictionary(pa.int32(), pa.string())  # a long one may be that of every row
    stored = [pa.field(field.name, text if field.name in texts else field.type) for field in table.arrow()]
    schema = pa.schema([*folders, *stored])
    source = ds.dataset(
        [str(reachable(absolute(path))) for path in paths],
        schema=schema,
        format=ds.ParquetFileFormat(dictionary_columns=texts),
        partitioning=None if is_compact(paths[0]) else ds.partitioning(folders, flavor="hive"),
        partition_base_dir=str(reachable(absolute(run.path / table.name))),
    )
    connection.register(table.name, source)


def _refuse_wide(paths: Sequence[Path]) -> None:
    """Raises RunError, naming the file, when Arrow would need too much memory for the rows that it reads ahead."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    parts: list[pages.Part] = []
    for path in paths:
        try:
            parts += pages.check(pq.read_metadata(reachable(path)), path)
            pages.refuse_wide(parts, READ_AHEAD)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RunError(
                f"damaged file `{path}`: {error}", "collect or import the run again, or restore the file"
            ) from error


def _fits_memory(table: Table, files: Sequence[Path], rows: int) -> bool:
    if len(files) >= MANY_FILES and rows * len(table.columns) <= MEMORY_VALUES:
        return True
    try:
        return rows * len(table.columns) <= FEW_VALUES and _bytes(files) <= MEMORY_BYTES
    except OSError:
        return False  # gone meanwhile: DuckDB says which


def _empty_sql(table: Table) -> str:
    columns = [f'"{name}" BIGINT' for name in PARTITIONS]
    columns += [f'"{column.name}" {column.type}' for column in table.columns]
    return f'CREATE TABLE "{table.name}" ({", ".join(columns)})'


def _source(files: Sequence[Path]) -> str:
    names = ", ".join(quoted(reachable(absolute(path))) for path in files)
    return f"read_parquet([{names}], filename = true, hive_partitioning = false, union_by_name = true)"


def _keys_sql(files: Sequence[Path]) -> list[str]:
    """`rep` and `rank`, stored in a compact file, and otherwise taken from the end of the file names.

    DuckDB's hive_partitioning would believe a folder `rep=7` above the run.
    """
    if any(is_compact(path) for path in files):
        return list(PARTITIONS)
    return [
        f"CAST(regexp_extract(filename, '{_partition_pattern(name)}', 1) AS BIGINT) AS {name}" for name in PARTITIONS
    ]


def _table_sql(table: Table, source: str, keys: Sequence[str], stored: Sequence[str]) -> str:
    """A SELECT with the columns of the schema in its order and types, the keys first.

    A column that is not in `stored` is null.
    """
    columns = [*keys]
    for column in table.columns:
        value = f'"{column.name}"' if column.name in stored else "NULL"
        columns.append(f'CAST({value} AS {column.type}) AS "{column.name}"')
    return f"SELECT {', '.join(columns)} FROM {source}"  # noqa: S608 - names of our own schema and quoted paths


def _partition_pattern(name: str) -> str:
    return "/".join(f"{part}=([0-9]+)" if part == name else f"{part}=[0-9]+" for part in PARTITIONS) + "/[^/]*$"


def damaged(run: Run, *, types: bool) -> tuple[Path, str] | None:
    """The first Parquet file of a run that cannot be read to its end, and why; None when all are whole.

    With `types`, also one whose columns hold other types than those of the schema.
    """
    for table in TABLES:
        for path in run.files(table.name):
            problem = _problem(path, table if types else None)
            if problem:
                return path, problem
    return None


def _problem(path: Path, table: Table | None) -> str:
    """Why a Parquet file cannot be read, or as which table it cannot; "" when it can."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and needed for damaged files alone
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(reachable(path)) as file:
            schema = file.schema_arrow
        pages.check(file.metadata, path)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        with pq.ParquetFile(reachable(path), read_dictionary=texts) as file:  # a long one may be that of every row
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except (OSError, ValueError, pa.ArrowException) as error:
        return str(error).splitlines()[0]
    for field in table.arrow() if table is not None else ():
        at = schema.get_field_index(field.name)
        if at >= 0 and not schema.field(at).type.equals(field.type):
            return f"its column `{field.name}` holds {schema.field(at).type}, expected {field.type}"
    return ""


def absolute(path: Path) -> Path:
    """An absolute path, links unresolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links out of the allowed folder


def quoted(value: object) -> str:
    """A SQL string literal."""
    return "'" + str(value).replace("'", "''") + "'"
