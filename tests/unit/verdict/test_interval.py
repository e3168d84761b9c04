"""The verdict on the data from the time up to the forward pass, where no batch was recorded."""

import pytest
from typed_rows import of_dicts

from pipeprof.verdict import interval, pipeline

diagnose = of_dicts(pipeline.diagnose)

judge_interval = of_dicts(interval.judge_interval)


def nothing():
    return diagnose([], [], [])


def phase(share, rank=0, name="data_wait", kind="train"):
    return {"rep": 0, "kind": kind, "rank": rank, "phase": name, "share": share, "steps": 30}


def queues(stage, batches=50, rank=0):
    shares = {"host_empty_share": 0.9, "device_empty_share": None}
    return {"rep": 0, "rank": rank, "batches": batches, "stage": stage, **shares}


def test_a_short_interval_clears_the_data():
    found = judge_interval(nothing(), [phase(0.01), phase(0.04, rank=3)], [queues("data_processing")])
    assert (found["verdict"], found["data_wait_share"], found["confidence"]) == ("consumer_bound", 0.04, "medium")
    assert found["evidence"][0]["measured_on"] == {"code": "steps_of_rank", "steps": 30, "rank": 3}
    assert found["doubts"]


def test_a_long_interval_alone_does_not_blame_it():
    found = judge_interval(nothing(), [phase(0.6)])
    assert (found["verdict"], found["data_wait_share"]) == ("not_measured", None)
    assert found["evidence"][0]["value"] == 0.6


@pytest.mark.parametrize(("share", "severity"), [(0.1, "moderate"), (0.6, "high")])
@pytest.mark.parametrize(("batches", "confidence"), [(50, "medium"), (1, "low")])
def test_a_long_interval_and_an_empty_queue_do(share, severity, batches, confidence):
    found = judge_interval(nothing(), [phase(share)], [queues("data_transmission", batches)])
    assert (found["verdict"], found["severity"], found["stage"]) == ("input_bound", severity, "data_transmission")
    assert found["confidence"] == confidence
    assert [item["source"] for item in found["evidence"]] == ["step/phase_summary", "diagnose/sink"]


def test_the_queues_of_another_rank_are_no_evidence():
    assert judge_interval(nothing(), [phase(0.6)], [queues("data_processing", rank=1)])["verdict"] == "not_measured"


def test_a_measured_verdict_and_steps_without_a_forward_start_stay_as_they_are():
    measured = {**nothing(), "verdict": "balanced"}
    assert judge_interval(measured, [phase(0.9)]) == measured
    assert judge_interval(nothing(), [phase(0.9, name="compute"), phase(None), phase(0.0, kind="warmup")]) == nothing()
