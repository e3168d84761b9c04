"""PyNative CNNs: from where each operator was launched, and when the backward pass of every step ended."""

import json

import pytest

pytestmark = pytest.mark.mindspore

STEPS = 40
KINDS = [("Momentum", "one", "O0"), ("Adam", "two", "O2"), ("RMSProp", "function", "O0")]
MODULES = {"Conv2D": "conv.py", "BatchNorm": "normalization.py", "MaxPool": "pooling.py", "ReLU": "activation.py"}
EXECUTIONS = """
SELECT op_info.name, op_info.type, op_info.phase, stack.frame, stack.site
FROM op JOIN op_info USING (rep, rank, op_id) LEFT JOIN stack USING (rep, rank, stack_id) WHERE op.step IS NOT NULL
"""


@pytest.fixture(params=KINDS, ids=["-".join(kind) for kind in KINDS])
def trained(request, recorded):
    return request.param, recorded("cnn.py", *request.param, str(STEPS))


def is_right(row, optimizer):
    """Whether the frames of an execution are those of its layer, also of the backward pass, or of the optimizer."""
    frame = row["frame"] or ""
    if row["phase"] == "optimizer":
        return f"{optimizer}.construct" in frame or "cnn.py" in frame
    kind = row["name"].rpartition("/")[2].partition("-op")[0].partition("#")[0]
    module = next((file for begin, file in MODULES.items() if kind.lower().startswith(begin.lower())), "")
    return module in frame and "/optim/" not in frame and bool(frame)


def test_operators_have_the_frames_that_launched_them(trained):
    (optimizer, *_), recording = trained
    rows = recording.sql(EXECUTIONS)
    wrong = [row for row in rows if not is_right(row, optimizer)]
    assert {row["phase"] for row in rows} >= {"forward", "backward", "optimizer"}
    assert len(wrong) <= 0.05 * len(rows), wrong[:5]


def test_layers_whose_operators_have_one_name_are_told_apart(trained):
    _, recording = trained
    rows = recording.sql(EXECUTIONS.replace("stack.frame", "op_info.op_id, stack.frame"))
    assert len({row["op_id"] for row in rows if row["name"].startswith("Default/Conv2D-op")}) == 3


def test_every_step_has_a_backward_end_near_the_scripts_own_clock(trained):
    (_, layout, _), recording = trained
    steps = recording.training()
    assert len(steps) == STEPS
    assert all(step["bp_ns"] is not None for step in steps)
    ends = json.loads(recording.done.stdout.partition("ends ")[2])
    pairs = list(zip(steps, map(recording.clock, ends), strict=True)) if layout != "one" else []
    near = [abs(step["bp_ns"] - end) <= 0.05 * (step["end_ns"] - step["start_ns"]) for step, end in pairs]
    assert near.count(False) <= 0.05 * len(near), [(step["bp_source"], step["bp_ns"] - end) for step, end in pairs]
