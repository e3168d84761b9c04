"""PyNative steps are divided as the script itself timed them: one process that runs several loops, told apart by theirs."""

import json
from pathlib import Path
from statistics import median

import pytest

pytestmark = pytest.mark.mindspore

SOURCE = Path(__file__).parent / "workloads" / "sections.py"
LOOPS = ("plain", "weights_averaged", "clipped", "accumulated", "two_networks")
PARTS = ("forward", "backward", "gradients", "optimizer", "after")
NEAR = 0.05  # of the step's own work; a step that is cut at the wrong place is off by more than twice that


@pytest.fixture(scope="session")
def divided(recorded):
    """Of the steps of each loop: the script's sections, and the columns of the same step, as shares of their sum.

    Without the first step, and that in which calls of cells are waited for.
    """
    recording = recorded("sections.py", options=("--ops", "all"))
    truth = dict(json.loads(recording.done.stdout.partition("truth ")[2]))
    found = {}
    for number, name in enumerate(LOOPS):
        rows = [row for row in recording.training() if row["pipeline_id"] == number]
        steps = [
            (timed, {part: row[f"{part}_ns"] for part in PARTS})
            for timed, row in list(zip(truth[name], rows, strict=True))[1:]
            if row["forward_ns"] is not None
        ]
        assert len(steps) > len(rows) / 2
        found[name] = [tuple(map(_shares, step)) for step in steps]
    return found


def _shares(step):
    times = {part: step.get(part, 0) for part in PARTS}
    return {part: time / sum(times.values()) for part, time in times.items()}


@pytest.mark.parametrize("loop", LOOPS)
def test_parts_of_a_step_are_what_the_script_timed(divided, loop):
    """In the median step: a wrong cut is wrong in each, a pause between two clocks in one."""
    off = {part: median(found[part] - truth[part] for truth, found in divided[loop]) for part in PARTS}
    assert off == pytest.approx(dict.fromkeys(PARTS, 0.0), abs=NEAR), divided[loop]


def test_the_loops_differ_where_a_wrong_cut_would_not(divided):
    """What is tested is worth the test: each special section takes more of its step than the tolerance."""
    for loop, part in (("weights_averaged", "after"), ("clipped", "gradients"), ("accumulated", "gradients")):
        assert median(truth[part] for truth, _ in divided[loop]) > NEAR, loop


def test_parts_are_the_step_to_the_nanosecond(recorded):
    rows = [
        row for row in recorded("sections.py", options=("--ops", "all")).training() if row["forward_ns"] is not None
    ]
    assert rows
    for row in rows:
        assert row["input_ns"] + sum(row[f"{part}_ns"] for part in PARTS) == row["end_ns"] - row["start_ns"]


def test_the_network_that_runs_twice_is_told_with_its_lines(recorded):
    text = SOURCE.read_text(encoding="utf-8").splitlines()
    lines = {number for number, line in enumerate(text, 1) if line.strip() in ("judge(x)", "trainer.network(x)")}
    (network,) = [
        row
        for row in recorded("sections.py", options=("--ops", "all")).manifest.options["passes"]["rank 0"]
        if row["network"] == "Network"
    ]
    sites = {site["site"] for site in network["sites"] if not site["gradient"]}
    assert sites == {f"{SOURCE}:{line}" for line in lines}


def test_operators_are_of_the_part_in_which_they_were_launched(recorded):
    recording = recorded("sections.py", options=("--ops", "all"))
    phases = recording.sql(
        "SELECT DISTINCT step.pipeline_id AS loop, op_info.phase AS phase FROM op "
        "JOIN op_info USING (rep, rank, op_id) JOIN step USING (rep, rank, step)"
    )
    found = {(LOOPS[row["loop"]], row["phase"]) for row in phases}
    assert ("plain", "gradients") not in found
    assert ("weights_averaged", "after") in found
    assert ("clipped", "gradients") in found


def test_writing_what_was_recorded_is_counted_for_itself(recorded):
    """MindSpore writes an op window in the thread that trains, between two steps: that time is neither's."""
    recording = recorded("sections.py", options=("--ops", "all"))
    (row,) = [row for row in recording.rows("run_part") if row["part"] == "profiling"]
    assert row["count"] >= 2  # opened, and closed
    assert row["dur_ns"] > 0
