"""The verdict from the fill of the queues alone."""

import pytest
from minddata_files import op, pipeline_json, write_feed
from typed_rows import of_dicts

from pipeprof.read.foreign import import_path
from pipeprof.report.build import build
from pipeprof.verdict import verdict_from_queues

judge_fills = of_dicts(verdict_from_queues.judge_fills)


@pytest.fixture
def report(tmp_path):
    """`report(last)`: the report of a folder without batches; `last`: samples of the queue in front of the training."""

    def make(last):
        raw = write_feed(tmp_path / "raw")
        raw.joinpath("dataset_iterator_profiling_0.txt").unlink()
        ops = [
            op(2, "GeneratorOp", [8, 7, 8, 8, 8, 7]),
            op(0, "BatchOp", last, [1]),
            op(1, "MapOp", [0, 1, 0, 0, 0, 0], [2], workers=2),
        ]
        raw.joinpath("pipeline_profiling_0.json").write_text(pipeline_json(ops), encoding="utf-8")
        return build(import_path(raw, tmp_path / "run"))

    return make


def test_an_empty_last_queue_blames_the_stage_behind_which_the_queues_are_empty(report):
    content = report([0, 0, 1, 0, 0, 0])
    found, screen = content["diagnosis"], content["first_screen"]
    assert (found["verdict"], found["confidence"]) == ("input_bound", "low")
    assert (found["op_type"], found["op_id"]) == ("MapOp", 1)
    assert found["data_wait_share"] is None
    assert [doubt["code"] for doubt in found["doubt_facts"]] == ["fills_alone"]
    assert screen["sentence"].startswith("Probably input-bound: the queue in front of the training is mostly empty.")
    assert "MapOp 1" in screen["cause"]


def test_a_filled_last_queue_clears_the_data(report):
    content = report([8, 8, 7, 8, 8, 8])
    assert (content["diagnosis"]["verdict"], content["diagnosis"]["op_id"]) == ("consumer_bound", None)
    assert content["first_screen"]["sentence"].startswith("Probably not input-bound: batches wait for the training")


def test_between_the_bounds_nothing_is_said(report):
    content = report([2, 3, 3, 2, 3, 2])
    assert content["diagnosis"]["verdict"] == "not_measured"


def test_what_was_measured_stays():
    measured = {"verdict": "consumer_bound", "evidence": []}
    assert (
        judge_fills(measured, [{"op_id": -1, "input_ratio": 0.0, "samples": 9, "rep": 0, "rank": 0}], 2.0) is measured
    )
