"""The captures that the cycles of a profiler's schedule leave: one process, one after the other."""

import ascend_files
import pytest
from ascend_files import write_cpu, write_output
from stored_rows import rows

from pipeprof.errors import SourceError
from pipeprof.read.foreign import import_path
from pipeprof.record import store

APART_US = 5_000_000


def two(folder, monkeypatch, *, pid=77, names=("20260101000000000", "20260101000005000")):
    """Two captures of rank 0, 5 s apart; the later one is written first."""
    for number in (1, 0):
        monkeypatch.setattr(ascend_files, "EPOCH_US", ascend_files.EPOCH_US + (APART_US if number else -APART_US))
        write_output(folder / f"host_{77 if number else pid}_{names[number]}_ascend_pt")
    return folder


def test_cycles_of_one_process_are_one_run_in_order_of_time(tmp_path, monkeypatch):
    write_output(tmp_path / "alone")
    alone = import_path(tmp_path / "alone", tmp_path / "one")
    run = import_path(two(tmp_path / "job", monkeypatch), tmp_path / "run")
    assert run.manifest.state == "complete"
    assert [warning.message for warning in run.manifest.warnings] == [
        "2 captures of one process were put one after the other"
    ]
    first, second = rows(run, "step", "step", "start_ns", "end_ns")
    assert (first[0], second[0]) == (0, 1)
    assert [later - earlier for earlier, later in zip(first[1:], second[1:], strict=True)] == [APART_US * 1000] * 2
    for table in ("op", "collective", "step_split", "collective_cost", "rank_link"):
        once = store.read(alone, table).to_pylist()
        again = store.read(run, table).to_pylist()
        assert [row["step"] for row in once] == [0] * len(once)
        assert [row["step"] for row in again] == [0] * len(once) + [1] * len(once)
    assert rows(run, "op_info", "name") == rows(alone, "op_info", "name")


def test_graph_mode_steps_of_a_later_cycle_follow_the_earlier_ones(tmp_path):
    for name in ("20260101000000000", "20260101000005000"):
        write_cpu(tmp_path / "job" / f"host_77_{name}_ascend_ms", steps=3)
    run = import_path(tmp_path / "job", tmp_path / "run")
    assert [row[0] for row in rows(run, "step", "step")] == list(range(6))
    steps = [row[0] for row in rows(run, "op", "step")]
    assert sorted(set(steps)) == list(range(6))
    assert len({steps.count(step) for step in range(6)}) == 1


def test_captures_of_two_processes_are_no_cycles(tmp_path, monkeypatch):
    with pytest.raises(SourceError, match="two files of the same kind for rank 0"):
        import_path(two(tmp_path / "job", monkeypatch, pid=78), tmp_path / "run")
