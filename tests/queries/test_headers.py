"""Every .sql file: its header says what it does, and its rows can be relied on."""

from operator import attrgetter
from pathlib import Path

import duckdb
import pytest
import sqlglot
from every import every
from needed_rows import needed
from sound_sql import violations
from sqlglot import exp

from pipeprof.query import catalog
from pipeprof.query.engine import Engine
from pipeprof.record.schema import BY_NAME, TABLES

ROOT = Path(__file__).resolve().parents[2]
VIEWS = {catalog.view_name(view): view for view in catalog.views()}
EVERY = (*VIEWS.values(), *catalog.all_queries())
VALUES = {"bigint": 3, "integer": 3, "double": 0.25, "varchar": "x", "boolean": True}

NAME = attrgetter("name")
every_query = every(EVERY, NAME)


def values(query):
    return {parameter.name: VALUES[parameter.type] for parameter in query.takes}


@pytest.fixture(scope="module")
def empty_engine(tmp_path_factory):
    from pipeprof.record.run import Manifest, Run

    folder = tmp_path_factory.mktemp("empty")
    with Engine.open(Run(folder, Manifest(run_id="x", started_at="", pipeprof_version="0"))) as engine:
        engine.sql("SELECT 1")  # the user's SQL may ask any view, so now all of them are there
        yield engine


def test_every_file_is_known():
    files = {path.relative_to(catalog.queries_root()).with_suffix("").as_posix() for path in ROOT.glob("queries/**/*")}
    files -= {path.name for path in ROOT.glob("queries/*")}
    assert files == {query.name for query in EVERY}


@every_query
def test_is_one_statement(query):
    assert len(sqlglot.parse(query.sql, dialect="duckdb")) == 1
    assert len(duckdb.extract_statements(query.sql)) == 1


@every_query
def test_takes_the_parameters_it_uses(query):
    used = duckdb.extract_statements(query.sql)[0].named_parameters
    assert {parameter.name for parameter in query.takes} == set(used)


@every_query
def test_reads_what_it_says(query):
    tree = sqlglot.parse_one(query.sql, dialect="duckdb")
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    touched = {table.name for table in tree.find_all(exp.Table)} - own
    assert set(query.reads) == touched
    assert list(query.reads) == sorted(query.reads)
    assert touched <= BY_NAME.keys() | VIEWS.keys()
    assert not own & (BY_NAME.keys() | VIEWS.keys()), "a CTE hides a table"


@every_query
def test_needs_what_its_joins_need(query):
    assert set(query.needs) == needed(query.sql) & set(query.reads)


@every_query
def test_gives_what_duckdb_says(query, empty_engine):
    empty_engine._define(query.reads)
    described = empty_engine._connection.execute(f"DESCRIBE {query.sql}", values(query) or None).fetchall()
    assert [(field.name, field.type.upper()) for field in query.gives] == [(row[0], row[1]) for row in described]


@every_query
def test_gives_units_with_names_that_end_in_them(query):
    units = {"_ns": "ns", "_bytes": "bytes", "_share": "0..1"}
    for field in query.gives:
        assert all(field.unit == unit for end, unit in units.items() if field.name.endswith(end)), field


@every_query
def test_rows_come_in_the_order_of_their_key(query):
    order = sqlglot.parse_one(query.sql, dialect="duckdb").args.get("order")
    if query.name.startswith("views/"):
        assert order is None
        assert not query.ordered
    else:
        columns = [item.this.name for item in order.expressions]
        assert not any(item.args.get("desc") for item in order.expressions)
        assert query.ordered
        assert columns == list(query.key)


@every_query
def test_does_nothing_that_makes_answers_doubtful(query):
    stored = {column.name for table in TABLES for column in table.columns if column.type == "double"}
    viewed = {field.name for view in VIEWS.values() for field in view.gives if field.type == "double"}
    params = {parameter.name for parameter in query.takes if parameter.type == "double"}
    doubles = frozenset(stored | viewed | params)
    assert violations(query.sql, doubles=doubles, ordered=query.ordered) == []


@every_query
def test_is_short(query):
    assert len(query.sql.splitlines()) < 300
    assert query.sql.endswith("\n")
    assert not query.sql.rstrip().endswith(";")


@every_query
def test_an_empty_run_has_no_rows(query, empty_engine):
    assert empty_engine.ask(query.name, **values(query)).num_rows == 0


@every(TABLES, NAME)
def test_a_table_that_was_not_recorded_is_empty_with_its_columns(table, empty_engine):
    empty_engine._define([table.name])
    described = empty_engine._connection.execute(f'DESCRIBE "{table.name}"').fetchall()
    columns = [(column.name, column.type.upper()) for column in table.columns]
    assert [(row[0], row[1]) for row in described] == [("rep", "BIGINT"), ("rank", "BIGINT"), *columns]


@every((query for query in EVERY if not query.name.startswith("views/")), NAME)
def test_has_a_test_of_its_own(query):
    folder = ROOT / "tests/queries" / query.name.partition("/")[0]
    assert any(f'("{query.name}"' in path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
