"""What a run may cost whoever opens it: rows, memory, and files that are none."""

import os
import resource
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import QueryError, RunError
from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import checksums, limits
from pipeprof.record.schema import BY_NAME

STEPS = {"step": [{"step": at, "kind": "train", "start_ns": at, "end_ns": at + 1} for at in range(3)]}


@pytest.fixture
def run(make_run):
    return make_run(STEPS, state="complete")


def with_many_rows(run, rows):
    """The table `step` as a file of a few kB that stands for so many rows."""
    (path,) = run.files("step")
    schema = BY_NAME["step"].arrow()
    table = pa.Table.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)
    pq.write_table(table, path, compression="zstd")
    checksums.seal(run)
    run.save()
    return path.stat().st_size


def replaced(path, kind, outside):
    """What was at the path is outside now; at the path is something of this kind."""
    path.rename(outside)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else outside)


@pytest.mark.parametrize("lazily", [True, False])
def test_a_few_bytes_that_stand_for_millions_of_rows_are_refused(run, lazily):
    size = with_many_rows(run, 3_000_000)
    assert size < 1 << 18
    wanted = rf"damaged table `step` of .*: found 3,000,000 rows in {size:,} bytes, expected at most 1,048,576"
    with pytest.raises(RunError, match=wanted) as caught, Engine.open(open_run(run.path), lazily=lazily) as engine:
        engine.rows("step/summary")
    assert "PIPEPROF_MAX_ROWS" in caught.value.hint


def test_more_rows_can_be_allowed(run, monkeypatch):
    with_many_rows(run, 1_100_000)
    monkeypatch.setenv("PIPEPROF_MAX_ROWS", "2000000")
    with Engine.open(open_run(run.path)) as engine:
        assert engine.sql("SELECT count(*) AS n FROM step").to_pylist() == [{"n": 1_100_000}]


def test_an_answer_is_refused_before_it_fills_the_memory(run, monkeypatch):
    monkeypatch.setenv("PIPEPROF_MAX_MEMORY_MIB", "64")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Engine.open(run) as engine, pytest.raises(QueryError, match="the answer takes more than 128 MiB") as caught:
        engine.sql("SELECT range, repeat(CAST(range AS VARCHAR), 100) AS text FROM range(100000000)")
    assert "PIPEPROF_MAX_MEMORY_MIB" in caught.value.hint
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_what_does_not_fit_in_a_stream_is_still_said_by_duckdb(run):
    texts = "SELECT CASE WHEN range = 99999 THEN 'x' ELSE '1' END AS text FROM range(100000)"
    with Engine.open(run) as engine, pytest.raises(QueryError, match="SQL failed: Could not convert string 'x'"):
        engine.sql(f"SELECT CAST(text AS BIGINT) FROM ({texts})")  # noqa: S608 - made here


def test_an_answer_that_fails_in_the_middle_is_not_asked_again(run, monkeypatch):
    monkeypatch.setenv("PIPEPROF_MAX_MEMORY_MIB", "64")
    asked = []
    with Engine.open(run, files=False) as engine:
        connection = engine._connection
        monkeypatch.setattr(engine, "_connection", Asked(connection, asked))
        with pytest.raises(QueryError, match=r"SQL failed: failed to .*64\.0 MiB used") as caught:
            engine.sql("SELECT range AS a, md5(CAST(range AS VARCHAR)) AS b FROM range(10000000) ORDER BY b")
        monkeypatch.setattr(engine, "_connection", connection)
    assert "PIPEPROF_MAX_MEMORY_MIB" in caught.value.hint
    assert len(asked) == 1


def test_what_is_spilled_has_an_end(run, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PIPEPROF_MAX_MEMORY_MIB", "64")
    monkeypatch.setenv("PIPEPROF_MAX_SPILL_MIB", "16")
    text = "SELECT count(*) AS n FROM (SELECT md5(CAST(range AS VARCHAR)) AS b FROM range(4000000) ORDER BY b OFFSET 1)"
    with Engine.open(run) as engine, pytest.raises(QueryError, match=r"SQL failed: .*16\.0 MiB") as caught:
        engine.sql(text)
    assert "PIPEPROF_MAX_SPILL_MIB" in caught.value.hint
    monkeypatch.delenv("PIPEPROF_MAX_SPILL_MIB")
    with Engine.open(run) as engine:
        assert engine.sql(text).to_pylist() == [{"n": 3_999_999}]


class Asked:
    """A connection that notes what it is asked for rows."""

    def __init__(self, connection, asked):
        self._connection, self._asked = connection, asked

    def sql(self, text, **words):
        self._asked.append(text)
        return self._connection.sql(text, **words)

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "device", "out", "folder out"])
def test_what_is_no_file_of_the_run_is_not_opened(run, tmp_path, kind, sealed):
    (path,) = run.files("step")
    if sealed:
        checksums.seal(run)
        run.save()
    replaced(path.parent if kind == "folder out" else path, kind, tmp_path / "outside")
    with pytest.raises(RunError, match="damaged file `"):
        open_run(run.path)


@pytest.mark.parametrize("kind", ["pipe", "device", "out", "large"])
def test_a_manifest_that_is_no_file_of_the_run_is_not_opened(run, tmp_path, kind):
    path = run.path / "run.json"
    if kind == "large":
        path.write_bytes(b" " * ((1 << 25) + 1))
    else:
        replaced(path, kind, tmp_path / "outside")
    with pytest.raises(RunError, match=r"cannot read `.*run\.json`: it (is|has)"):
        open_run(run.path)


@pytest.mark.parametrize(("name", "value"), [
    ("cpu_cores", "x"), ("cpu_cores", -1), ("memory_bytes", "16 GiB"), ("memory_bytes", [1]), ("environment", []),
    ("environment", {"FP_POINT": 7}), ("mode", {}),
])  # fmt: skip
def test_what_is_done_something_with_has_a_type(run, name, value):
    run.manifest.fingerprint[name] = value
    run.save()
    with pytest.raises(RunError, match=rf"damaged manifest .*\$\.fingerprint\.{name}"):
        open_run(run.path)


ONE_VALUE = """
import sys
from pipeprof.cli import main
sys.argv = ["pipeprof", "sql", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("text", ["SELECT length(repeat('x', 4000000000))", "SELECT length(printf('%2000000000d', 1))"])
def test_one_value_does_not_grow_without_end(run, text):
    done = subprocess.run(
        [sys.executable, "-c", ONE_VALUE, str(run.path), text], capture_output=True, text=True, check=False,
        env={**os.environ, "PIPEPROF_MAX_MEMORY_MIB": "128"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "PIPEPROF_MAX_MEMORY_MIB to allow more" in done.stderr
    assert "Traceback" not in done.stderr


def test_queries_of_ours_keep_more_where_there_are_many_steps(monkeypatch):
    monkeypatch.setattr(limits, "_machine", lambda: 8 << 30)
    assert limits.most_memory_for(1 << 20, 100) == 512 << 20
    assert limits.most_memory_for(1 << 20, 1 << 20) == 1 << 30
    assert limits.most_memory_for(100, 1 << 40) == 512 << 20  # no file of so many bytes has so many rows
    assert limits.most_memory_for(1 << 30, 1 << 40) == 4 << 30
