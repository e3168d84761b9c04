"""A file of a run that is not as it was written is found, and named: cheaply when the run is opened, wholly on request."""

import hashlib
import os
import shutil

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from copies import flip

from pipeprof.errors import RunError
from pipeprof.record import checksums, store
from pipeprof.record.run import load
from pipeprof.record.schema import BY_NAME

STEP = "step/rep=0/rank=0/part-00000.parquet"


def steps(count, dur=100):
    names = BY_NAME["step"].column_names
    rows = [{"step": i, "kind": "train", "start_ns": i * dur, "end_ns": (i + 1) * dur} for i in range(count)]
    return [[row.get(name) for name in names] for row in rows]


@pytest.fixture
def run(make_run):
    made = make_run({"stage": [{"stage": "start", "start_ns": 0, "dur_ns": 5}]})
    for rep in (0, 1):
        store.write(made, "step", rep, 0, steps(50))
    checksums.seal(made)
    made.save()
    return load(made.path)


def codes(run, **how):
    return [(change.file, change.code) for change in checksums.changes(run, **how)]


def test_every_file_is_sealed_with_its_size_and_the_sha_256_that_other_tools_compute(run, tmp_path):
    assert sorted(run.manifest.parts) == sorted(checksums.stored(run))
    assert len(run.manifest.parts) == 3
    for name, part in run.manifest.parts.items():
        data = run.path.joinpath(name).read_bytes()
        assert (part.bytes, part.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    checksums.refuse_changed(run)
    shutil.copytree(run.path, tmp_path / "elsewhere")
    assert codes(run) == codes(load(tmp_path / "elsewhere")) == []


def test_a_file_of_another_size_is_named_with_both_sizes(run):
    path = run.path / STEP
    before = path.stat().st_size
    store.write(run, "step", 0, 0, steps(70))
    with pytest.raises(RunError) as caught:
        checksums.refuse_changed(run)
    assert f"damaged file `{path}`: it was rewritten after the run was made: found " in caught.value.message
    assert f"{path.stat().st_size:,} bytes, expected {before:,} bytes" in caught.value.message


def test_the_same_rows_with_other_values_are_found_by_the_footer_alone(run):
    path = run.path / STEP
    plain = {"compression": "none", "use_dictionary": False}
    data = pq.ParquetFile(path).read()
    pq.write_table(data, path, **plain)
    checksums.seal(run)
    before = path.stat().st_size
    at = data.column_names.index("end_ns")
    doubled = pc.multiply(data.column(at), 2)
    pq.write_table(data.set_column(at, data.schema.field(at), doubled), path, **plain)
    assert path.stat().st_size == before
    assert codes(run, everything=False) == [(STEP, "footer")]


@pytest.mark.parametrize(("at", "opened", "read"), [(10, [], "content"), (-20, [(STEP, "footer")], "footer")])
def test_a_changed_byte_of_the_footer_is_found_at_once_and_one_of_the_data_by_reading_everything(run, at, opened, read):
    flip(run.path / STEP, at)
    assert codes(run, everything=False) == opened
    assert codes(run) == [(STEP, read)]


def test_a_file_of_holes_is_not_read_to_its_end(run):
    with run.path.joinpath(STEP).open("wb") as file:
        file.truncate(1 << 40)
    assert codes(run) == [(STEP, "unreadable")]
    with pytest.raises(RunError, match="most of them holes"):
        checksums.seal(run)


def test_files_that_were_removed_or_added_are_found(run):
    other = run.path / "step/rep=1/rank=0/part-00000.parquet"
    other.rename(other.with_name("part-00007.parquet"))
    expected = [
        (other.relative_to(run.path).as_posix(), "missing"),
        ("step/rep=1/rank=0/part-00007.parquet", "unknown"),
    ]
    assert codes(run, everything=False) == codes(run) == expected
    with pytest.raises(RunError, match="it is gone: found none, expected a file of"):
        checksums.refuse_changed(run)


@pytest.mark.parametrize("kind", ["pipe", "link", "empty", "cut off"])
def test_what_is_no_whole_file_is_named_and_never_waited_for(run, tmp_path, kind):
    path = run.path / STEP
    data = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        tmp_path.joinpath("same").write_bytes(data)
        path.symlink_to(tmp_path / "same")
    else:
        path.write_bytes(data[: 0 if kind == "empty" else 7])
    found = codes(run)
    assert found == codes(run, everything=False)
    assert found == [(STEP, "unreadable" if kind in ("pipe", "link") else "size")]


def test_a_run_without_checksums_is_opened_and_a_further_repetition_gives_it_none(make_run):
    old = make_run({"step": [{"step": 0, "kind": "train", "start_ns": 0, "end_ns": 1}]})
    assert load(old.path).manifest.parts is None
    checksums.refuse_changed(old)
    assert codes(old) == []
    store.write(old, "step", 1, 0, steps(3))
    checksums.seal(old, [1])
    assert old.manifest.parts is None


def test_what_is_made_again_is_sealed_again_and_a_further_repetition_keeps_what_was_noted_of_others(run):
    store.write(run, "step", 0, 0, steps(70))
    run.files("stage")[0].unlink()
    checksums.seal(run, [0])
    assert codes(run) == []
    flip(run.path / STEP, 10)
    store.write(run, "step", 2, 0, steps(3))
    checksums.seal(run, [2])
    assert codes(run) == [(STEP, "content")]
    assert len(run.manifest.parts) == 3
    checksums.forget(run, [0])
    assert list(run.manifest.parts) == [f"step/rep={rep}/rank=0/part-00000.parquet" for rep in (1, 2)]


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "step/rep=0/rank=0/../../../run.json"])
def test_names_in_the_manifest_open_no_other_file(run, name):
    run.manifest.parts[name] = run.manifest.parts[STEP]
    assert codes(run) == [(name, "missing")]
