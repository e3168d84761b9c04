"""A question has an end: in SQL of the user's, in our own queries, and where DuckDB cannot be interrupted."""

import os
import resource
import subprocess
import sys

import duckdb
import pytest

from pipeprof.errors import QueryError, RunError, UsageError
from pipeprof.query import process_memory, time_limit
from pipeprof.query.engine import Engine

ENDLESS = "SELECT count(*) AS n FROM range(1000000000000) WHERE hash(range) = 1"
STEPS = {"step": [{"step": at, "kind": "train", "start_ns": at, "end_ns": at + 1} for at in range(3)]}


@pytest.fixture
def run(make_run):
    return make_run(STEPS)


def too_long(asked):
    with pytest.raises(QueryError, match="the query took longer than 1 s") as caught:
        asked()
    assert "PIPEPROF_MAX_QUERY_SECONDS" in caught.value.hint


def test_a_question_is_interrupted_and_the_next_one_is_not(run, monkeypatch):
    monkeypatch.setenv("PIPEPROF_MAX_QUERY_SECONDS", "1")
    with Engine.open(run) as engine:
        too_long(lambda: engine.sql(ENDLESS))
        too_long(lambda: engine.sql("SELECT range FROM range(1000000000000) WHERE hash(range) = 1"))
        monkeypatch.delenv("PIPEPROF_MAX_QUERY_SECONDS")
        assert engine.sql("SELECT count(*) AS n FROM step").to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("way", ["rows", "ask"])
def test_our_own_queries_have_an_end_too(run, monkeypatch, way):
    monkeypatch.setenv("PIPEPROF_MAX_QUERY_SECONDS", "1")
    with Engine.open(run) as engine:
        monkeypatch.setattr(engine, "_prepared", lambda _name, _params: (ENDLESS, {}))
        too_long(lambda: getattr(engine, way)("step/summary"))


def test_what_is_done_with_rows_takes_none_of_the_time(run, monkeypatch):
    begun, asked = [], time_limit._watch.asked
    monkeypatch.setattr(time_limit._watch, "begin", lambda one: (asked.add(one), begun.append(len(asked))))
    with Engine.open(run) as engine:
        assert [len(asked) for _ in engine.each("step/slowest", top=3)] == [0, 0, 0]
    assert begun
    assert set(begun) == {1}


def in_a_child(asked):
    """What the exit code of a child process says of it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asked()
        except QueryError as error:
            code = 0 if "took longer than 1 s" in error.message else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_questions_of_a_child_have_an_end_too(run, monkeypatch):
    with Engine.open(run) as engine:
        engine.rows("step/summary")  # the parent watches by now
    monkeypatch.setenv("PIPEPROF_MAX_QUERY_SECONDS", "1")

    def ask():
        with duckdb.connect() as connection, time_limit.in_time(connection):
            connection.execute(ENDLESS)

    assert in_a_child(ask) == 0


def test_a_limit_that_is_no_number_is_refused(run, monkeypatch):
    monkeypatch.setenv("PIPEPROF_MAX_QUERY_SECONDS", "0")
    with Engine.open(run) as engine, pytest.raises(UsageError, match="PIPEPROF_MAX_QUERY_SECONDS is `0`"):
        engine.sql("SELECT 1")


ONE_LONG_VALUE = """
import sys
from pipeprof.cli import hard_end, main
hard_end.GRACE_S = 0
sys.argv = ["pipeprof", "sql", *sys.argv[1:]]
main()
"""


def test_a_value_that_takes_hours_ends_with_the_process(run):
    text = "SELECT levenshtein(repeat('a', 9000000), repeat('b', 9000000))"
    done = subprocess.run(
        [sys.executable, "-c", ONE_LONG_VALUE, str(run.path), text], capture_output=True, text=True, check=False,
        env={**os.environ, "PIPEPROF_MAX_QUERY_SECONDS": "1"}, timeout=240,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: the query took longer than 1 s\nhint: ")


IN_PYTHON = """
import sys
import pipeprof
from pipeprof.errors import QueryError
with pipeprof.open(sys.argv[1]) as run:
    try:
        run.sql("SELECT length(repeat('x', 4000000000))")
    except QueryError as error:
        print(error.hint)
    print(len(run.sql("SELECT * FROM step")))
"""


def test_memory_has_the_same_limit_in_python(run):
    run.manifest.state = "complete"
    run.save()
    done = subprocess.run(
        [sys.executable, "-c", IN_PYTHON, str(run.path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PIPEPROF_MAX_MEMORY_MIB": "128"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "PIPEPROF_MAX_MEMORY_MIB to allow more" in done.stdout
    assert done.stdout.endswith("\n3\n")


def test_the_limit_of_memory_is_taken_away_by_the_last_that_asks():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    first, second = process_memory.at_most(1 << 33), process_memory.at_most(1 << 34)
    first.__enter__()
    held = resource.getrlimit(resource.RLIMIT_DATA)
    second.__enter__()
    first.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == held != before
    second.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize("table", ["pipeline", "pipeline_op"])
def test_what_is_there_again_does_not_multiply_every_other_table(make_run, table):
    row = {"pipeline_id": 0} | ({"op_id": 1} if table == "pipeline_op" else {"created_ns": 5})
    rows = [row] * 500
    with pytest.raises(RunError, match=f"damaged table `{table}` of .*: found 500 rows with the same rep, rank, pipe"):
        Engine.open(make_run({table: rows}))
    Engine.open(make_run({table: rows[:1]})).close()
