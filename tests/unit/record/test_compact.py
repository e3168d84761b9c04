"""One file for each table: the same rows as before, at every moment, and only of a run that is whole."""

import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from copies import files_of, flip

from pipeprof.errors import RunError
from pipeprof.query.engine import Engine
from pipeprof.record import checksums, store
from pipeprof.record.compact import compact
from pipeprof.record.run import COMPACT, load
from pipeprof.record.schema import BY_NAME, TABLES

RANKS = [(0, 0), (0, 2), (0, 10), (1, 2)]
VALUES = {"bigint": 1 << 40, "double": 0.25, "varchar": "größer", "boolean": True}
KILLED = 9
# Argument 1 is a run, 2 a folder for copies of it: in the n-th a compaction ends at its n-th change of a folder.
KILLS = f"""
import os, shutil, sys
from pathlib import Path
from pipeprof.record.compact import compact
run, copies = map(Path, sys.argv[1:])
CHANGES = ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
def child(copy, last):
    left = [last]
    def hook(event, _args):
        if event in CHANGES:
            left[0] -= 1
            if left[0] < 0:
                os._exit({KILLED})
    sys.addaudithook(hook)
    compact(copy)
    os._exit(0)
status, number = {KILLED}, 0
while status == {KILLED}:
    copy = shutil.copytree(run, copies / str(number))
    pid = os.fork()
    if not pid:
        try:
            child(copy, number)
        finally:
            os._exit(1)
    status, number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), number + 1
sys.exit(status)
"""


def row(table, number):
    values = {**VALUES, "bigint": number}
    return tuple(values[column.type] for column in BY_NAME[table].columns)


def sealed(run):
    run.manifest.state = "complete"
    counts = {table.name: store.read(run, table.name).num_rows for table in TABLES}
    run.manifest.tables = {name: rows for name, rows in counts.items() if rows}
    checksums.seal(run)
    run.save()
    return load(run.path)


@pytest.fixture
def run(make_run):
    """Two tables of four ranks, one of which has two files of steps."""
    made = make_run({})
    for number, (rep, rank) in enumerate(RANKS):
        store.write(made, "step", rep, rank, [row("step", 10 * number), (None,) * len(BY_NAME["step"].columns)])
        store.write(made, "op", rep, rank, [row("op", number)])
    store.write(made, "step", 0, 2, [row("step", 99)], part=1)
    return sealed(made)


def rows(run, names=("step", "op"), **how):
    with Engine.open(run, **how) as engine:
        return {name: sorted(map(repr, engine.sql(f'FROM "{name}"').to_pylist())) for name in names}


def everything(path):
    """All rows of a run, which has to be as it was written."""
    run = load(path)
    checksums.refuse_changed(run)
    assert not list(checksums.changes(run))
    return {name: sorted(map(repr, store.read(run, name).to_pylist())) for name in ("step", "op")}


def test_every_compacted_table_has_the_same_rows_for_every_reader(make_run):
    made, names = make_run({}), [table.name for table in TABLES]
    for table in names:
        for number, (rep, rank) in enumerate(RANKS):
            store.write(made, table, rep, rank, [row(table, number), (None,) * len(BY_NAME[table].columns)])
    made = sealed(made)
    before = rows(made, names)
    by_python = {table: sorted(map(repr, store.read(made, table).to_pylist())) for table in names}
    assert compact(made.path) == (len(RANKS) * len(names), len(names))
    after = load(made.path)
    assert rows(after, names) == rows(after, names, files=False) == before
    assert {table: sorted(map(repr, store.read(after, table).to_pylist())) for table in names} == by_python
    for table in names:
        (path,) = after.files(table)
        assert path.name == COMPACT
        assert store.places(path) == set(RANKS)


def test_rows_are_ordered_by_repetition_and_rank_and_the_statistics_say_which_are_where(run, monkeypatch):
    monkeypatch.setattr(store, "ROWS_PER_GROUP", 2)
    compact(run.path)
    with pq.ParquetFile(run.path / "step" / COMPACT) as file:
        keys = file.read(columns=["rep", "rank"]).to_pylist()
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [(key["rep"], key["rank"]) for key in keys] == sorted((key["rep"], key["rank"]) for key in keys)
    assert len(groups) > 2
    assert all(group.column(at).statistics.has_min_max for group in groups for at in (0, 1))


def test_large_tables_are_views_of_the_file_and_answer_the_same(run, monkeypatch):
    before = rows(run)
    monkeypatch.setattr("pipeprof.query.tables.MEMORY_BYTES", 0)
    compact(run.path)
    assert rows(load(run.path)) == rows(load(run.path), files=False) == before


def test_a_column_that_an_older_pipeprof_did_not_write_is_null(run):
    for path in run.files("step"):
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["updates"]), path)
    run = sealed(run)
    before = rows(run)
    compact(run.path)
    assert rows(load(run.path)) == before


def test_a_compaction_that_is_killed_anywhere_loses_and_doubles_nothing(run, tmp_path):
    before = everything(run.path)
    copies = tmp_path / "copies"
    copies.mkdir()
    done = subprocess.run([sys.executable, "-c", KILLS, run.path, copies], check=False)
    assert done.returncode == 0
    folders = sorted(copies.iterdir(), key=lambda path: int(path.name))
    switched = [f"step/{COMPACT}" in load(folder).manifest.parts for folder in folders]
    assert switched == sorted(switched), "once it counts, it counts"
    assert switched.count(False) >= 3
    assert switched.count(True) >= 3
    for folder in folders:
        assert everything(folder) == before
        compact(folder)
        assert everything(folder) == before
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        files = [name for name in files if not name.startswith(".run.json.")]  # as whatever is killed may leave it
        assert files == [f"op/{COMPACT}", "run.json", f"step/{COMPACT}"]


def test_a_file_that_the_manifest_does_not_note_counts_for_nothing(run):
    before = everything(run.path)
    shutil.copyfile(run.files("step")[0], run.path / "step" / COMPACT)
    assert everything(run.path) == before


def is_of_state(state):
    return lambda run: setattr(run.manifest, "state", state)


def has_lost_a_file(run):
    run.manifest.parts = None
    run.files("step")[0].unlink()


@pytest.mark.parametrize(("change", "why"), [
    (is_of_state("partial"), "is partial: only complete runs are compacted"),
    (is_of_state("failed"), "is failed: only complete runs are compacted"),
    (lambda run: run.spool.mkdir(), "still has its spool"),
    (lambda run: flip(run.path / "step/rep=0/rank=10/part-00000.parquet", 10), "=10/.*: it was changed after"),
    (has_lost_a_file, "rows, 9 were written"), (None, "No space left on device"),
])  # fmt: skip
def test_a_run_that_cannot_be_compacted_stays_as_it_is(run, monkeypatch, change, why):
    def full(*_args, **_how):
        raise OSError(28, "No space left on device")

    if change is None:
        monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    else:
        change(run)
        run.save()
    before = files_of(run.path)
    with pytest.raises(RunError, match=why):
        compact(run.path)
    assert files_of(run.path) == before


def test_a_second_compaction_changes_nothing_and_a_compact_file_that_is_changed_or_gone_is_found(run):
    compact(run.path)
    before = files_of(run.path)
    assert compact(run.path) == (2, 2)
    assert files_of(run.path) == before
    path = run.path / "step" / COMPACT
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(RunError, match="it was rewritten"):
        checksums.refuse_changed(load(run.path))
    path.unlink()
    with pytest.raises(RunError, match="it is gone"):
        checksums.refuse_changed(load(run.path))
