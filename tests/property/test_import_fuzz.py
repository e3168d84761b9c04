"""Damaged folders: an import is refused in words, or makes a run that a report opens. Nothing else ever happens."""

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from damages import damage
from dftracer_files import write_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from minddata_files import write_feed, write_sink
from rocprof_files import write_results
from xplane_files import write_profile

from pipeprof.errors import PipeprofError
from pipeprof.read.foreign import import_path
from pipeprof.read.spool.finish import open_run
from pipeprof.record import store
from pipeprof.record.run import MANIFEST
from pipeprof.report import build, json_text

pytestmark = pytest.mark.slow  # makes up its input

MAKERS = {
    "feed": write_feed,
    "sink": write_sink,
    "rocprof": write_results,
    "dftracer": write_lines,
    "xplane": write_profile,
}
FILES = [
    ("feed", "pipeline_profiling_0.json"), ("feed", "minddata_cpu_utilization_0.json"),
    ("feed", "dataset_iterator_profiling_0.txt"), ("feed", "worker_0.log"), ("sink", "minddata_pipeline_raw_0.csv"),
    ("sink", "device_queue_profiling_0.txt"), ("sink", "minddata_aicpu_0.txt"), ("rocprof", "7_results.json"),
    ("dftracer", "trace.pfw"), ("xplane", "here.xplane.pb"),
]  # fmt: skip
REPORTED = set()  # a report takes a second: one for each shape of run
few = settings(max_examples=12, deadline=None)


@contextmanager
def folder(kind):
    place = Path(tempfile.mkdtemp(prefix="pipeprof-fuzz-"))
    try:
        yield MAKERS[kind](place / "raw")
    finally:
        shutil.rmtree(place)


def judge(source):
    """The run's state, or None when the import was refused; whatever was refused has left nothing behind."""
    target = source.parent / "run"
    try:
        import_path(source, target)
    except PipeprofError as error:
        assert error.message  # noqa: PT017 - a refusal is one of two right answers
        assert not target.exists()
        assert [path.name for path in source.parent.iterdir()] == ["raw"]
        return None
    assert target.joinpath(MANIFEST).is_file()
    run = open_run(target)
    assert sum(run.manifest.tables.values()) > 0
    if (shape := shape_of(run)) not in REPORTED:
        document = json.loads(json_text.text(build.build(run)))
        assert document["run"]["state"] == run.manifest.state
        REPORTED.add(shape)
    return run.manifest.state


def shape_of(run):
    """What a report could stumble over: which columns are there, which have nulls, which have very large numbers."""
    shape = [run.manifest.state]
    for table in sorted(run.manifest.tables):
        for name, column in zip((data := store.read(run, table)).column_names, data.columns, strict=True):
            numbers = [value for value in column.to_pylist() if isinstance(value, int)]
            large = max(map(abs, numbers), default=0) > 2**52
            shape.append((table, name, bool(column.null_count), column.null_count == len(column), large))
    return tuple(shape)


@pytest.mark.parametrize("kind", MAKERS)
def test_an_undamaged_folder_is_complete(kind):
    with folder(kind) as source:
        assert judge(source) == "complete"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize(("kind", "name"), FILES)
def test_a_file_may_end_anywhere(kind, name, share):
    with folder(kind) as source:
        data = (source / name).read_bytes()
        (source / name).write_bytes(data[: int(len(data) * share)])
        judge(source)


@pytest.mark.parametrize(("kind", "name"), FILES)
@settings(few, max_examples=40)
@given(seed=st.integers(0, 2**40))
def test_any_bytes_and_values_may_be_wrong(kind, name, seed):
    with folder(kind) as source:
        (source / name).write_bytes(damage((source / name).read_bytes(), seed))
        judge(source)


numbers = st.one_of(st.integers(-3, 20), st.sampled_from([2**62, 2**63, -(2**63), 10**29, 10**40, "x", "²", "1.5", ""]))


@pytest.mark.parametrize(
    "name", ["dataset_iterator_profiling_0.txt", "device_queue_profiling_0.txt", "minddata_aicpu_0.txt"]
)
@few
@given(rows=st.lists(st.lists(numbers, max_size=6), max_size=12))
def test_any_numbers_may_stand_in_a_queue_file(name, rows):
    with folder("feed" if name.startswith("dataset") else "sink") as source:
        word = "GetNext_dequeue_wait " if "aicpu" in name else ""
        text = "".join(word + " ".join(map(str, row)) + "\n" for row in rows)
        source.joinpath(name).write_text(text, encoding="utf-8")
        judge(source)


STAMPS = ["1969-12-31-23:59:59", "2026-09-21-14:13:21", "9999-12-31-23:59:59", "2026-13-41-99:99:99"]
AVERAGES = ["5.48", "0.05", "9" * 13, "999999999999.999999999", "1e400", "/", "nan", ""]


@few
@given(st.lists(st.sampled_from(STAMPS), max_size=6), st.lists(st.sampled_from(AVERAGES), max_size=6))
def test_any_times_may_stand_in_a_log(stamps, averages):
    with folder("feed") as source:
        text = "".join(
            f"[V10900] MD(7,7f,python):{stamp}.017.964 [x.cc:1] G] \n[PROF Dataset]\n"
            f"-- MapOp(ID:1) : worker_time (avg:{average}ms, max: /, min: /, count:{number})\n\n"
            for number, (stamp, average) in enumerate(zip(stamps, averages, strict=False))
        )
        source.joinpath("worker_0.log").write_text(text, encoding="utf-8")
        judge(source)
