"""Types for the rows of queries, from their headers."""

import typing

import pytest

from pipeprof.query import catalog
from pipeprof.query.header import PYTHON_TYPES
from pipeprof.query.rows import HostRoom, LoopCall, Row, typed

HINTS = {"HostRoom": typing.get_type_hints(HostRoom), "LoopCall": typing.get_type_hints(LoopCall)}


JUDGED = {"JudgedStage": ["kind"], "JudgedSink": ["stage"]}  # what a verdict adds


def test_a_type_has_the_columns_of_its_query_in_their_order():
    for kind in Row.__subclasses__():
        columns = [field.name for field in catalog.find(kind.query).gives] + JUDGED.get(kind.__name__, [])
        assert list(kind.__struct_fields__) == columns, kind


def test_a_column_may_be_none_where_its_header_says_so():
    for kind in (HostRoom, LoopCall):
        for field in catalog.find(kind.query).gives:
            plain = PYTHON_TYPES[field.type]
            assert HINTS[kind.__name__][field.name] == (plain | None if field.nullable else plain)
    assert HINTS["HostRoom"]["idle_share"] == float | None
    assert HINTS["HostRoom"]["samples"] is int


def test_rows_cannot_be_changed_and_have_no_other_columns():
    columns = dict.fromkeys(LoopCall.__struct_fields__, 0)
    (row,) = typed(LoopCall, [columns | {"rank": 3}])
    assert row.rank == 3
    with pytest.raises(AttributeError):
        row.rank = 4
    with pytest.raises(TypeError):
        typed(LoopCall, [columns | {"misspelt": 1}])
    with pytest.raises(TypeError):
        typed(LoopCall, [{"rank": 3}])


def test_an_engine_gives_the_rows_of_a_query_typed(make_run):
    from pipeprof.query.engine import Engine

    run = make_run({"cpu_room": []})
    with Engine.open(run) as engine:
        assert engine.typed(HostRoom) == typed(HostRoom, engine.rows("host/room"))
