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
        for row in waits:
            found[row["rep"], row["rank"]] |= {name: row[name] for name in ("kind", "data_wait_share")}
            found[row["rep"], row["rank"]] |= {"timed_steps": row["steps"]}
        for row in engine.rows("step/summary"):
            if row["kind"] == found[row["rep"], row["rank"]]["kind"]:
                found[row["rep"], row["rank"]] |= {"median_ns": row["median_ns"], "p90_ns": row["p90_ns"]}
        for row in engine.rows("step/phase_summary"):
            if row["phase"] != "whole":
                found[row["rep"], row["rank"]][f"phase_{row['phase']}_ns"] = row["median_ns"]
        best = {"parts": 0, "split": 1, "trace": 2}
        for row in sorted(engine.rows("comm/split"), key=lambda row: -best[row["source"]]):
            found[row["rep"], row["rank"]] |= {name: row[name] for name in ("comm_share", "exposed_share")}
        for row in engine.rows("run/account"):
            here = found[row["rep"], row["rank"]]
            here["run_ns"] = here.get("run_ns", 0) + row["dur_ns"]
        for row in engine.rows("host/memory_peak"):
            if row["device"] == "process":
                here = found[row["rep"], row["rank"]]
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
        assert (row["verdict"], row["op_name"], row["op_kind"]) == (
            verdict["verdict"], verdict["op_name"], verdict["kind"],
        )  # fmt: skip
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


def test_one_with_other_columns_is_made_anew(run):
    rollup.keep(run)
    expected = rollup.make(run)
    path = run.path / FOLDER
    pq.write_table(pq.read_table(path).drop_columns(["gain"]), path)
    changed = load(run.path)
    changed.manifest.parts[FOLDER] = checksums.part_of(path)
    changed.save()
    assert rollup.rollup_of(load(run.path)).equals(expected)


def test_a_damaged_one_is_an_error_that_names_the_file(run):
    rollup.keep(run)
    path = run.path / FOLDER
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


def test_the_step_of_a_run_is_the_mean_one_of_its_repetitions():
    steps = {0: (4.0, 5.0), 1: (9.0, 2.0), 2: (6.0, 1.0)}
    rows = [
        {"rep": rep, "rank": rank, "kind": "train", "median_ns": step}
        for rep, ranks in steps.items() for rank, step in enumerate(ranks)
    ]  # fmt: skip
    assert median_step_ns([*rows, {"rep": 3, "rank": 0, "kind": "warmup", "median_ns": 99.0}]) == pytest.approx(
        270 ** (1 / 3)
    )
    assert median_step_ns([]) is None
