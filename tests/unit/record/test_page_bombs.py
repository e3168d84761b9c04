"""Small Parquet files that stand for much more, honest and lying, wherever one is read."""

import io
import resource

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquet_bombs import BOMBS, SMALL, lying, one_page, shared_text, table_bytes

from pipeprof.errors import PipeprofError
from pipeprof.query import tables
from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import limits, pages, store
from pipeprof.record.baseline_files import _read_values
from pipeprof.record.run import Share
from pipeprof.record.schema import BY_NAME, TABLES
from pipeprof.report.timeline.read import Source, groups

REFUSED = r"unpacks to more than|take more than|no table|written in a way|failed to allocate|too large"


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    monkeypatch.setenv(limits.MEMORY, str(SMALL))


@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_is_refused_by_the_heads_of_its_pages(kind):
    data = BOMBS[kind]()
    assert len(data) < 1 << 22
    with pytest.raises(ValueError, match=REFUSED):
        pages.parts_of_bytes(pq.ParquetFile(io.BytesIO(data)).metadata, data)


def read_baseline(path):
    return _read_values(path.read_bytes())


def read_timeline(path):
    return [group.read() for group in groups(Source([Share(path, 0, 0)], ("start_ns", "metric"), None))]


def look_for_damage(path):
    problem = tables._problem(path, None)
    if problem:
        raise ValueError(problem)


def read_store(path):
    store._checked(path)


def read_groups(path):
    list(store.row_groups(path))


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("read", [read_baseline, read_timeline, look_for_damage, read_store, read_groups])
def test_no_reader_unpacks_it(kind, read, tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(BOMBS[kind]())
    before = pa.total_allocated_bytes()
    with pytest.raises((ValueError, PipeprofError), match=REFUSED):
        read(path)
    assert pa.total_allocated_bytes() - before < 1 << 24


@pytest.mark.parametrize("kind", ["one page, zstd", "one page, zstd, lying", "shared begins"])
def test_no_question_of_the_user_unpacks_it(kind, make_run, monkeypatch):
    monkeypatch.setattr(tables, "MEMORY_BYTES", 0)  # as if the file were large
    run = make_run({"step": [{"step": 0, "kind": "train", "start_ns": 0, "end_ns": 1}]}, state="complete")
    run.files("step")[0].write_bytes(BOMBS[kind]())
    with Engine.open(open_run(run.path)) as engine, pytest.raises(PipeprofError, match=REFUSED):
        engine.sql("SELECT count(metric) FROM step")


@pytest.mark.parametrize("read", [read_baseline, read_timeline, look_for_damage])
def test_a_long_text_that_many_rows_share_is_kept_once(read, tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(shared_text(20_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB, of 20 GiB and more


def test_a_text_of_every_row_is_counted_before_each_has_its_own(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(shared_text(200))
    before = pa.total_allocated_bytes()
    with pytest.raises(PipeprofError, match=r"damaged file `.*its texts take more than 32 MiB"):
        store._checked(path)
    assert pa.total_allocated_bytes() - before < 1 << 24
    path.write_bytes(shared_text(5))
    assert store._checked(path)["metric"].to_pylist() == ["m" * (1 << 20)] * 5


def test_a_table_that_is_read_through_arrow_is_the_same(make_run, monkeypatch):
    rows = [{"step": at, "kind": "train" if at % 3 else None, "start_ns": at, "end_ns": at + 1} for at in range(300)]
    run = make_run({"step": rows})
    asked = "SELECT kind, count(*) AS n, typeof(any_value(kind)) AS type FROM step GROUP BY kind ORDER BY kind"
    with Engine.open(run, files=False) as engine:
        small = engine.sql(asked).to_pylist()
    monkeypatch.setattr(tables, "MEMORY_BYTES", 0)
    with Engine.open(run, files=False) as engine:
        assert engine.sql(asked).to_pylist() == small
        assert engine.sql("SELECT count(*) AS n FROM step WHERE kind = 'train'").to_pylist() == [{"n": 200}]
    assert [row["n"] for row in small] == [200, 100]


def test_what_is_written_here_is_as_large_as_its_footer_says(tmp_path):
    for table in TABLES:
        schema = BY_NAME[table.name].arrow()
        rows = [{field.name: _value(field.type, at) for field in schema} for at in range(500)]
        path = tmp_path / f"{table.name}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="zstd", row_group_size=200)
        metadata = pq.read_metadata(path)
        found = pages.check(metadata, path)
        assert [part.rows for part in found] == [200, 200, 100]
        for number, part in enumerate(found):
            assert 0 < part.bytes <= metadata.row_group(number).total_byte_size + 8 * 200 * len(schema)


def _value(kind, at):
    return {"int64": at, "double": at / 3, "string": f"name {at}", "bool": bool(at % 2)}[str(kind)]


def test_a_footer_that_lies_does_not_hide_what_the_pages_say(monkeypatch):
    honest = one_page("zstd")
    data = lying(honest)
    metadata, true = (pq.ParquetFile(io.BytesIO(each)).metadata for each in (data, honest))
    assert metadata.row_group(0).column(0).total_uncompressed_size < 1 << 20
    assert true.row_group(0).column(0).total_uncompressed_size > 80 << 20
    with pytest.raises(ValueError, match="unpacks to more than 32 MiB"):
        pages.parts_of_bytes(metadata, data)
    monkeypatch.setenv(limits.MEMORY, "512")  # more can be allowed
    (part,) = pages.parts_of_bytes(true, honest)
    assert part.bytes > 80 << 20


def test_rows_that_are_read_ahead_are_counted_together():
    small, large = pages.Part(1 << 20, 1 << 20), pages.Part(1000, 25 << 20)
    pages.refuse_wide([small, large, small, small, small, large], 1 << 21)
    with pytest.raises(ValueError, match="take more than 64 MiB"):
        pages.refuse_wide([small, large, large, large, small], 1 << 21)


@pytest.mark.parametrize("fill", [b"\xff", b"\x00", b"\x1c", b"\x19"])
@pytest.mark.parametrize("at", [4, 6, 9])
def test_pages_that_are_none_are_refused(at, fill):
    data = bytearray(table_bytes({"value": [float(number) for number in range(1000)]}))
    data[at:60] = fill * (60 - at)
    metadata = pq.ParquetFile(io.BytesIO(bytes(data))).metadata
    with pytest.raises(ValueError, match=r"page of it|lies outside|written in a way"):
        pages.parts_of_bytes(metadata, bytes(data))


@pytest.mark.parametrize("head", [{}, {2: 1}, {2: -1, 3: 1}, {2: None, 3: 1}, {2: {}, 3: 1}, {2: 1, 3: 1, 5: 7}, {2: 1, 3: 1, 7: None},
                                  {2: 1, 3: 1, 8: {1: {}}}, {2: 1, 3: 1, 5: {1: 1, 2: None}}])  # fmt: skip
def test_a_head_whose_fields_are_something_else_is_refused(head):
    with pytest.raises(ValueError, match="a page of it"):
        pages._refuse_odd(head)


def test_no_bit_of_the_heads_ends_in_anything_else():
    data = table_bytes(
        {"value": [float(number) for number in range(50)], "name": [f"n{number}" for number in range(50)]}
    )
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    for at in range(4, len(data) - int.from_bytes(data[-8:-4], "little") - 8):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            try:
                pages.parts_of_bytes(metadata, bytes(changed))
            except ValueError:
                continue
