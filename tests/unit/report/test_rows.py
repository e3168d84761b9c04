"""Rows of any query as a table, CSV and JSON."""

import json

import pytest

from pipeprof.query.engine import Engine
from pipeprof.report.rows import show_rows

FAR = "SELECT 1 AS n, DATE 'infinity' AS never, TIMESTAMP '-infinity' AS ever, DATE '290000-01-01' AS late, DATE '2026-01-02' AS day"


@pytest.fixture
def far(make_run):
    with Engine.open(make_run({"step": []}), lazily=True) as engine:
        yield engine.sql(FAR)


def test_times_that_python_has_no_years_for_are_shown_as_duckdb_shows_them(far, capsys):
    show_rows(far, "csv")
    assert capsys.readouterr().out.splitlines()[1] == "1,infinity,-infinity,290000-01-01,2026-01-02"
    show_rows(far, "json")
    assert json.loads(capsys.readouterr().out)[0]["never"] == "infinity"
    show_rows(far, "terminal")
    assert "-infinity" in capsys.readouterr().out
