"""`ask(name, tables, give="a b", **params)`: hand-made rows in, the query's rows out."""

from __future__ import annotations

import pytest

from pipeprof.query.engine import Engine


@pytest.fixture
def ask(make_run):
    """Rows of a query over a run made of `tables`: as dicts, or as tuples of the columns named in `give`."""

    def rows_of(name, tables, give="", **params):
        with Engine.open(make_run(tables)) as engine:
            rows = engine.rows(name, **params)
        columns = give.split()
        return [tuple(row[column] for column in columns) for row in rows] if columns else rows

    return rows_of


@pytest.fixture
def look(make_run):
    """As `ask`, for SQL text over tables and views; rows as tuples."""

    def rows_of(text, tables):
        with Engine.open(make_run(tables)) as engine:
            return [tuple(row.values()) for row in engine.sql(text).to_pylist()]

    return rows_of
