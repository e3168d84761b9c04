"""The rollup of a run: equal to what its tables say, written once, and not believed when it is of something else."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from copies import copy_tree

from pipeprof.cli import cli
from pipeprof.errors import RunError
from pipeprof.query.engine import Engine
from pipeprof.read.spool.finish import open_run
from pipeprof.record import checksums, compact
from pipeprof.record.run import load
from pipeprof.report import kept, rollup
from pipeprof.report.diagnosis import data_verdict
from pipeprof.report.overview import overview
from pipeprof.report.summary import median_step_ns

CAPTURES = Path(__file__).resolve().parents[2] / "real" / "captures"
FOLDER = f"{rollup.TABLE}/rows.parquet"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Each stored capture as a run with tables."""
    folder = tmp_path_factory.mktemp("captures")
    found = {}
    for capture in sorted(CAPTURES.iterdir()):
        copy_tree(capture, folder / capture.name)
        found[capture.name] = open_run(folder / capture.name)
        shutil.rmtree(folder / capture.name / "spool", ignore_errors=True)  # which captures keep
    return found


@pytest.fixture
def run(recorded, tmp_path):
    """A run of two ranks that may be changed."""
    shutil.copytree(recorded["2.10-ranks"].path, tmp_path / "run")
    return load(tmp_path / "run")


def raw(run):
    """What the queries of a report say of each rank, in the columns of the rollup."""
    with Engine.open(run) as engine:
        waits, pipelines = engine.rows("step/data_wait"), engine.rows("queue/pipelines")
        found = {(row["rep"], row["rank"]): {} for row in waits}

        def each(query):
            return ((found[row["rep"], row["rank"]], row) for row in engine.rows(query))

        for here, row in each("step/data_wait"):
            here.update(kind=row["kind"], data_wait_share=row["data_wait_share"], timed_steps=row["steps"])
        for here, row in each("step/summary"):
            if row["kind"] == here["kind"]:
                here.update(median_ns=row["median_ns"], p90_ns=row["p90_ns"])
        for here, row in each("step/phase_summary"):
            if row["phase"] != "whole":
                here[f"phase_{row['phase']}_ns"] = row["median_ns"]
        best = ("trace", "split", "parts")  # the last one counts
        for here, row in sorted(each("comm/split"), key=lambda pair: best.index(pair[1]["source"])):
            here.update(comm_share=row["comm_share"], exposed_share=row["exposed_share"])
        for here, row in each("run/account"):
            here["run_ns"] = here.get("run_ns", 0) + row["dur_ns"]
        for here, row in each("host/memory_peak"):
            if row["device"] == "process":
                here["rss_bytes"] = max(here.get("rss_bytes") or 0, row["peak_rss_bytes"] or 0)
        return found, data_verdict(engine, run, waits, pipelines), median_step_ns(engine.rows("step/summary"))


@pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.iterdir()))
def test_the_rollup_says_what_the_tables_say(recorded, name):
    expected, verdict, step_ns = raw(recorded[name])
    rows = rollup.make(recorded[name]).to_pylist()
    assert {(row["rep"], row["rank"]) for row in rows if row["kind"]} == expected.keys()
    for row in rows:
        wanted = expected.get((row["rep"], row["rank"]), {})
        assert row["kind"] == wanted.pop("kind", None)
        assert {column: row[column] for column in wanted} == pytest.approx(wanted, rel=1e-12)
        told = (row["verdict"], row["op_name"], row["op_kind"])
        assert told == (verdict["verdict"], verdict["op_name"], verdict["kind"])
    assert len(expected) == len([row for row in rows if row["kind"]]) > 0
    assert all(row["timed_steps"] > 0 and row["median_ns"] > 0 for row in rows if row["kind"])
    assert rollup.keep(recorded[name]) == (recorded[name].manifest.state == "complete")
    assert overview(recorded[name]).step_ns == step_ns


def test_it_is_written_once_and_makes_the_same_bytes_again(run):
    assert rollup.keep(run)
    once = (run.path / FOLDER).read_bytes()
    assert rollup.keep(run)
    shutil.rmtree(run.path / rollup.TABLE)
    again = load(run.path)
    del again.manifest.parts[FOLDER], again.manifest.tables[rollup.TABLE]
    again.save()
    assert rollup.keep(again)
    assert (run.path / FOLDER).read_bytes() == once
    assert list(checksums.changes(load(run.path))) == []


def test_it_is_read_in_place_of_the_tables(run, monkeypatch):
    rollup.keep(run)
    expected = rollup.make(load(run.path))
    monkeypatch.setattr(rollup, "make", lambda _run: pytest.fail("the tables were asked"))
    assert rollup.rollup_of(load(run.path)).equals(expected)
    assert overview(load(run.path)).data_verdict == expected.column("verdict")[0].as_py()


def test_that_of_other_rules_or_other_tables_is_not_believed(run, monkeypatch):
    rollup.keep(run)
    assert rollup.stored(load(run.path)) is not None
    with monkeypatch.context() as patch:
        patch.setattr(kept, "VERSION", kept.VERSION + 1)
        assert rollup.stored(load(run.path)) is None
    changed = load(run.path)
    changed.manifest.parts["step/rep=0/rank=0/part-00000.parquet"].sha256 = "0" * 64
    assert rollup.stored(changed) is None


def test_one_with_other_columns_is_made_anew_and_a_damaged_one_is_an_error_that_names_the_file(run):
    rollup.keep(run)
    expected = rollup.make(run)
    path = run.path / FOLDER
    pq.write_table(pq.read_table(path).drop_columns(["gain"]), path)
    changed = load(run.path)
    changed.manifest.parts[FOLDER] = checksums.part_of(path)
    changed.save()
    assert rollup.rollup_of(load(run.path)).equals(expected)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"rollup/rows\.parquet"):
        rollup.rollup_of(load(run.path))


@pytest.mark.parametrize("state", ["partial", "failed", "running"])
def test_no_run_that_is_not_complete_is_written_to(run, state):
    run.manifest.state = state
    run.save()
    before = sorted(path.name for path in run.path.iterdir())
    assert not rollup.keep(load(run.path))
    assert sorted(path.name for path in run.path.iterdir()) == before


def test_a_run_of_an_older_pipeprof_is_asked_and_left_as_it_is(run):
    run.manifest.parts = None
    run.save()
    assert not rollup.keep(load(run.path))
    made = rollup.rollup_of(load(run.path))
    assert made.num_rows == 2
    assert made.column("made_of").null_count == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_run_that_may_not_be_written_to_is_asked(run):
    run.path.chmod(0o555)
    try:
        assert not rollup.keep(load(run.path))
        assert rollup.rollup_of(load(run.path)).num_rows == 2
    finally:
        run.path.chmod(0o755)


def test_a_table_that_was_changed_keeps_the_run_as_it_is(run):
    path = next(run.path.glob("step/*/*/*.parquet"))
    pq.write_table(pa.concat_tables([pq.read_table(path)] * 2), path)
    assert not rollup.keep(load(run.path))
    assert not (run.path / rollup.TABLE).exists()


def test_compaction_renews_it(run):
    rollup.keep(run)
    asked = CliRunner().invoke(cli, ["compact", str(run.path)])
    assert asked.exit_code == 0, asked.output
    compacted = load(run.path)
    found = rollup.stored(compacted)
    assert found is not None
    assert found.equals(rollup.make(compacted))
    assert list(checksums.changes(compacted)) == []
    assert {path.name for path in checksums.stored(compacted).values()} == {compact.COMPACT}
