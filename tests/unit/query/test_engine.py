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


def test_a_query_answers_with_an_arrow_table(engine):
    table = engine.ask("step/slowest", top=1)
    assert isinstance(table, pa.Table)
    assert table.select(["rep", "rank", "dur_ns"]).to_pylist() == [
        {"rep": 0, "rank": 0, "dur_ns": 30},
        {"rep": 2, "rank": 3, "dur_ns": 10},
    ]
    assert table.schema.field("dur_ns").type == pa.int64()


def test_a_short_answer_is_asked_for_once(engine, monkeypatch):
    """And whoever changes its rows changes those of nobody else."""
    first = engine.rows("step/slowest", top=1)
    first[0]["dur_ns"] = 0
    monkeypatch.setattr(engine, "_asked", lambda name, params: [{"asked": (name, dict(params))}])
    assert [row["dur_ns"] for row in engine.rows("step/slowest", top=1)] == [30, 10]
    assert engine.rows("step/slowest", top=2) == [{"asked": ("step/slowest", {"top": 2})}]


def test_rows_are_dicts(engine):
    assert engine.rows("step/summary")[0]["mean_ns"] == 20.0


def test_what_has_no_rows_for_want_of_a_table_is_not_asked(engine, monkeypatch):
    assert engine.rows("diagnose/load") == engine.rows("op/totals", group_by="type", top=1) == []
    assert engine._defined == set()
    assert len(engine.rows("step/phase_summary")) > 0
    with pytest.raises(QueryError, match="missing parameter"):
        engine.rows("op/totals")


def test_a_view_without_rows_has_the_columns_of_its_own_query(run):
    with Engine.open(run) as one, Engine.open(run) as other:
        other._has_none = lambda _query: False
        for name in ("pipeline_load", "comm_part", "step_part"):
            assert one.view(name).schema == other.view(name).schema
            assert one.view(name).num_rows == other.view(name).num_rows == 0


def test_columns_come_in_the_order_of_the_schema_behind_rep_and_rank(engine):
    table = engine.sql("SELECT * FROM step")
    assert table.column_names[:5] == ["rep", "rank", "step", "kind_step", "kind"]
    assert table.schema.field("rep").type == pa.int64()


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({}, "missing parameter of query `step/slowest`: `$top`"),
        ({"top": 1, "skip": 2}, "unknown parameter of query `step/slowest`: `$skip`"),
        ({"top": "1"}, "`$top` of query `step/slowest` must be bigint, found '1'"),
        ({"top": 1.5}, "must be bigint"),
        ({"top": True}, "must be bigint"),
        ({"top": None}, "must be bigint"),
    ],
)
def test_parameters_must_be_those_of_the_header(engine, params, problem):
    with pytest.raises(QueryError) as caught:
        engine.ask("step/slowest", **params)
    assert problem in caught.value.message
    assert caught.value.hint == "it takes $top (bigint)"


def test_a_whole_number_is_a_double_too(engine):
    assert engine.rows("diagnose/host_call", least=0, library="") == []


def test_a_query_without_parameters_says_so(engine):
    with pytest.raises(QueryError) as caught:
        engine.ask("step/summary", top=1)
    assert caught.value.hint == "it takes no parameters"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n FROM step",
        "WITH a AS (SELECT 1 AS n) SELECT n FROM a;",
        "FROM step",
        "VALUES (1)",
        "EXPLAIN SELECT * FROM step",
        "EXPLAIN ANALYZE SELECT * FROM step",
        "explain (format json) SELECT * FROM step",
        "/* why */ EXPLAIN -- so\n SELECT * FROM step",
        "DESCRIBE step",
        "DESCRIBE SELECT * FROM step",
        "SHOW TABLES",
        "SUMMARIZE step",
        "SELECT * FROM step_phase",
    ],
)
def test_what_only_reads_is_let_through(engine, text):
    assert engine.sql(text).num_rows > 0


@pytest.mark.parametrize(
    "text",
    [
        "COPY (SELECT 1) TO '{}/out.csv'",
        "COPY step TO '{}/out.parquet' (FORMAT parquet)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{}/out.csv'",
        "/**/EXPLAIN/**/ANALYZE COPY (SELECT 1) TO '{}/out.csv'",
        "explain (analyze) copy (SELECT 1) TO '{}/out.csv'",
        "EXPLAIN ANALYZE /* SELECT */ COPY (SELECT 1) TO '{}/out.csv'",
        "EXPORT DATABASE '{}/out'",
        "ATTACH '{}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "RESET enable_external_access",
        "PRAGMA version",
        "CALL pragma_version()",
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE VIEW step AS SELECT 1",
        "DROP VIEW step",
        "INSERT INTO step SELECT * FROM step",
        "UPDATE step SET step = 1",
        "DELETE FROM step",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "PIVOT step ON kind USING count(*)",
    ],
)
def test_what_could_change_something_is_refused(engine, run, text):
    before = sorted(run.path.rglob("*"))
    with pytest.raises(QueryError):
        engine.sql(text.format(run.path))
    assert sorted(run.path.rglob("*")) == before
    assert engine.rows("step/summary")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('https://example.com/a.csv')",
        "SELECT * FROM sqlite_scan('/etc/passwd', 't')",
    ],
)
def test_nothing_outside_the_run_can_be_read(engine, text):
    with pytest.raises(QueryError):
        engine.sql(text)


def test_the_folder_beside_the_run_cannot_be_read(engine, run):
    beside = run.path.with_name(run.path.name + "beside.txt")
    beside.write_text("secret")
    for path in (beside, f"{run.path}/../{beside.name}"):
        with pytest.raises(QueryError, match="found the table function read_text"):
            engine.sql(f"SELECT * FROM read_text('{path}')")  # noqa: S608 - refusing it is the test


def test_variables_of_our_own_program_cannot_be_read(engine):
    secret = pa.table({"a": [1]})
    with pytest.raises(QueryError, match="secret"):
        engine.sql("SELECT * FROM secret")
    assert secret.num_rows == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [("", 0), ("-- nothing", 0), ("SELECT 1; SELECT 2", 2), ("SELECT 1; DROP VIEW step", 2)],
)
def test_exactly_one_statement(engine, text, found):
    with pytest.raises(QueryError, match=f"exactly one SQL statement, found {found}"):
        engine.sql(text)


def test_parameters_in_the_users_sql_are_refused(engine):
    with pytest.raises(QueryError, match=r"found the parameters `\$top`"):
        engine.sql("SELECT * FROM step WHERE step < $top")


def test_an_unknown_table_names_near_ones(engine):
    with pytest.raises(QueryError, match="SQL failed: no such table: `stepp`") as caught:
        engine.sql("SELECT * FROM stepp")
    assert caught.value.hint.startswith("did you mean `step`")


def test_a_table_that_is_near_none_is_answered_with_how_to_list_them(engine):
    with pytest.raises(QueryError) as caught:
        engine.sql("SELECT * FROM customers")
    assert caught.value.hint == "`pipeprof sql RUN` lists tables and columns"


def test_an_unknown_column_names_near_ones(engine):
    with pytest.raises(QueryError) as caught:
        engine.sql("SELECT end_nss FROM step")
    assert "\n" not in caught.value.message
    assert "end_ns" in caught.value.hint


def test_a_syntax_error_shows_where(engine):
    with pytest.raises(QueryError, match="syntax error") as caught:
        engine.sql("SELECT FROM WHERE")
    assert "LINE 1" in caught.value.hint


def damage_end(data):
    return data[:-7]


def damage_start(data):
    return data[:4] + b"\xff" * 16 + data[20:]


@pytest.fixture(params=[0, 1 << 20], ids=["files", "memory"])
def read_from(request, monkeypatch):
    """Tables are read from their files for every query, or once."""
    from pipeprof.query import tables

    monkeypatch.setattr(tables, "MEMORY_BYTES", request.param)


@pytest.mark.usefixtures("read_from")
@pytest.mark.parametrize("damage", [damage_end, damage_start, lambda _: b""])
def test_a_damaged_file_is_named(run, damage):
    path = run.files("step")[1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunError) as caught, Engine.open(run) as engine:
        engine.sql("SELECT * FROM step")
    assert str(path) in caught.value.message


def test_a_value_that_does_not_fit_is_no_damage(engine):
    with pytest.raises(QueryError, match="Could not convert"):
        engine.sql("SELECT CAST(kind AS BIGINT) FROM step")


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
def test_a_column_that_an_older_run_lacks_is_null(run):
    for path in run.files("step"):
        data = pq.ParquetFile(path).read()
        pq.write_table(data.drop_columns(["updates"]), path)
    with Engine.open(run) as engine:
        assert engine.sql("SELECT DISTINCT updates FROM step").to_pylist() == [{"updates": None}]


def test_columns_are_matched_by_name(run):
    path = run.files("step")[0]
    data = pq.ParquetFile(path).read()
    pq.write_table(data.select(data.column_names[::-1]), path)
    with Engine.open(run) as engine:
        assert engine.rows("step/slowest", top=1)[0]["dur_ns"] == 30


@pytest.mark.parametrize("name", ["rep=7", "it's [here]*", "rank=1/lr=0.1", "ü b"])
def test_the_place_of_a_run_does_not_matter(run, tmp_path, name):
    moved = tmp_path / name / "run"
    shutil.copytree(run.path, moved)
    with Engine.open(Run(moved, run.manifest)) as engine:
        assert engine.sql("SELECT DISTINCT rep, rank FROM step ORDER BY rep").to_pylist() == [
            {"rep": 0, "rank": 0},
            {"rep": 2, "rank": 3},
        ]


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


def test_several_engines_stand_side_by_side(make_run):
    one, two = make_run({"step": STEPS}), make_run({"step": STEPS[:1]})
    with Engine.open(one) as first, Engine.open(two) as second:
        assert first.rows("step/summary")[0]["steps"] == 2
        assert second.rows("step/summary")[0]["steps"] == 1


@pytest.mark.parametrize(("most", "own", "users"), [(2, 1, 3), (1, 3, 3)])
def test_threads_that_would_find_nothing_to_do_are_not_started(make_run, monkeypatch, most, own, users):
    monkeypatch.setattr(engine_room, "_ALONE_ROWS", most)
    monkeypatch.setattr(engine_room, "_threads", lambda: 3)
    run = make_run({"step": STEPS})
    run.manifest.tables = {"step": len(STEPS)}
    with Engine.open(run) as engine:
        for one, expected in ((engine, own), (engine._guarded, users)):
            found = one._connection.execute("SELECT current_setting('threads')").fetchone()
            assert found == (expected,)


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


@pytest.mark.parametrize(
    ("files", "values", "kind"), [(16, 1 << 24, "BASE TABLE"), (15, 1 << 24, "VIEW"), (16, 31, "VIEW")]
)
def test_many_files_are_opened_once_if_memory_holds_them(make_run, monkeypatch, files, values, kind):
    from pipeprof.query import tables

    monkeypatch.setattr(tables, "MEMORY_BYTES", 0)
    monkeypatch.setattr(tables, "MEMORY_VALUES", values)
    steps = [{"rank": rank, "step": 0, "kind": "train", "start_ns": 0, "end_ns": 5} for rank in range(files)]
    with Engine.open(make_run({"step": steps})) as engine:
        assert engine.sql("SELECT count(DISTINCT rank) AS ranks FROM step").to_pylist() == [{"ranks": files}]
        assert kind_of(engine, "step") == kind


@pytest.mark.parametrize(("values", "kind"), [(1 << 21, "BASE TABLE"), (31, "VIEW")])
def test_a_small_file_is_read_once_if_it_holds_few_values(make_run, monkeypatch, values, kind):
    monkeypatch.setattr("pipeprof.query.tables.FEW_VALUES", values)
    steps = [{"step": step, "kind": "train", "start_ns": 0, "end_ns": 5} for step in range(8)]
    with Engine.open(make_run({"step": steps})) as engine:
        assert engine.sql("SELECT count(*) AS steps FROM step").to_pylist() == [{"steps": 8}]
        assert kind_of(engine, "step") == kind


def kind_of(engine, table):
    engine._define([table])
    kinds = "SELECT table_type FROM information_schema.tables WHERE table_name = ?"
    ((kind,),) = engine._connection.execute(kinds, [table]).fetchall()
    return kind
