"""`ask(name, tables, give="a b", **params)`: hand-made rows in, the query's rows out."""

from contextlib import contextmanager
from itertools import count

import duckdb
import pytest

from pipeprof.query import catalog
from pipeprof.query.engine import Engine
from pipeprof.query.rows import Row

pytest.register_assert_rewrite("query_cases")

TYPED = {kind.query for kind in Row.__subclasses__()}


@pytest.fixture(scope="session")
def engine_of():
    """`engine_of(run)`: an engine in a database of its own. All are of one DuckDB, which takes most of what opening costs.

    What the engine allows, and that each run has a DuckDB, is for the tests of the engine.
    """
    numbers = count()
    with duckdb.connect(":memory:", config={"threads": "1"}) as whole:

        @contextmanager
        def open_run(run):
            name = f"run{next(numbers)}"
            connection = whole.cursor()
            connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
            with Engine(connection, run, files=False) as engine:
                yield engine
            whole.execute(f"DETACH {name}")

        yield open_run


@pytest.fixture
def ask(make_run, engine_of):
    """Rows of a query over a run made of `tables`: as dicts, or as tuples of the columns named in `give`."""

    def rows_of(name, tables, give="", **params):
        with engine_of(make_run(tables)) as engine:
            rows = engine.rows(name, **params)
        if name in TYPED:  # what the types say may not be None
            never_null = [field.name for field in catalog.find(name).gives if not field.nullable]
            nulls = {column for row in rows for column in never_null if row[column] is None}
            assert not nulls, f"the header of {name} does not say when these columns are null"
        columns = give.split()
        return [tuple(row[column] for column in columns) for row in rows] if columns else rows

    return rows_of


@pytest.fixture
def look(make_run, engine_of):
    """As `ask`, for SQL text over tables and views; rows as tuples."""

    def rows_of(text, tables):
        with engine_of(make_run(tables)) as engine:
            return [tuple(row.values()) for row in engine.sql(text).to_pylist()]

    return rows_of
