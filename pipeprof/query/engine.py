"""Runs the queries, and the user's own SQL, on DuckDB over the Parquet files of a run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import PipeprofError, QueryError, RunError
from pipeprof.query import catalog, statement
from pipeprof.record.schema import PARTITIONS, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from pipeprof.query.header import Parameter, Query
    from pipeprof.record.run import Run

MAX_THREADS = 8

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "bigint": (int,),
    "integer": (int,),
    "double": (float, int),
    "varchar": (str,),
    "boolean": (bool,),
}

# Errors that say what is wrong with the SQL text; any other may come from a damaged file.
_TEXT_ERRORS = (
    duckdb.ParserException,
    duckdb.CatalogException,
    duckdb.BinderException,
    duckdb.PermissionException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.OutOfMemoryException,
)


class Engine:
    """An in-memory DuckDB over one run: its tables and the shared views, readable and nothing else.

    A table that the run does not have is empty, with the right columns. Close it, or use it in a `with`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, run: Run | None) -> None:
        self._connection = connection
        self._run = run
        self._defined: set[str] = set()

    @classmethod
    def open(cls, run: Run) -> Engine:
        """Make the tables and views of a run readable.

        Raises RunError, naming the file, when one of its Parquet files is damaged.
        """
        connection = duckdb.connect(":memory:", config={"threads": str(_threads())})
        engine = cls(connection, run)
        try:
            for table in TABLES:
                connection.execute(f'CREATE VIEW "{table.name}" AS {_table_sql(connection, run, table)}')
            _lock(connection, run.path)
        except duckdb.Error as error:
            connection.close()
            raise engine._explained(error) from error
        return engine

    def close(self) -> None:
        """Free the memory. The engine cannot be asked any more."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, name: str, **params: Any) -> pa.Table:
        """The rows of the query "family/file" as an Arrow table, in the order its header gives.

        Raises QueryError for an unknown query, and for parameters that are unknown, missing or of another type.
        """
        query = catalog.find(name)
        self._define(query.reads)
        return self._fetch(query.sql, _checked(query, params))

    def rows(self, name: str, **params: Any) -> list[dict[str, Any]]:
        """As `ask`, one dict per row."""
        rows: list[dict[str, Any]] = self.ask(name, **params).to_pylist()
        return rows

    def give(self, name: str, rows: pa.Table) -> None:
        """Fill a table that is empty in a run (`chosen`) with rows; its columns, `rep` and `rank` are those given."""
        self._connection.register("given", rows)
        if f"{name} given" not in self._defined:
            self._connection.execute(f'DROP VIEW "{name}"')
            self._defined.add(f"{name} given")
        self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')  # noqa: S608 - our name
        self._connection.unregister("given")

    def sql(self, text: str) -> pa.Table:
        """The rows of the user's own SQL over the tables and views.

        Raises QueryError, with a hint, when it is not exactly one statement that only reads, or when it fails.
        """
        statement.check(text)
        self._define([catalog.view_name(view) for view in catalog.views()], keep=False)
        return self._fetch(text, None)

    def _define(self, reads: Sequence[str], *, keep: bool = True) -> None:
        """Create the views that are read, directly or not; those that are marked so are computed now, once.

        Most queries read few of the views, and making all of them takes longer than most queries.
        """
        views = {catalog.view_name(view): view for view in catalog.views()}
        needed: set[str] = set()
        waiting = list(reads)
        while waiting:
            name = waiting.pop()
            if name in views and name not in needed:
                needed.add(name)
                waiting += views[name].reads
        try:
            for name, view in views.items():
                if name in needed:
                    self._create(name, view, kept=keep and view.kept)
        except duckdb.Error as error:
            raise self._explained(error) from error

    def _create(self, name: str, view: Query, *, kept: bool) -> None:
        table = f"{name} kept"
        if kept and table not in self._defined:
            if name in self._defined:
                self._connection.execute(f'DROP VIEW "{name}"')
            self._connection.execute(f'CREATE TABLE "{table}" AS {view.sql}')
            self._connection.execute(f'ALTER TABLE "{table}" RENAME TO "{name}"')
            self._defined |= {name, table}
        elif name not in self._defined:
            self._connection.execute(f'CREATE VIEW "{name}" AS {view.sql}')
            self._defined.add(name)

    def _fetch(self, text: str, params: Mapping[str, Any] | None) -> pa.Table:
        try:
            return self._connection.sql(text, params=params or None).to_arrow_table()
        except duckdb.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: duckdb.Error) -> PipeprofError:
        """The error in the user's words: of the damaged file if there is one, else of the SQL text."""
        damaged = None if self._run is None or isinstance(error, _TEXT_ERRORS) else _damaged(self._run)
        if damaged is None:
            views = [catalog.view_name(view) for view in catalog.views()]
            return statement.explained(error, [table.name for table in TABLES] + views)
        path, problem = damaged
        return RunError(f"damaged file `{path}`: {problem}", "collect or import the run again, or restore the file")


def _threads() -> int:
    """Cores this process may use, at most MAX_THREADS: queries are short and the machine may be shared.

    Memory stays at DuckDB's own limit, which knows about containers.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_THREADS)


def _lock(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Leave only the run's folder to be reached, for good. Spilled data goes to the system's temporary folder."""
    spill = Path(tempfile.gettempdir()) / f"pipeprof-duckdb-{os.getpid()}"
    connection.execute(f"SET temp_directory = {_text(spill)}")
    connection.execute(f"SET allowed_directories = [{_text(str(_absolute(folder)) + '/')}]")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _table_sql(connection: duckdb.DuckDBPyConnection, run: Run, table: Table) -> str:
    """A SELECT with the columns of the schema in its order and types, `rep` and `rank` first.

    A column that no file has (an older pipeprof wrote them) is null. `rep` and `rank` are taken from the end of the
    file names: DuckDB's hive_partitioning would believe a folder `rep=7` above the run.
    """
    files = run.files(table.name)
    if not files:
        columns = [f'CAST(NULL AS BIGINT) AS "{name}"' for name in PARTITIONS]
        columns += [f'CAST(NULL AS {column.type}) AS "{column.name}"' for column in table.columns]
        return f"SELECT {', '.join(columns)} WHERE FALSE"
    names = ", ".join(_text(_absolute(path)) for path in files)
    source = f"read_parquet([{names}], filename = true, hive_partitioning = false, union_by_name = true)"
    stored = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}  # noqa: S608
    columns = [
        f"CAST(regexp_extract(filename, '{_partition_pattern(name)}', 1) AS BIGINT) AS {name}" for name in PARTITIONS
    ]
    for column in table.columns:
        value = f'"{column.name}"' if column.name in stored else "NULL"
        columns.append(f'CAST({value} AS {column.type}) AS "{column.name}"')
    return f"SELECT {', '.join(columns)} FROM {source}"  # noqa: S608 - names of our own schema and quoted paths


def _partition_pattern(name: str) -> str:
    return "/".join(f"{part}=([0-9]+)" if part == name else f"{part}=[0-9]+" for part in PARTITIONS) + "/[^/]*$"


def _checked(query: Query, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as DuckDB takes them. Raises QueryError when they are not those of the header."""
    takes = ", ".join(f"${parameter.name} ({parameter.type})" for parameter in query.takes) or "no parameters"
    hint = f"it takes {takes}"
    names = [parameter.name for parameter in query.takes]
    _refuse(query, "unknown", [name for name in params if name not in names], hint)
    _refuse(query, "missing", [name for name in names if name not in params], hint)
    for parameter in query.takes:
        value = params[parameter.name]
        if not _fits(parameter, value):
            message = f"`${parameter.name}` of query `{query.name}` must be {parameter.type}, found {value!r}"
            raise QueryError(message, hint)
    return {item.name: float(params[item.name]) if item.type == "double" else params[item.name] for item in query.takes}


def _refuse(query: Query, problem: str, names: Sequence[str], hint: str) -> None:
    if names:
        listed = ", ".join(f"`${name}`" for name in names)
        raise QueryError(f"{problem} parameter of query `{query.name}`: {listed}", hint)


def _fits(parameter: Parameter, value: object) -> bool:
    if isinstance(value, bool):
        return parameter.type == "boolean"
    return isinstance(value, _PYTHON_TYPES[parameter.type])


def _damaged(run: Run) -> tuple[Path, str] | None:
    """The first Parquet file of a run that cannot be read to its end, and why; None when all are whole."""
    for table in TABLES:
        for path in run.files(table.name):
            problem = _problem(path)
            if problem:
                return path, problem
    return None


def _problem(path: Path) -> str:
    """Why a Parquet file cannot be read; "" when it can."""
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except (OSError, pa.ArrowException) as error:
        return str(error).splitlines()[0]
    return ""


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links out of the allowed folder


def _text(value: object) -> str:
    """A SQL string literal."""
    return "'" + str(value).replace("'", "''") + "'"
