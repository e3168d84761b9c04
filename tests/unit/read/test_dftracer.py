"""Traces of DFTracer: an event a line, in two conventions of names; steps are what lies between blocks of computing."""

import gzip
from pathlib import Path

import pytest
from dftracer_files import DLIO, event, written
from stored_rows import rows

from pipeprof.query.engine import Engine
from pipeprof.read.chrome.dialect import Marks
from pipeprof.read.chrome.steps import without
from pipeprof.read.foreign import import_path, recognise
from pipeprof.report.run_verdict import verdict_of
from pipeprof.verdict.calls import STORAGE

CAPTURE = Path(__file__).parents[2] / "real" / "dftracer" / "threads.pfw.gz"
WAITED, COMPUTED = 0.3732, 0.1383  # seconds, as the recorded script's own clock had them


def steps(run):
    return rows(run, "step", "step start_ns end_ns data_wait_ns")


@pytest.fixture
def run_of(tmp_path):
    """`run_of(lines)`: the run of such a trace."""
    return lambda lines, **how: import_path(written(tmp_path / "trace.pfw.gz", lines), tmp_path / "run", **how)


def test_a_step_is_from_one_block_of_computing_to_the_next_and_waits_where_nothing_else_is_known(run_of):
    run = run_of(DLIO)
    assert run.manifest.source == "import:dftracer"
    assert steps(run) == [(0, 0, 500_000, 400_000), (1, 500_000, 1_000_000, 350_000)]
    assert rows(run, "fetch", "step wait_ns") == [(0, 400_000), (1, 50_000), (1, 300_000)]


def test_what_a_forked_process_wrote_again_counts_once_and_is_told(run_of):
    run = run_of([*DLIO, *DLIO[:3]])
    assert len(rows(run, "op", "op_id")) == len(DLIO)
    assert len(steps(run)) == 2
    assert "3 with the id of an earlier one" in run.manifest.warnings[0].message


def test_what_runs_in_a_reader_makes_batches_and_what_is_around_the_computing_is_no_work_of_it(run_of):
    reads = [
        event(9, "read", 700, 800, "POSIX", tid=2),
        event(8, "read", 920, 980, "POSIX", tid=2),
    ]  # the last: cut off
    run = run_of([*DLIO, event(5, "DLIOBenchmark.run", 50, 1200, "dlio_benchmark"), *reads])
    phases = dict(rows(run, "op_info", "name", "phase"))
    assert (phases["NPZReader.open"], phases["read"]) == ("data", "data")
    assert (phases["TorchFramework.compute"], phases["DLIOBenchmark.run"]) == ("other", None)
    with Engine.open(run) as engine:
        shares = {row["part"]: row["share"] for row in engine.rows("diagnose/network_phase")}
    assert shares["other"] == pytest.approx(200 / 1000)
    assert shares["data_wait"] == pytest.approx(750 / 1000)


def test_a_training_that_waits_for_its_readers_is_told_what_they_do(run_of):
    found = verdict_of(run_of(DLIO))
    assert found.verdict.lead.stage.name == "NPZReader.open"
    assert found.diagnosis["fetch_call"]["kind"] == STORAGE


@pytest.mark.parametrize("ending", ["\n", ",\n", "\r\n"])
def test_lines_end_in_any_way_and_a_damaged_one_is_left_out_and_named(tmp_path, ending):
    path = written(tmp_path / "trace.pfw", DLIO, ending)
    damaged = b'"NPZReader.open", "cat": "reader", "pid": "0", "tid": "2", "ts": "610"'
    path.write_bytes(gzip.decompress(path.read_bytes()).replace(damaged, b"\xff{"))
    run = import_path(path, tmp_path / "run")
    assert len(steps(run)) == 2
    assert run.manifest.state == "partial"
    assert "a line that is no event" in run.manifest.warnings[0].message


def test_the_user_may_name_the_steps(run_of):
    assert steps(run_of(DLIO, step="TorchFramework.compute")) == [
        (0, 400_000, 500_000, None),
        (1, 900_000, 1_000_000, None),
    ]


def test_its_own_recording_says_what_the_scripts_clock_did(tmp_path):
    assert recognise(CAPTURE) == "dftracer"
    run = import_path(CAPTURE, tmp_path / "run")
    found = steps(run)
    assert len(found) == 12
    assert sum(row[3] for row in found) / 1e9 == pytest.approx(WAITED, rel=0.02)
    assert verdict_of(run).verdict.lead.stage.name == "data.item"
    names = dict(rows(run, "op_info", "op_id name"))
    computing = sum(dur for op_id, dur in rows(run, "op", "op_id dur_ns") if names[op_id] == "compute.step") / 1e9
    assert computing == pytest.approx(COMPUTED, rel=0.02)


def test_pauses_are_cut_out_of_a_wait():
    parts = without(Marks(7, 10, 100), [Marks(0, 0, 20), Marks(0, 40, 50), Marks(0, 45, 48), Marks(0, 95, 120)])
    assert parts == [Marks(7, 20, 40), Marks(7, 50, 95)]
    assert without(Marks(7, 10, 100), [Marks(0, 0, 200)]) == []
