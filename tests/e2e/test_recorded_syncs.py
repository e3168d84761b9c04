"""The lines of a real training that wait for its network."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.mindspore
STEPS = 16


def test_reading_and_printing_a_loss_are_counted_by_line(pipeprof_in):
    pipeprof = pipeprof_in("syncs")
    recording = pipeprof.collect(pipeprof.script("reads_losses.py", str(STEPS)))
    assert recording.done.returncode == 0, recording.done.stderr
    source = (Path(__file__).parent / "workloads" / "reads_losses.py").read_text(encoding="utf-8").splitlines()
    lines = {
        text: next(at for at, line in enumerate(source, 1) if text in line) for text in ("float(loss)", "print(loss)")
    }
    found = {(row["call"], row["site"].rpartition(":")[2]): 0 for row in recording.rows("sync")}
    for row in recording.rows("sync"):
        found[row["call"], row["site"].rpartition(":")[2]] += row["count"]
        assert row["via"] is None
        assert 0 < row["max_ns"] <= row["total_ns"]
    assert found == {
        ("__float__", str(lines["float(loss)"])): STEPS,
        ("__str__", str(lines["print(loss)"])): STEPS // 4,
    }
    steps = [row["step"] for row in recording.rows("sync") if row["call"] == "__float__"]
    assert steps == list(range(STEPS))
