"""Traces of trainings on a GPU: what limits them against what a change of the training showed, device times against torch.

`lab/real/gpu/record.py --stored` recorded both, on the GPU that truth.json names.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from kineto_files import imported

from pipeprof.query.engine import Engine
from pipeprof.report.build import build

HERE = Path(__file__).resolve().parents[1] / "real" / "gpu"
TRUTH = json.loads((HERE / "truth.json").read_text(encoding="utf-8"))
LIMIT = {"copies": "compute", "host_metrics": "compute", "kernels_small": "compute", "launches_small": "host_gap"}
NEAR = 0.05
NO_WORK = "Command Buffer Full"  # the host waits for room in the GPU's queue; torch gives its length as device time


@pytest.fixture(scope="module", params=LIMIT)
def training(request, tmp_path_factory):
    """Its name, run, and report."""
    run = imported(tmp_path_factory.mktemp(request.param) / "run", HERE / f"{request.param}.pt.trace.json.gz")
    return request.param, run, build(run)


def test_what_limits_the_step_is_named(training):
    name, _, content = training
    assert content["diagnosis"]["network"]["limit"] == LIMIT[name]


@pytest.mark.parametrize("training", ["host_metrics", "launches_small"], indirect=True)
def test_what_the_host_takes_is_what_its_absence_brings(training):
    """Without the metrics on the host, and in a CUDA graph: the device is idle for no less than they bring."""
    name, _, content = training
    idle = content["diagnosis"]["network"]["weights"]["host_gap"]
    assert idle >= 1 - 1 / TRUTH["trainings"][name]["gain"] - NEAR


def test_the_first_screen_says_what_to_do(training):
    name, _, content = training
    said = " ".join(str(line) for line in content["first_screen"].values())
    expected = {
        "copies": ("Copy memory less", "aten::copy_"),
        "host_metrics": ("the device works on operators of the network", "batch_norm"),
        "kernels_small": ("the device works on operators of the network", "batch_norm"),
        "launches_small": ("the device is idle", "Launch fewer and larger operators"),
    }
    for part in expected[name]:
        assert part in said


def test_device_times_are_torchs(training):
    """What each operator of the host launched, by name, in microseconds of `key_averages()`."""
    name, run, _ = training
    with Engine.open(run) as engine:
        rows = engine.rows("op/key_averages", group_by="name", stack_depth=0, python_functions=True)
    ours = defaultdict(float)
    for row in rows:
        if not row["on_device"]:
            ours[row["key"]] += (row["device_self_ns"] or 0) / 1e3
    theirs = {key: time for key, (_, time) in TRUTH["trainings"][name]["device_us"].items() if key != NO_WORK}
    assert {key: time for key, time in ours.items() if time} == pytest.approx(theirs, rel=1e-4, abs=0.5)


def test_a_trace_that_is_cut_off_is_doubted(tmp_path):
    """Kernels stand at its end, so that the device seems more idle than it was."""
    cut = tmp_path / "cut.pt.trace.json.gz"
    cut.write_bytes((HERE / "kernels_small.pt.trace.json.gz").read_bytes()[:300_000])
    network = build(imported(tmp_path / "run", cut))["diagnosis"]["network"]
    assert (network["confidence"], network["doubt_facts"][0]["code"]) == ("low", "lost_events")
