"""The first verdict on the data pipeline, from rows of the queries."""

from __future__ import annotations

import pytest

from pipeprof.verdict.pipeline import ADVICE, ADVICE_LEAF, HIGH, MODERATE, diagnose


def wait(share, steps=100, rep=0, rank=0):
    return {"rep": rep, "rank": rank, "steps": steps, "data_wait_share": share}


def rule(op_id, drop, flag=None, kind="MapOp", place="inner", fill_in=0.9, fill_out=0.1):
    return {"op_id": op_id, "op_type": kind, "name": None, "drop_ratio": drop, "flag": flag, "place": place,
            "input_ratio": fill_in, "output_ratio": fill_out}  # fmt: skip


def sampled(op_id, samples=200):
    return {"op_id": op_id, "samples": samples}


@pytest.mark.parametrize(
    ("share", "verdict", "severity"),
    [
        (0.0, "consumer_bound", None),
        (MODERATE - 1e-9, "consumer_bound", None),
        (MODERATE, "input_bound", "moderate"),
        (HIGH - 1e-9, "input_bound", "moderate"),
        (HIGH, "input_bound", "high"),
        (1.0, "input_bound", "high"),
    ],
)
def test_the_share_of_waiting_decides_at_its_bands(share, verdict, severity):
    found = diagnose([wait(share)], [], [], [])
    assert (found["verdict"], found["severity"], found["data_wait_share"]) == (verdict, severity, share)


@pytest.mark.parametrize("waits", [[], [wait(None)]])
def test_no_waits_are_not_measured_and_never_a_good_verdict(waits):
    found = diagnose(waits, [rule(1, 0.9, "inner")], [], [])
    assert (found["verdict"], found["data_wait_share"], found["op_id"], found["confidence"]) == (
        "not_measured",
        None,
        None,
        "low",
    )


def test_the_slowest_rank_speaks_for_its_repetition():
    found = diagnose([wait(0.0, rank=0), wait(0.5, rank=1), wait(0.1, rank=2)], [], [], [])
    assert found["data_wait_share"] == 0.5


def test_the_median_repetition_decides_not_an_outlier():
    found = diagnose([wait(0.01, rep=0), wait(0.02, rep=1), wait(0.9, rep=2)], [], [], [])
    assert found["verdict"] == "consumer_bound"


@pytest.mark.parametrize(("steps", "confidence"), [(3, "medium"), (100, "high")])
def test_few_steps_make_a_good_verdict_less_sure(steps, confidence):
    assert diagnose([wait(0.0, steps)], [], [], [])["confidence"] == confidence


def test_a_good_verdict_names_no_operator():
    found = diagnose([wait(0.0)], [rule(1, 0.9, "inner")], [sampled(1)], [])
    assert (found["op_id"], found["candidates"]) == (None, [])


def test_the_operator_that_the_rule_flags_is_named_with_its_queues_and_advice():
    found = diagnose([wait(0.5)], [rule(2, 0.1), rule(1, 0.8, "inner")], [sampled(1), sampled(2)], [])
    assert (found["op_id"], found["op_type"], found["confidence"]) == (1, "MapOp", "medium")
    assert found["candidates"] == [1, 2]
    assert [(item["what"], item["value"]) for item in found["evidence"][1:]] == [
        ("input queue of MapOp 1", 0.9), ("output queue of MapOp 1", 0.1),
    ]  # fmt: skip
    assert found["suggestions"] == [ADVICE["MapOp"]]


def test_a_flag_wins_over_a_larger_drop():
    found = diagnose([wait(0.5)], [rule(2, 0.9), rule(1, 0.3, "inner")], [sampled(1)], [])
    assert found["op_id"] == 1


def test_several_ranks_vote():
    rules = [rule(1, 0.5, "inner"), rule(2, 0.6, "inner"), rule(1, 0.5, "inner")]
    assert diagnose([wait(0.5)], rules, [sampled(1), sampled(2)], [])["op_id"] == 1


@pytest.mark.parametrize(
    ("rules", "samples"),
    [
        ([rule(1, 0.8, "inner")], [sampled(1, 19)]),
        ([rule(1, 0.8)], [sampled(1)]),
        ([rule(1, 0.8, "inner"), rule(2, 0.7)], [sampled(1), sampled(2)]),
        ([rule(1, 0.8, "inner")], []),
    ],
    ids=["few samples", "not flagged", "a close second", "no samples"],
)
def test_doubt_is_said(rules, samples):
    found = diagnose([wait(0.5)], rules, samples, [])
    assert (found["op_id"], found["confidence"]) == (1, "low")


def test_without_queue_samples_waiting_is_still_the_verdict_and_the_hint_says_what_to_do():
    found = diagnose([wait(0.5)], [], [], [])
    assert (found["verdict"], found["op_id"], found["confidence"]) == ("input_bound", None, "low")
    assert "--queue-interval" in found["suggestions"][0]


def test_drops_that_are_unknown_name_nobody():
    assert diagnose([wait(0.5)], [rule(1, None), rule(-1, 0.9, "inner")], [], [])["op_id"] is None


def test_a_source_that_is_not_python_gets_the_advice_for_sources():
    found = diagnose([wait(0.5)], [rule(3, 0.9, "source", "MnistOp", "source", fill_in=None)], [sampled(3)], [])
    assert found["suggestions"] == [ADVICE_LEAF]
    assert [item["what"] for item in found["evidence"][1:]] == ["output queue of MnistOp 3"]


def test_mindinsights_own_verdict_is_kept_beside():
    theirs = [
        {"rule": "queues", "verdict": "data_processing", "empty_share": 0.9, "op_id": None, "op_type": None},
        {"rule": "pipeline", "verdict": "slow", "empty_share": None, "op_id": 2, "op_type": "MapOp"},
    ]
    found = diagnose([wait(0.5)], [], [], theirs)["compatible"]["mindinsight"]
    assert found == {
        "queues": "data_processing",
        "empty_share": 0.9,
        "ops": [{"op_id": 2, "op_type": "MapOp", "verdict": "slow"}],
    }


def test_the_input_is_not_changed():
    waits, rules = [wait(0.5)], [rule(1, 0.8, "inner")]
    copies = [dict(row) for row in waits], [dict(row) for row in rules]
    diagnose(waits, rules, [sampled(1)], [])
    assert (waits, rules) == copies


SHAPE = {"verdict", "severity", "op_id", "op_type", "op_name", "kind", "confidence", "candidates", "data_wait_share",
         "evidence", "suggestions", "compatible"}  # fmt: skip


@pytest.mark.parametrize(
    "found",
    [
        diagnose([], [], [], []),
        diagnose([wait(0.0)], [], [], []),
        diagnose([wait(0.5)], [rule(1, 0.8, "inner")], [sampled(1)], []),
    ],
    ids=["not measured", "consumer", "input"],
)
def test_every_verdict_has_the_documented_fields(found):
    assert set(found) == SHAPE
    assert set(found["compatible"]) == {"mindinsight", "mindspore"}
