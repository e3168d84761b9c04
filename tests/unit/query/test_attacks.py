"""SQL that tries to write, to look outside of the run, or to leave something behind: none of it does.

Each attack is asked twice: as a user would, where the parse tree is looked at, and past that look, on the connection
itself, which can open no file. The run is read from memory and from files.
"""

import itertools

import duckdb
import pytest
from every import every

from pipeprof.errors import QueryError
from pipeprof.query import tables
from pipeprof.query.engine import Engine

BESIDE = "what lies beside the run"
WRITERS = [
    "COPY (SELECT 1) TO '{run}/run.json'", "COPY (SELECT 1) TO '{part}' (FORMAT parquet)",
    "COPY (SELECT * REPLACE (end_ns * 2 AS end_ns) FROM step) TO '{part}' (FORMAT parquet)",
    "COPY step TO '{run}/step' (FORMAT parquet, PARTITION_BY (rep, rank), OVERWRITE_OR_IGNORE true)",
    "COPY (SELECT 1) TO '{beside}'", "COPY (SELECT 1) TO '{run}/new.csv'", "COPY (SELECT 1) TO '{run}/../new.csv'",
    "INSERT INTO step SELECT * FROM step", "UPDATE step SET end_ns = 0", "DELETE FROM step", "UPDATE EXTENSIONS",
    "UPDATE EXTENSIONS (json)",
]  # fmt: skip
WRAPPERS = [
    "{0}", "WITH a AS ({0}) SELECT 1", "WITH a AS ({0}) FROM a", "WITH a AS MATERIALIZED ({0}) FROM a",
    "WITH b AS (SELECT 1), a AS ({0}) SELECT * FROM b, a", "SELECT * FROM (WITH a AS ({0}) SELECT 1)",
    "SELECT (WITH a AS ({0}) SELECT 1)", "SELECT 1 WHERE EXISTS (WITH a AS ({0}) FROM a)",
    "SELECT 1 UNION ALL (WITH a AS ({0}) SELECT 1)", "EXPLAIN ANALYZE {0}", "EXPLAIN (ANALYZE, FORMAT json) {0}",
    "explain/**/analyze WITH a AS ({0}) SELECT 1", "/**/explain (analyze) /* SELECT */ {0}",
    "-- harmless\nEXPLAIN ANALYZE WITH a AS ({0}) SELECT 1", "DESCRIBE WITH a AS ({0}) FROM a",
    "SUMMARIZE WITH a AS ({0}) FROM a", "WITH RECURSIVE r AS (SELECT 1 UNION ALL (WITH a AS ({0}) SELECT 1)) FROM r",
    "FROM step JOIN (WITH a AS ({0}) FROM a) ON true", "SELECT list_transform([1], x -> (WITH a AS ({0}) SELECT 1))",
]  # fmt: skip
OTHERS = [
    "ATTACH '{run}/new.db'", "ATTACH '{beside}' AS other (READ_ONLY)", "CREATE TABLE kept AS SELECT 1",
    "CREATE TEMP TABLE kept AS SELECT 1", "CREATE MACRO harmless() AS 1", "CREATE OR REPLACE VIEW step AS SELECT 1",
    "DROP VIEW IF EXISTS step_phase", "ALTER TABLE step RENAME TO gone", "EXPORT DATABASE '{run}/all'",
    "IMPORT DATABASE '{run}'", "INSTALL httpfs", "LOAD httpfs", "SET allowed_directories = ['/']",
    "SET enable_external_access = true", "SET GLOBAL lock_configuration = false", "RESET lock_configuration",
    "PRAGMA add_parquet_key('k', '0123456789112345')", "PRAGMA enable_profiling", "CALL pragma_version()",
    "CALL enable_logging()", "CHECKPOINT", "FORCE CHECKPOINT", "VACUUM", "ANALYZE", "BEGIN", "SET threads = 1",
    "PIVOT step ON kind USING count(*)", "PREPARE q AS SELECT 1", "PREPARE p AS COPY (SELECT 1) TO '{run}/run.json'",
    "EXECUTE p", "USE memory.main", "COMMENT ON TABLE step IS 'x'", "CREATE SECRET s (TYPE s3)", "TRUNCATE step",
    "MERGE INTO step USING step AS s ON true WHEN MATCHED THEN DELETE", "SELECT nextval('s')", "SELECT setseed(0.5)",
    "SELECT sleep_ms(10)", "SELECT write_log('x')", "SELECT getenv('HOME')",
    "FROM query('COPY (SELECT 1) TO ''{run}/run.json''')", "FROM query_table('{beside}')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))", "PRAGMA json_execute_serialized_sql('x')",
    "FROM read_text('{beside}')", "FROM read_text('{run}/run.json')", "FROM read_text('{run}/../{name}')",
    "FROM read_blob('/proc/self/environ')", "FROM glob('{run}/../*')", "FROM glob('/etc/*')", "FROM '{beside}'",
    "FROM '{run}/../{name}'", "FROM read_csv('/etc/passwd')", "FROM read_csv('https://example.com/a.csv')",
    "FROM read_json('/etc/passwd')", "FROM read_parquet('{part}')", "FROM parquet_metadata('{part}')",
    "FROM parquet_kv_metadata('{part}')", "FROM sniff_csv('/etc/passwd')", "FROM sqlite_scan('/etc/passwd', 't')",
    "FROM read_duckdb('{beside}')", "FROM arrow_scan(1, 2, 3)", "FROM pandas_scan(1)", "FROM python_map_function(1)",
    "FROM duckdb_secrets()", "FROM which_secret('s3://a', 's3')", "FROM checkpoint()", "FROM force_checkpoint()",
    "FROM truncate_duckdb_logs()", "FROM enable_logging()", "FROM duckdb_logs_parsed('x')",
    "WITH a AS (FROM read_text('{beside}')) SELECT content FROM a", "SELECT (FROM read_text('{beside}'))",
    "EXPLAIN ANALYZE FROM read_text('{beside}')", "SELECT 1; COPY (SELECT 1) TO '{run}/run.json'",
    "SELECT 1 /* */; DELETE FROM step",
]  # fmt: skip
PRODUCT = [wrapper.format(writer) for writer, wrapper in itertools.product(WRITERS, WRAPPERS)]
ATTACKS = PRODUCT + OTHERS
READS = [
    "SELECT count(*) FROM step", "WITH a AS (SELECT * FROM step) SELECT median(end_ns - start_ns) FROM a",
    "WITH a AS (SELECT 1 AS n) SELECT n FROM a;", "FROM step", "VALUES (1)", "EXPLAIN SELECT * FROM step",
    "EXPLAIN ANALYZE SELECT * FROM step", "explain (format json) SELECT * FROM step",
    "/* why */ EXPLAIN -- so\n SELECT * FROM step", "SUMMARIZE step", "DESCRIBE step", "DESCRIBE SELECT * FROM step",
    "SHOW TABLES", "FROM step_phase", "FROM step ANTI JOIN step AS other USING (step)",
    "PIVOT step ON kind IN ('train') USING count(*)",
    "SELECT unnest(range(3)), random(), regexp_extract('a1', '[0-9]')",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
    "FROM (VALUES (1), (2)) AS t(x) QUALIFY row_number() OVER () = 1", "SELECT json_extract('{\"a\": 1}', '$.a')",
    "FROM duckdb_columns()",
]  # fmt: skip


@pytest.fixture
def run(make_run):
    steps = [{"step": step, "kind": "train", "start_ns": step, "end_ns": step + 1} for step in range(3)]
    made = make_run({"step": steps})
    made.path.with_name("beside.txt").write_text(BESIDE, encoding="utf-8")
    return made


@pytest.fixture(params=["memory", "files"])
def engine(request, run, monkeypatch):
    if request.param == "files":
        monkeypatch.setattr(tables, "MEMORY_BYTES", 0)
    with Engine.open(run, lazily=True) as opened:
        yield opened


def everything(run):
    """Each file at and beside the run with its bytes."""
    root = run.path.parent
    return {path.relative_to(root): path.is_file() and path.read_bytes() for path in root.rglob("*")}


def aimed(attack, run):
    names = {"{run}": run.path, "{part}": run.files("step")[0], "{beside}": run.path.with_name("beside.txt")}
    for word, path in names.items():
        attack = attack.replace(word, str(path))
    return attack.replace("{name}", "beside.txt")


def answer(engine, text):
    """What a user sees."""
    try:
        return str(engine.sql(text).to_pylist())
    except QueryError as error:
        return f"refused: {error}"


def test_no_attack_passes(engine, run):
    assert len(set(ATTACKS)) >= 150
    before = everything(run)
    answers = {attack: answer(engine, aimed(attack, run)) for attack in ATTACKS}
    assert [attack for attack, text in answers.items() if not text.startswith("refused: ") or BESIDE in text] == []
    assert everything(run) == before
    assert engine.sql("SELECT count(*) AS n FROM step").to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("attacks", [PRODUCT, OTHERS], ids=["written", "others"])
def test_past_the_check_no_file_can_be_opened(run, attacks):
    before = everything(run)
    with Engine.open(run, files=False) as engine:
        for attack in attacks:
            cursor = engine._connection.cursor()  # a transaction of its own
            try:
                rows = cursor.execute(aimed(attack, run)).fetchall()
            except duckdb.Error as error:
                rows = [str(error)]
            assert BESIDE not in str(rows), attack
    assert everything(run) == before


@every(READS)
def test_reading_is_possible(text, engine):
    assert (engine.sql(text).num_rows > 0) is ("ANTI JOIN" not in text)


def test_sql_that_is_no_text_is_refused(make_run):
    with Engine.open(make_run({})) as engine, pytest.raises(QueryError, match=r"the SQL is not UTF-8: `SELECT '.xff'`"):
        engine.sql("SELECT '\udcff'")
