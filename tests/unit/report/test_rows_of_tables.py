"""Rows of any query as a table, CSV and JSON."""

import json

import pytest

import pipeprof
from pipeprof.errors import QueryError
from pipeprof.query.engine import Engine
from pipeprof.report.rows import show_rows

FAR = "SELECT 1 AS n, DATE 'infinity' AS never, TIMESTAMP '-infinity' AS ever, DATE '290000-01-01' AS late, DATE '2026-01-02' AS day"


ODD = [
    ("TIME '24:00:00'", "24:00:00"), ("[TIME '24:00:00']", "['24:00:00']"), ("{'a': TIME '24:00:00'}", "{'a': '24:00:00'}"),
    ("[DATE 'infinity']", "[infinity]"), ("MAP {'a': DATE '-infinity'}", "{a=-infinity}"), ("TIMESTAMPTZ 'infinity'", "infinity"),
]  # fmt: skip


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


@pytest.mark.parametrize(("value", "shown"), ODD)
def test_a_time_that_python_has_not_is_shown_as_duckdb_shows_it(make_run, capsys, value, shown):
    with Engine.open(make_run({"step": []}), lazily=True) as engine:
        show_rows(engine.sql(f"SELECT {value} AS t"), "json")
    assert json.loads(capsys.readouterr().out)[0]["t"].replace("'", "") == shown.replace("'", "")


@pytest.mark.parametrize("value", [value for value, _ in ODD] + ["DATE '290000-01-01'", "TIMESTAMP_NS 'infinity'"])
def test_in_python_it_is_an_error_that_names_the_column(make_run, value):
    """pandas would end with an error of its own, or show another time."""
    run = make_run({"step": []})
    run.manifest.state = "complete"
    run.save()
    with pipeprof.open(run.path) as opened, pytest.raises(QueryError, match="the column `t` holds a time") as caught:
        opened.sql(f"SELECT {value} AS t")
    assert "VARCHAR" in caught.value.hint


def test_times_that_python_has_are_handed_over(make_run):
    run = make_run({"step": []})
    run.manifest.state = "complete"
    run.save()
    with pipeprof.open(run.path) as opened:
        row = opened.sql("SELECT TIME '23:59:59' AS t, DATE '9999-12-31' AS d, [TIMESTAMP '2026-01-02'] AS l").iloc[0]
    assert (str(row["t"]), str(row["d"])) == ("23:59:59", "9999-12-31")
