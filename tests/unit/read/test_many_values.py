"""What files of others may cost: JSON of many small values is refused before it becomes thirty times as large, rows
before they are kept, whichever reader takes them, and CSV files are closed when nobody needs them."""

import gc
from pathlib import Path

import msgspec
import pytest
from ascend_files import write_graph
from kineto_files import training, write_trace
from minddata_files import write_feed

from pipeprof.errors import RunError, SourceError
from pipeprof.query.side import open_measures
from pipeprof.read.foreign import import_path
from pipeprof.read.minddata import fetches, files
from pipeprof.read.source import sheet
from pipeprof.read.spool.finish import open_run
from pipeprof.read.tables.share import Notes
from pipeprof.record import limits
from pipeprof.record.document import refuse_many_values
from pipeprof.report.compare import content as compare_content

MANY = b"{}," * 20_000


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    monkeypatch.setenv(limits.MEMORY, "2")


@pytest.mark.parametrize("data", [b"[" + MANY + b"0]", b"[" * 40_000, b"1," * 40_000, b'{"a":' * 10_000])
def test_values_are_counted_before_they_are_made(data):
    with pytest.raises(msgspec.DecodeError, match=f"its values take more than 2 MiB; .*{limits.MEMORY}"):
        refuse_many_values(data)


def test_one_long_text_is_no_many_values():
    refuse_many_values(b'"' + b"x" * (1 << 22) + b'"')


def test_every_reader_of_whole_documents_counts_them(make_run, tmp_path):
    run = make_run({"step": [{"step": 0, "kind": "train", "start_ns": 0, "end_ns": 1}]})
    path = run.path / "run.json"
    many = path.read_bytes().replace(b'"options": {', b'"options": {"x": [' + MANY + b"0],").replace(b",}", b"}")
    path.write_bytes(many)
    with pytest.raises(RunError, match="its values take more than"):
        open_run(run.path)
    content = b'{"machine_info": {}, "datetime": "", "benchmarks": [], "x": [' + MANY + b"0]}"
    with pytest.raises(RunError, match="its values take more than"):
        compare_content.read(content, "x")
    other = tmp_path / "bench.json"
    other.write_bytes(content)
    with pytest.raises(RunError, match="cannot be compared"):
        open_measures(other)
    other.write_bytes(b'{"op_info": [' + MANY + b"0]}")
    with pytest.raises(SourceError, match="its values take more than"):
        files.read_json(other)


QUEUE = "".join(f"1 16 {at} 3 {at + 100}\n" for at in range(1, 30))
BLOCK = (
    "[V10900] MD(7,x,python):2026-01-01-00:00:00.000.{:03}\n[PROF Dataset]\n"
    "-- MapOp(ID:1): worker_time (avg: 1ms, max: /, min: /, count: 8)\n"
)
READERS = {
    "fetch": (fetches.read_records, QUEUE),
    "device": (lambda path, notes: fetches.read_device_side(path, 1, notes), "GetNext_dequeue_wait 5 6 1\n" * 30),
    "op_service": (files.read_blocks, "".join(map(BLOCK.format, range(30)))),
}


@pytest.mark.parametrize("kind", READERS)
def test_rows_are_counted_before_they_are_kept(kind, tmp_path, monkeypatch):
    read, text = READERS[kind]
    path = tmp_path / "x.txt"
    path.write_text(text, encoding="utf-8")
    assert len(read(path, Notes())) in (29, 30)
    monkeypatch.setenv(limits.ROWS, "10")
    with path.open("a", encoding="utf-8") as file:
        file.write("never read\n")
    with pytest.raises(limits.TooManyRows, match="more than 10 rows of the table"):
        read(path, Notes())


def test_a_file_with_too_many_rows_is_not_left_out_instead(tmp_path, monkeypatch):
    source = tmp_path / "raw"
    source.mkdir()
    write_feed(source)
    (path,) = source.glob("dataset_iterator_profiling*")
    path.write_text("".join(f"1 16 {at} 3 {at + 100}\n" for at in range(1, 5_001)), encoding="utf-8")
    monkeypatch.setenv(limits.ROWS, "4000")
    with pytest.raises(SourceError, match="more than 4,000 rows of the table `fetch`"):
        import_path(source, tmp_path / "run")


def write_kineto(folder):
    write_trace(folder / "x.pt.trace.json", training(3))


@pytest.mark.parametrize("write", [write_graph, write_kineto, write_feed])
def test_too_many_rows_end_the_import_with_the_variable_that_allows_more(write, tmp_path, monkeypatch):
    monkeypatch.delenv(limits.MEMORY)
    source = tmp_path / "raw"
    source.mkdir()
    write(source)
    monkeypatch.setenv(limits.ROWS, "1")
    with pytest.raises(SourceError, match="the files become more than 1 rows of the table `") as caught:
        import_path(source, tmp_path / "run")
    assert limits.ROWS in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
    monkeypatch.setenv(limits.ROWS, "1000000")
    assert import_path(source, tmp_path / "run").manifest.tables


@pytest.fixture
def _no_collection():
    """Objects go when the last one lets go of them, and not before."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collection")
@pytest.mark.parametrize("text", ["", "a,b\n", "\x1f\x8b no gzip", f"{'x' * 20}\n"])
def test_a_sheet_that_nobody_holds_has_no_open_file(tmp_path, monkeypatch, text):
    monkeypatch.setattr(sheet, "FIELD_BYTES", 20)
    path = tmp_path / "op_statistic.csv"
    path.write_bytes(text.encode("latin-1"))
    try:
        there = sheet.Sheet(path).names
    except SourceError as error:
        there = error.message
        error.__traceback__ = None
    assert there
    del there
    assert str(path) not in {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}
