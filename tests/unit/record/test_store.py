"""Parquet files of a run: exactly the schema, whole or not at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every import every

from pipeprof.errors import RunError
from pipeprof.record import store
from pipeprof.record.run import Manifest, Run
from pipeprof.record.schema import BY_NAME, TABLES

VALUES = {"bigint": 1 << 62, "double": 0.25, "varchar": "größer", "boolean": True}
WRONG = {"bigint": "text", "double": "text", "varchar": 7, "boolean": "yes"}


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, Manifest(run_id="x", started_at="x", pipeprof_version="0"))


def row(table):
    return tuple(VALUES[column.type] for column in BY_NAME[table].columns)


@every([table.name for table in TABLES])
def test_a_file_has_exactly_the_schema_and_gives_back_what_was_written(table, run):
    nothing = (None,) * len(BY_NAME[table].columns)
    assert store.write(run, table, 2, 3, [row(table), nothing]) == 2
    (path,) = run.files(table)
    assert path.relative_to(run.path).as_posix() == f"{table}/rep=2/rank=3/part-00000.parquet"
    stored = pq.ParquetFile(path).read()
    assert stored.schema.equals(BY_NAME[table].arrow())
    assert [tuple(one.values()) for one in stored.to_pylist()] == [row(table), nothing]


@every([table.name for table in TABLES])
def test_a_value_of_another_type_is_refused_with_its_column(table, run):
    for index, column in enumerate(BY_NAME[table].columns):
        values = [*row(table)]
        values[index] = WRONG[column.type]
        with pytest.raises(RunError, match=f"column `{column.name}` of table `{table}` does not hold"):
            store.write(run, table, 0, 0, [values])
    assert run.files(table) == []


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 1.5])
def test_a_number_that_is_no_64_bit_integer_is_refused(run, value):
    values = [*row("step")]
    values[0] = value
    with pytest.raises(RunError, match="column `step` of table `step`"):
        store.write(run, "step", 0, 0, [values])


def test_too_few_columns_are_refused_and_no_rows_make_no_file(run):
    with pytest.raises(RunError, match=f"table `step` has {len(BY_NAME['step'].columns)} columns, got 2"):
        store.write(run, "step", 0, 0, [(1, 2)])
    assert store.write(run, "step", 0, 0, []) == 0
    assert list(run.path.iterdir()) == []


def test_a_write_that_was_interrupted_leaves_no_file_or_the_older_one_whole(run, monkeypatch):
    def cut_off(_data, path, **_how):
        path.write_bytes(b"PAR1half")
        raise OSError(28, "No space left on device")

    def files():
        return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}

    for number in (0, 1):
        before = files()
        assert len(before) == number
        with monkeypatch.context() as patch:
            patch.setattr(pq, "write_table", cut_off)
            with pytest.raises(RunError, match=r"cannot write `.*part-00000.parquet`: No space left on device"):
                store.write(run, "step", 0, 0, [row("step")])
        assert files() == before
        for count in (3, 1):  # writing again replaces
            store.write(run, "step", 0, 0, [row("step")] * count)
            assert len(store.read(run, "step")) == count


def test_reading_adds_rep_and_rank_from_the_folders_and_a_missing_table_is_empty_with_all_its_columns(run):
    empty = store.read(run, "queue")
    assert empty.num_rows == 0
    assert empty.schema == pa.schema([("rep", pa.int64()), ("rank", pa.int64()), *BY_NAME["queue"].arrow()])
    for rep, rank in ((0, 0), (0, 10), (2, 1)):
        store.write(run, "queue", rep, rank, [row("queue")])
    data = store.read(run, "queue")
    assert data.column_names == empty.column_names
    assert {(one["rep"], one["rank"]) for one in data.to_pylist()} == {(0, 0), (0, 10), (2, 1)}


def test_files_of_before_a_column_was_added_are_read_with_those_of_now_and_other_types_are_damage(run):
    schema = BY_NAME["step"].arrow()
    store.write(run, "step", 0, 0, [row("step")])
    older = store.partition(run, "step", 1, 0) / store.part_name(0)
    older.parent.mkdir(parents=True)
    pq.write_table(pa.table([pa.array([VALUES["bigint"]])], schema=pa.schema([schema.field("step")])), older)
    both = store.read(run, "step")
    assert both.column("step").to_pylist() == [VALUES["bigint"]] * 2
    assert both.column("kind").to_pylist() == [VALUES["varchar"], None]
    assert both.column_names == ["rep", "rank", *schema.names]
    pq.write_table(pa.table({"step": ["text"]}), older)
    with pytest.raises(RunError, match="damaged files in"):
        store.read(run, "step")
