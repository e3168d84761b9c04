"""Operators of a training in PyTorch: from its own profiler, in windows, with lines; the training is as it was."""

import subprocess
from importlib.util import find_spec

import pytest
from conftest import WORKLOADS, clean_environment, script

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: make test-torch")
STEPS = 4 * 8


def unrecorded(*words):
    command = script("torch_ops.py", *words)
    return subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment(), cwd=WORKLOADS)


def executions(recording):
    """Each execution with its operator."""
    known = {row["op_id"]: row for row in recording.rows("op_info")}
    return [known[row["op_id"]] | row for row in recording.rows("op")]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_step_behind_the_first_has_its_operators_and_no_worker_is_recorded(recorded, workers):
    """Workers are forked at the begin of each epoch, inside the window."""
    recording = recorded("torch_ops.py", "--workers", workers, options=("--ops", "all"))
    plain = unrecorded("--workers", workers)
    assert recording.done.stdout == plain.stdout
    assert "profiler" not in recording.done.stderr  # Kineto tells of each window unless it is told not to
    found = executions(recording)
    by_step = {step: [row for row in found if row["step"] == step] for step in range(1, STEPS)}
    assert all(by_step.values())
    last = by_step[STEPS - 1]
    count = {name: sum(row["type"] == name for row in last) for name in ("aten::conv2d", "aten::addmm", "aten::relu")}
    assert count == {"aten::conv2d": 1, "aten::addmm": 1, "aten::relu": 1}
    phases = {row["type"]: row["phase"] for row in last}
    assert (phases["aten::addmm"], phases["aten::convolution_backward"]) == ("forward", "backward")
    assert {row["phase"] for row in last if row["type"].startswith("aten::addcdiv")} == {"optimizer"}
    assert any((row["type"], row["phase"]) == ("aten::sqrt", "data") for row in last) == (workers == "0")
    assert all(0 <= row["self_ns"] <= row["dur_ns"] for row in found)
    assert [code for code in recording.warned() if code.startswith("probe_failed")] == []


def test_operators_have_the_lines_that_launched_them_and_gradients_those_of_their_forward_operators(recorded):
    recording = recorded("torch_ops.py")
    frames = {row["stack_id"]: row["frame"] for row in recording.rows("stack")}
    lines = (WORKLOADS / "torch_ops.py").read_text(encoding="utf-8").splitlines()
    found = {
        (row["type"], lines[int(frames[row["stack_id"]].partition("(")[2].partition(")")[0]) - 1].strip())
        for row in executions(recording)
        if row["stack_id"] is not None
    }
    convolution = "features = torch.relu(self.conv(pictures))"
    assert {("aten::convolution", convolution), ("aten::convolution_backward", convolution)} <= found
    assert ("aten::addmm", "return self.head(features.flatten(1))") in found
    assert ("aten::addcdiv_", "optimizer.step()") in found


def test_a_profile_of_the_scripts_own_is_whole_and_ends_our_windows(recorded):
    recording = recorded("torch_ops.py", "--profile", "10", options=("--ops", "all"))
    assert recording.done.stdout == unrecorded("--profile", "10").stdout
    assert "ops_left_to_user" in recording.warned()
    assert max(row["step"] for row in recording.rows("op") if row["step"] is not None) <= 10
