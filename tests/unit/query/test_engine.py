import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import QueryError, RunError
from pipeprof.query import engine as engine_room
from pipeprof.query.engine import Engine
from pipeprof.query.part import Part
from pipeprof.record.checksums import seal
from pipeprof.record.compact import compact
from pipeprof.record.run import Run, load

STEPS = [
    {"step": 0, "kind": "train", "start_ns": 0, "end_ns": 10, "in_window": False},
    {"step": 1, "kind": "train", "start_ns": 10, "end_ns": 40, "in_window": False},
]


@pytest.fixture
def run(make_run):
    return make_run({"step": [*STEPS, {**STEPS[0], "rank": 3, "rep": 2}]})


@pytest.fixture
def engine(run):
    with Engine.open(run) as opened:
        yield opened


def test_a_query_answers_with_an_arrow_table_and_columns_come_in_the_order_of_the_schema(engine):
    table = engine.ask("step/slowest", top=1)
    assert isinstance(table, pa.Table)
    assert table.select(["rep", "rank", "dur_ns"]).to_pylist() == [
        {"rep": 0, "rank": 0, "dur_ns": 30}, {"rep": 2, "rank": 3, "dur_ns": 10},
    ]  # fmt: skip
    assert table.schema.field("dur_ns").type == pa.int64()
    table = engine.sql("SELECT * FROM step")
    assert table.column_names[:5] == ["rep", "rank", "step", "kind_step", "kind"]
    assert table.schema.field("rep").type == pa.int64()


def test_a_short_answer_is_asked_for_once(engine, monkeypatch):
    """And whoever changes its rows changes those of nobody else."""
    first = engine.rows("step/slowest", top=1)
    first[0]["dur_ns"] = 0
    monkeypatch.setattr(engine, "_asked", lambda name, params: [{"asked": (name, dict(params))}])
    assert [row["dur_ns"] for row in engine.rows("step/slowest", top=1)] == [30, 10]
    assert engine.rows("step/slowest", top=2) == [{"asked": ("step/slowest", {"top": 2})}]


def test_what_has_no_rows_for_want_of_a_table_is_not_asked(engine):
    assert engine.rows("diagnose/load") == engine.rows("op/totals", group_by="type", top=1) == []
    assert engine.rows("diagnose/host_call", least=0, library="") == []  # a whole number is a double too
    assert engine._defined == set()
    assert len(engine.rows("step/phase_summary")) > 0
    assert engine.rows("step/summary")[0]["mean_ns"] == 20.0
    with pytest.raises(QueryError, match="missing parameter"):
        engine.rows("op/totals")


def test_a_view_without_rows_has_the_columns_of_its_own_query(run):
    with Engine.open(run) as one, Engine.open(run) as other:
        other._has_none = lambda _query: False
        for name in ("pipeline_load", "comm_part", "step_part"):
            assert one.view(name).schema == other.view(name).schema
            assert one.view(name).num_rows == other.view(name).num_rows == 0


@pytest.mark.parametrize(("params", "problem"), [
    ({}, "missing parameter of query `step/slowest`: `$top`"),
    ({"top": 1, "skip": 2}, "unknown parameter of query `step/slowest`: `$skip`"),
    ({"top": "1"}, "`$top` of query `step/slowest` must be bigint, found '1'"), ({"top": 1.5}, "must be bigint"),
    ({"top": True}, "must be bigint"), ({"top": None}, "must be bigint"),
])  # fmt: skip
def test_parameters_must_be_those_of_the_header(engine, params, problem):
    with pytest.raises(QueryError) as caught:
        engine.ask("step/slowest", **params)
    assert problem in caught.value.message
    assert caught.value.hint == "it takes $top (bigint)"
    with pytest.raises(QueryError) as caught:
        engine.ask("step/summary", top=1)
    assert caught.value.hint == "it takes no parameters"


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("SELECT * FROM read_text('BESIDE')", "found the table function read_text", ""),
        ("SELECT * FROM read_text('RUN/../beside.txt')", "found the table function read_text", ""),
        ("SELECT * FROM secret", "secret", ""),  # a variable of our own program
        ("", "exactly one SQL statement, found 0", ""), ("-- nothing", "exactly one SQL statement, found 0", ""),
        ("SELECT 1; SELECT 2", "exactly one SQL statement, found 2", ""),
        ("SELECT 1; DROP VIEW step", "exactly one SQL statement, found 2", ""),
        ("SELECT * FROM step WHERE step < $top", "found the parameters `$top`", ""),
        ("SELECT * FROM stepp", "SQL failed: no such table: `stepp`", "did you mean `step`"),
        ("SELECT * FROM customers", "", "`pipeprof sql RUN` lists tables and columns$"),
        ("SELECT end_nss FROM step", "", ".*end_ns"),
        ("SELECT FROM WHERE", "syntax error", "(.|\\n)*LINE 1"),
        ("SELECT CAST(kind AS BIGINT) FROM step", "Could not convert", ""),  # no damage
    ],
)  # fmt: skip
def test_what_cannot_be_answered_or_lies_outside_the_run_is_refused_in_words(engine, run, text, said, hint):
    secret = pa.table({"a": [1]})
    beside = run.path.with_name("beside.txt")
    beside.write_text("secret")
    with pytest.raises(QueryError) as caught:
        engine.sql(text.replace("BESIDE", str(beside)).replace("RUN/", f"{run.path}/"))
    assert said in caught.value.message
    assert re.match(hint, caught.value.hint or "")
    assert hint != ".*end_ns" or "\n" not in caught.value.message
    assert secret.num_rows == 1


@pytest.fixture(params=[0, 1 << 20], ids=["files", "memory"])
def read_from(request, monkeypatch):
    """Tables are read from their files for every query, or once."""
    from pipeprof.query import tables

    monkeypatch.setattr(tables, "MEMORY_BYTES", request.param)


@pytest.mark.usefixtures("read_from")
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: data[:4] + b"\xff" * 16 + data[20:], lambda _: b""]
)
def test_a_damaged_file_is_named(run, damage):
    path = run.files("step")[1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunError) as caught, Engine.open(run) as engine:
        engine.sql("SELECT * FROM step")
    assert str(path) in caught.value.message


@pytest.mark.usefixtures("read_from")
def test_a_file_with_other_types_is_damaged_however_it_is_asked(run):
    path = run.files("step")[1]
    data = pq.ParquetFile(path).read()
    at = data.column_names.index("end_ns")
    pq.write_table(data.set_column(at, "end_ns", pa.array(["soon"] * data.num_rows)), path)
    with (
        pytest.raises(RunError, match="column `end_ns` holds string, expected int64") as caught,
        Engine.open(run) as engine,
    ):
        engine.rows("step/slowest", top=1)
    assert str(path) in caught.value.message


@pytest.mark.usefixtures("read_from")
def test_small_and_large_tables_answer_alike(run):
    with Engine.open(run) as engine:
        assert engine.rows("step/slowest", top=1) == engine.ask("step/slowest", top=1).to_pylist()
        assert engine.sql("SELECT rep, rank, step FROM step ORDER BY ALL").num_rows == 3
        names = {row["name"] for row in engine.sql("SHOW TABLES").to_pylist()}
    assert {"step", "queue", "step_phase"} <= names
    assert not any(" " in name for name in names)


@pytest.mark.usefixtures("read_from")
def test_a_column_that_an_older_run_lacks_is_null_and_the_others_are_matched_by_name(run):
    for path in run.files("step"):
        data = pq.ParquetFile(path).read()
        pq.write_table(data.select(data.column_names[::-1]).drop_columns(["updates"]), path)
    with Engine.open(run) as engine:
        assert engine.sql("SELECT DISTINCT updates FROM step").to_pylist() == [{"updates": None}]
        assert engine.rows("step/slowest", top=1)[0]["dur_ns"] == 30


@pytest.mark.parametrize("name", ["rep=7", "it's [here]*", "rank=1/lr=0.1", "ü b"])
def test_the_place_of_a_run_does_not_matter(run, tmp_path, name):
    moved = tmp_path / name / "run"
    shutil.copytree(run.path, moved)
    with Engine.open(Run(moved, run.manifest)) as engine:
        found = engine.sql("SELECT DISTINCT rep, rank FROM step ORDER BY rep").to_pylist()
    assert found == [{"rep": 0, "rank": 0}, {"rep": 2, "rank": 3}]


def test_a_relative_path_and_a_link_will_do(run, tmp_path, monkeypatch):
    tmp_path.joinpath("link").symlink_to(run.path)
    monkeypatch.chdir(tmp_path)
    for path in (run.path.relative_to(tmp_path), tmp_path / "link"):
        with Engine.open(Run(path, run.manifest)) as engine:
            monkeypatch.chdir("/")
            assert len(engine.rows("step/slowest", top=1)) == 2
        monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("compacted", [False, True])
def test_of_one_rank_nothing_else_is_there(run, compacted):
    if compacted:
        run.manifest.state = "complete"
        seal(run)
        run.save()
        compact(run.path, lambda _text: None)
    found = load(run.path)
    with Engine.open(found, lazily=True, part=Part.of_rank(2, 3)) as engine:
        assert [(row["rank"], row["dur_ns"]) for row in engine.rows("step/slowest", top=9)] == [(3, 10)]
    with Engine.open(found, part=Part.of_rank(0, 3)) as engine:
        assert engine.rows("step/slowest", top=9) == []


def test_no_progress_bar_is_written_between_the_lines_of_an_answer(engine):
    assert engine.sql("SELECT current_setting('enable_progress_bar') AS shown").to_pylist() == [{"shown": False}]
    with Engine.of_tables({}) as other:
        assert other._connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)


@pytest.mark.parametrize(("most", "own", "users"), [(2, 1, 3), (1, 3, 3)])
def test_threads_that_would_find_nothing_to_do_are_not_started(make_run, monkeypatch, most, own, users):
    monkeypatch.setattr(engine_room, "_ALONE_ROWS", most)
    monkeypatch.setattr(engine_room, "_threads", lambda: 3)
    run = make_run({"step": STEPS})
    run.manifest.tables = {"step": len(STEPS)}
    with Engine.open(run) as engine, Engine.open(make_run({"step": STEPS[:1]})) as other:
        for one, expected in ((engine, own), (engine._guarded, users)):
            found = one._connection.execute("SELECT current_setting('threads')").fetchone()
            assert found == (expected,)
        assert (engine.rows("step/summary")[0]["steps"], other.rows("step/summary")[0]["steps"]) == (2, 1)


def test_only_what_the_text_names_is_made_for_it(make_run):
    """Making all views takes longer than most questions; whoever asks for names in general gets them all."""
    with Engine.open(make_run({"step": [{"step": 1, "kind": "train", "start_ns": 0, "end_ns": 1}]})) as engine:
        assert engine.sql("SELECT count(*) AS n FROM Step").to_pylist() == [{"n": 1}]
        assert engine._guarded._defined == set()
        names = {row["name"] for row in engine.sql("SHOW TABLES").to_pylist()}
        assert {"step", "comm_match", "device_op"} <= names
        with pytest.raises(QueryError, match="no such table"):
            engine.sql("SELECT * FROM no_such_table")


def test_ctrl_c_is_no_error_of_the_sql(engine, monkeypatch):
    def interrupted(_relation):
        raise RuntimeError("Query interrupted")  # DuckDB's word for it

    monkeypatch.setattr(engine_room, "_table", interrupted)
    with pytest.raises(RuntimeError, match="Query interrupted"):
        engine.sql("SELECT 1 AS one")


@pytest.mark.parametrize(("files", "steps", "settings", "kind"), [
    (16, 1, {"MEMORY_BYTES": 0, "MEMORY_VALUES": 1 << 24}, "BASE TABLE"),
    (15, 1, {"MEMORY_BYTES": 0, "MEMORY_VALUES": 1 << 24}, "VIEW"),
    (16, 1, {"MEMORY_BYTES": 0, "MEMORY_VALUES": 31}, "VIEW"), (1, 8, {"FEW_VALUES": 1 << 21}, "BASE TABLE"),
    (1, 8, {"FEW_VALUES": 31}, "VIEW"),
])  # fmt: skip
def test_files_are_read_once_if_memory_holds_them(make_run, monkeypatch, files, steps, settings, kind):
    for name, value in settings.items():
        monkeypatch.setattr(f"pipeprof.query.tables.{name}", value)
    row = {"kind": "train", "start_ns": 0, "end_ns": 5}
    rows = [row | {"rank": rank, "step": step} for rank in range(files) for step in range(steps)]
    with Engine.open(make_run({"step": rows})) as engine:
        found = engine.sql("SELECT count(DISTINCT rank) AS ranks, count(*) AS steps FROM step").to_pylist()
        assert found == [{"ranks": files, "steps": files * steps}]
        assert kind_of(engine, "step") == kind


def kind_of(engine, table):
    engine._define([table])
    kinds = "SELECT table_type FROM information_schema.tables WHERE table_name = ?"
    ((kind,),) = engine._connection.execute(kinds, [table]).fetchall()
    return kind
