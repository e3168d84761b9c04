"""Runs the queries, and the user's own SQL, on DuckDB over the Parquet files of a run."""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import duckdb

from pipeprof.errors import PipeprofError, QueryError, RunError, did_you_mean, is_interruption, near_names
from pipeprof.query import catalog, spill, statement
from pipeprof.query.process_memory import at_most
from pipeprof.query.rows import typed
from pipeprof.query.tables import absolute, damaged, make_tables, quoted
from pipeprof.query.time_limit import in_time
from pipeprof.record import limits
from pipeprof.record.checksums import ANSWERS
from pipeprof.record.schema import BY_NAME, TABLES
from pipeprof.record.text import reachable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa
    from typing_extensions import Self

    from pipeprof.query.answers import Answers
    from pipeprof.query.header import Parameter, Query
    from pipeprof.query.part import Part
    from pipeprof.query.rows import OneRow
    from pipeprof.record.run import Run

MAX_THREADS = 8
_ALONE_ROWS = 122_880  # of all tables; DuckDB shares out a table in pieces of so many: threads only cost time below
_BATCH = 4096  # rows
_SHORT = 1000  # rows of an answer that is kept while the engine is open: parts of one report ask for the same
_ARROW_BATCH = 1 << 16
_ROW_BYTES = 512  # of a row in Python
_MEMORY_TIMES = 6  # of what queries keep: with an answer, and what allocators set aside

_WORD = re.compile(r"\w+")
# What asks for names in general, or for those that are nowhere written.
_OF_ALL = re.compile(r"\b(show|describe|information_schema|query|query_table|pg_\w+|sqlite_\w+|duckdb_\w+)\b")

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "bigint": (int,),
    "integer": (int,),
    "double": (float, int),
    "varchar": (str,),
    "boolean": (bool,),
}

# Errors that say what is wrong with the SQL text; those of values do when it is the user's. Any other may come from a
# damaged file.
_TEXT_ERRORS = (
    duckdb.ParserException,
    duckdb.CatalogException,
    duckdb.BinderException,
    duckdb.PermissionException,
    duckdb.OutOfMemoryException,
)
_VALUE_ERRORS = (duckdb.ConversionException, duckdb.OutOfRangeException)


class Engine:
    """An in-memory DuckDB over one run: its tables and the shared views, readable and nothing else.

    A table that the run does not have is empty, with the right columns. Close it, or use it in a `with`. SQL of the
    user's is asked on a connection of its own that can open no file at all.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, run: Run | None, *, files: bool = True, part: Part | None = None
    ) -> None:
        self._connection = connection
        self._run = run
        self._spill = spill.new_folder()
        self._spilled = weakref.finalize(self, spill.remove, self._spill)
        self._files = files
        self._part = part
        self._stored = {table.name for table in TABLES if run and run.has(table.name)}
        self._defined: set[str] = set()
        self._made: set[str] = set()  # tables
        self._given: set[str] = set()  # tables and views
        self._empty: dict[str, bool] = {}  # as far as is known of what was recorded
        self._damaged: PipeprofError | None = None  # what is wrong with the kept answers
        self._heard: dict[tuple[str, str], list[dict[str, Any]]] = {}  # short answers, by their questions
        self.answers: Answers | None = None  # which `rows` need not ask for, or notes

    @classmethod
    def open(cls, run: Run, *, lazily: bool = False, files: bool = True, part: Part | None = None) -> Engine:
        """Make the tables and views of a run readable; `lazily`, each table when it is first read, empty ones always.

        Without `files` no file can be opened from SQL, for reading or for writing, whatever it says. With
        a `part` its rows are there, as if no others had been recorded.

        Raises RunError, naming the file, when one of its Parquet files is damaged; lazily, what reads it does.
        """
        rows = sum(run.manifest.tables.values()) if files else None
        stored = sum(path.stat().st_size for path in run.files("step")) if files else 0  # of the user's SQL: the least
        steps = run.manifest.tables.get("step", 0)
        connection = duckdb.connect(":memory:", config=_config(rows, stored, steps))
        engine = cls(connection, run, files=files, part=part)
        try:
            if not lazily:
                engine.make_all_tables()
            _lock(connection, run.path if files else None, engine._spill)
        except duckdb.Error as error:
            engine.close()
            raise engine._explained(error) from error
        except PipeprofError:
            engine.close()
            raise
        return engine

    @classmethod
    def of_tables(cls, tables: Mapping[str, pa.Table]) -> Engine:
        """An engine over these rows of tables, with `rep` and `rank`, and over the views that need no other tables."""
        connection = duckdb.connect(":memory:", config=_config(sum(rows.num_rows for rows in tables.values())))
        engine = cls(connection, None)
        try:
            for name, rows in tables.items():
                engine.register_rows(name, rows)
            _lock(connection, None, engine._spill)
        except duckdb.Error as error:
            engine.close()
            raise engine._explained(error) from error
        return engine

    def make_all_tables(self) -> None:
        """Make every table that the run has. Raises RunError, naming the file, when one of them is damaged."""
        try:
            self._make_tables(self._stored - {ANSWERS})
        except duckdb.Error as error:
            raise self._explained(error) from error
        try:
            self._make_tables(self._stored & {ANSWERS})
        except (duckdb.Error, PipeprofError) as error:  # the rest can be asked all the same
            self._damaged = self._explained(error) if isinstance(error, duckdb.Error) else error

    def close(self) -> None:
        """Free the memory. The engine cannot be asked any more."""
        if "_guarded" in self.__dict__:
            self._guarded.close()
        self._connection.close()
        self._spilled()

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
        return self._fetch(*self._prepared(name, params))

    def rows(self, name: str, **params: Any) -> list[dict[str, Any]]:
        """As `ask`, one dict per row, without the time that it takes to import Arrow; a short answer is asked once."""
        asked = params if self._part is None else params | self._part.key
        answer = None if self.answers is None else self.answers.find(name, asked)
        if answer is not None:
            return answer
        question = name, repr(sorted(params.items()))
        if question in self._heard:
            return [dict(row) for row in self._heard[question]]
        rows = self._asked(name, params)
        if len(rows) <= _SHORT:
            self._heard[question] = [dict(row) for row in rows]
        if self.answers is not None:
            self.answers.note(name, asked, rows)
        return rows

    def typed(self, kind: type[OneRow], **params: Any) -> list[OneRow]:
        """As `rows`, of the query that a type of query/rows is for, with its columns as attributes."""
        return typed(kind, self.rows(kind.query, **params))

    def _asked(self, name: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Rows of a query, asked of the tables."""
        most = limits.most_memory() // _ROW_BYTES
        rows = list(islice(self.each(name, **params), most + 1))
        if len(rows) > most:
            raise QueryError(f"the answer of `{name}` has more than {most:,} rows", limits.raised_by(limits.MEMORY))
        return rows

    def each(self, name: str, **params: Any) -> Iterator[dict[str, Any]]:
        """As `rows`, one after the other. Ask nothing else before the last one."""
        query = catalog.find(name)
        if self._has_none(query):
            _checked(query, params)
            return
        text, checked = self._prepared(name, params)
        try:
            with in_time(self._connection):
                cursor = self._connection.execute(text, checked or None)
            names = [column[0] for column in cursor.description]
            while batch := self._next(cursor):
                for row in batch:
                    yield dict(zip(names, row, strict=True))
        except duckdb.Error as error:
            raise self._explained(error) from error

    def _next(self, cursor: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
        """The next rows. What is done with them between takes none of the query's time."""
        with in_time(self._connection):
            return cursor.fetchmany(_BATCH)

    def check_whole(self) -> None:
        """Raises RunError when a table of the run has other rows than its manifest says: one of its files is gone."""
        if self._run is None:
            return
        noted = {n: rows for n, rows in self._run.manifest.tables.items() if n in BY_NAME and n != ANSWERS}
        self._make_tables(noted)
        for name, written in noted.items():
            counted = self._connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()  # noqa: S608 - of the schema
            if counted is not None and counted[0] != written:
                raise RunError(
                    f"the table `{name}` of `{self._run.path}` has {counted[0]:,} rows, {written:,} were written",
                    "restore its files, or collect or import the run again",
                )

    def _prepared(self, name: str, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text of a query and its checked parameters; the views that it reads are there afterwards."""
        query = catalog.find(name)
        self._define(query.reads)
        return query.sql, _checked(query, params)

    def register_rows(self, name: str, rows: pa.Table) -> None:
        """Fill a table that is empty in a run (`chosen`), or a view, with rows; the columns are those given."""
        self._made.add(name)
        self._given.add(name)
        self._empty.clear()
        self._heard.clear()
        self._connection.register("given", rows)
        self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')  # noqa: S608 - our name
        self._connection.unregister("given")

    def view(self, name: str) -> pa.Table:
        """All rows of a view, in no order."""
        self._define([name])
        return self._fetch(f'SELECT * FROM "{name}"', None)  # noqa: S608 - our name

    def restrict_ops(self, step: int) -> None:
        """Let `op` hold what ran in one training step, counted from 0. Nothing may have been asked of it before."""
        self._make_tables({"op", "step"})
        self._connection.execute(
            'CREATE TABLE "op of a step" AS SELECT op.* FROM op JOIN step USING (rep, rank, step) '
            "WHERE step.kind IN ('train', 'warmup') AND step.kind_step = ?", [step]
        )  # fmt: skip
        for kind in ("VIEW", "TABLE"):
            with contextlib.suppress(duckdb.CatalogException):  # it is the other kind
                self._connection.execute(f'DROP {kind} "op"')
        self._connection.execute('ALTER TABLE "op of a step" RENAME TO "op"')

    def sql(self, text: str) -> pa.Table:
        """The rows of the user's own SQL over the tables and views.

        Raises QueryError, with a hint, when it is not exactly one statement that only reads, or when it fails.
        """
        statement.check(text)
        if self._run is not None and self._files:
            return self._guarded.sql(text)
        askable, plain = self._askable(), text.lower()
        words = frozenset(_WORD.findall(plain))
        if self._damaged is not None and ANSWERS in words:
            raise self._damaged
        named = askable if _OF_ALL.search(plain) else [name for name in askable if name in words]
        self._define(named, keep=False)
        try:
            return self._fetch(text, None, own=False)
        except QueryError as error:
            if not isinstance(error.__cause__, duckdb.CatalogException) or len(named) == len(askable):
                raise
        self._define(askable, keep=False)  # a name that was put together, or one that is like none of them
        return self._fetch(text, None, own=False)

    def _askable(self) -> list[str]:
        """The tables and views of a run; without one those that there are rows for."""
        if self._run is not None:
            names = [*BY_NAME, *self._views]
            if self._damaged is not None:
                names.remove(ANSWERS)
            return names
        names = list(self._made)
        for name, view in self._views.items():
            if set(view.reads) <= set(names):
                names.append(name)
        return names

    @cached_property
    def _guarded(self) -> Engine:
        """Engine over the same run that can open no file, for the SQL of users."""
        if self._run is None:
            raise ValueError("there is no run")
        return Engine.open(self._run, files=False)

    def _define(self, reads: Sequence[str], *, keep: bool = True) -> None:
        """Create the views that are read, directly or not; those that are marked so are computed now, once.

        Most queries read few of the views, and making all of them takes longer than most queries. One that has no rows
        for want of what it needs is made an empty table, which takes less.
        """
        views: dict[str, Query] = {}  # each after the views it reads
        tables: set[str] = set()
        seen = set(self._given)

        def visit(names: Sequence[str]) -> None:
            for name in names:
                view = None if name in seen or name in BY_NAME else catalog.view(name)
                tables.update([name] if name in BY_NAME and name not in seen else [])
                seen.add(name)
                if view is not None:
                    visit(() if keep and self._is_empty(name) else view.reads)
                    views[name] = view

        visit(reads)
        try:
            with in_time(self._connection):
                self._make_tables(tables)
                for name, view in views.items():
                    if keep and self._is_empty(name):
                        self._create_empty(name, view)
                    else:
                        self._create(name, view, kept=keep and view.kept)
        except duckdb.Error as error:
            raise self._explained(error) from error

    def _make_tables(self, names: Collection[str]) -> None:
        """Make those tables that are not there yet."""
        if self._run is not None:
            missing = [table for table in TABLES if table.name in names and table.name not in self._made]
            make_tables(self._connection, self._run, missing, files=self._files, part=self._part)
            self._made.update(names)

    def _has_none(self, query: Query) -> bool:
        """Whether a query or view surely has no rows."""
        return any(map(self._is_empty, query.needs)) or all(map(self._is_empty, query.reads))

    def _is_empty(self, name: str) -> bool:
        if self._run is None or name in self._given:
            return False
        if name not in self._empty:
            view = None if name in BY_NAME else catalog.find(f"{catalog.VIEWS}/{name}")
            self._empty[name] = name not in self._stored if view is None else self._has_none(view)
        return self._empty[name]

    def _create_empty(self, name: str, view: Query) -> None:
        if name not in self._defined:
            columns = ", ".join(f'"{field.name}" {field.type}' for field in view.gives)
            self._connection.execute(f'CREATE TABLE "{name}" ({columns})')
            self._defined.add(name)

    def _create(self, name: str, view: Query, *, kept: bool) -> None:
        table = f"{name} kept"
        sql = view.sql if self._part is None else self._part.narrowed(name, view.sql)
        if kept and sql == view.sql and table not in self._defined:
            if name in self._defined:
                self._connection.execute(f'DROP VIEW "{name}"')
            self._connection.execute(f'CREATE TABLE "{table}" AS {sql}')
            self._connection.execute(f'ALTER TABLE "{table}" RENAME TO "{name}"')
            self._defined |= {name, table}
        elif name not in self._defined:
            self._connection.execute(f'CREATE VIEW "{name}" AS {sql}')
            self._defined.add(name)

    def _fetch(self, text: str, params: Mapping[str, Any] | None, *, own: bool = True) -> pa.Table:
        try:
            allocating = contextlib.nullcontext() if own else at_most(_MEMORY_TIMES * limits.most_memory())
            with in_time(self._connection), allocating:
                return _table(self._connection.sql(text, params=params or None))
        except (OSError, ValueError, RuntimeError) as error:
            if is_interruption(error):
                raise
            raise self._explained(_of_stream(error), own=own) from error
        except MemoryError as error:
            raise QueryError(
                "SQL failed: there is not enough memory",
                f"ask for fewer rows or columns at once, or set {limits.MEMORY} to allow more",
            ) from error
        except duckdb.Error as error:
            raise self._explained(error, own=own) from error

    @cached_property
    def _views(self) -> dict[str, Query]:
        """Name -> view, of all of them, each after the views it reads."""
        return {catalog.view_name(view): view for view in catalog.views()}

    def _explained(self, error: duckdb.Error, *, own: bool = True) -> PipeprofError:
        """The error in the user's words: of the damaged file if there is one, else of the SQL text.

        `own`: the text is one of ours, so that a value which does not fit comes from a file.
        """
        of_text = isinstance(error, _TEXT_ERRORS if own else _TEXT_ERRORS + _VALUE_ERRORS)
        damage = None
        if self._run is not None and not of_text:
            damage = damaged(self._run, types=isinstance(error, _VALUE_ERRORS))
        if damage is None:
            return statement.explained(error, [table.name for table in TABLES] + list(self._views))
        path, problem = damage
        return RunError(f"damaged file `{path}`: {problem}", "collect or import the run again, or restore the file")


def _table(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows of an answer. Raises QueryError when they take more memory than an answer may."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
    reader = read(_ARROW_BATCH)
    most, size, batches = 2 * limits.most_memory(), 0, []
    for batch in reader:
        size += batch.nbytes
        if size > most:
            raise QueryError(
                f"the answer takes more than {most >> 20} MiB",
                f"ask for fewer rows or columns at once, or set {limits.MEMORY} to allow more",
            )
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)


def _of_stream(error: Exception) -> duckdb.Error:
    """DuckDB's error that Arrow hands on, in the middle of a stream, as its text: `Conversion Error: ...`."""
    kind = str(error).partition(" Error:")[0].replace(" ", "").lower() + "exception"
    error_class = next((value for name, value in vars(duckdb).items() if name.lower() == kind), duckdb.Error)
    return error_class(str(error)) if issubclass(error_class, duckdb.Error) else duckdb.Error(str(error))


def _config(rows: int | None, stored: int = 0, steps: int = 0) -> dict[str, str | bool | int | float | list[str]]:
    """For tables with so many rows in all (None: SQL that may make rows of its own), and bytes and number of steps.

    What does not fit into the memory goes to the temporary folder.
    """
    threads = 1 if rows is not None and rows <= _ALONE_ROWS else _threads()
    return {"threads": str(threads), "memory_limit": f"{limits.most_memory_for(stored, steps) >> 20}MiB"}


def _threads() -> int:
    """Cores this process may use, at most MAX_THREADS: queries are short and the machine may be shared."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MAX_THREADS)


def _lock(connection: duckdb.DuckDBPyConnection, folder: Path | None, spilled: Path) -> None:
    """Leave only the run's folder to be reached, or nothing, for good. So much may be spilled to a folder.

    DuckDB's bar of the progress of a slow query is written to stdout, among the lines of an answer.
    """
    reached = "" if folder is None else quoted(str(reachable(absolute(folder))) + "/")
    connection.execute(
        "SET enable_progress_bar = false;"
        f"SET temp_directory = {quoted(spilled)};"
        f"SET max_temp_directory_size = {quoted(f'{limits.most_spilled() >> 20}MiB')};"
        f"SET allowed_directories = [{reached}];"
        "SET autoinstall_known_extensions = false;"
        "SET autoload_known_extensions = false;"
        "SET python_enable_replacements = false;"
        "SET enable_external_access = false;"
        "SET lock_configuration = true"
    )


def _checked(query: Query, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as DuckDB takes them. Raises QueryError when they are not those of the header."""
    takes = ", ".join(f"${parameter.name} ({parameter.type})" for parameter in query.takes) or "no parameters"
    hint = f"it takes {takes}"
    names = [parameter.name for parameter in query.takes]
    unknown = [name for name in params if name not in names]
    near = did_you_mean(unknown[0], names) if unknown and near_names(unknown[0], names) else hint
    _refuse(query, "unknown", unknown, near)
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
