"""Other programs' verdicts, from rows of the queries."""

import pytest
from typed_rows import of_dicts

from pipeprof.report.words import verdict as words
from pipeprof.verdict import compatible

verdicts = of_dicts(compatible.verdicts)

HERE = {"rep": 0, "rank": 0, "pipeline_key": "a"}


def ask(mindinsight=(), advice=(), mindspore=(), autotune=(), **more):
    return verdicts(mindinsight=mindinsight, advice=advice, mindspore=mindspore, autotune=autotune, **more)


def queues(verdict, percent=50.0):
    return {**HERE, "rule": "queues", "verdict": verdict, "empty_share": percent / 100, "empty_percent": percent}


def blamed(op_id, verdict, op_type="MapOp", advice=None, rank=0):
    return {**HERE, "rank": rank, "rule": "pipeline", "verdict": verdict, "op_id": op_id, "op_type": op_type,
            "advice": advice}  # fmt: skip


def interval(advised=True):
    return {"rep": 0, "rank": 0, "rule": "step_trace", "value": 7.0, "advised": advised}


def test_without_rows_no_program_says_anything():
    found = ask()
    assert {name: part["named"] for name, part in found.items()} == dict.fromkeys(words.NOTES)
    assert all(part["of"] == 0 for part in found.values())
    assert {name: part["note"] for name, part in words.worded(found).items()} == words.NOTES
    assert (found["mindinsight"]["queues"], found["mindinsight"]["ops"]) == (None, [])


def test_mindinsight_names_from_the_source_to_the_loop_and_a_root_alone_gets_no_advice():
    rows = [blamed(1, "inner", advice="map_op"), blamed(3, "leaf", "TFReaderOp", "dataset_op")]
    part = ask(mindinsight=rows)["mindinsight"]
    assert (part["named"], [op["op_id"] for op in part["ops"]]) == ([3, 1], [1, 3])
    advice = {item["key"].removeprefix("minddata_pipeline-"): item["op_ids"] for item in part["advice"]}
    assert list(advice.items()) == [("general", [3, 1]), ("dataset_op", [3]), ("map_op", [1])]
    part = ask(mindinsight=[blamed(0, "root", "BatchOp")])["mindinsight"]
    assert (part["named"], part["advice"]) == ([], [])
    assert part["ops"] == [{"op_id": 0, "op_type": "BatchOp", "verdict": "root"}]
    part = ask(mindinsight=[queues("device_queue_warning", 0.0)])["mindinsight"]
    assert (part["queues"], part["named"]) == ("device_queue_warning", None), "without samples not all is well"


@pytest.mark.parametrize(
    ("percent", "advice", "shown"),
    [
        (50.0, [interval()], {"step_trace-iter_interval", "minddata_device_queue_rate", "minddata_pipeline-general"}),
        (30.0, [interval()], {"step_trace-iter_interval", "minddata_device_queue_rate"}),
        (50.0, [interval(advised=False)], set()),
        (50.0, [], set()),
    ],
)
def test_mindinsight_shows_advice_only_beside_a_step_interval(percent, advice, shown):
    part = ask([queues("data_processing", percent), blamed(1, "inner", "ShuffleOp")], advice)["mindinsight"]
    assert {item["key"] for item in part["advice"] if item["shown"]} == shown


def spored(op_id, bottleneck=None, *, named=False, missing=None, rank=0):
    return {**HERE, "rank": rank, "op_id": op_id, "op_type": "BatchOp", "workers": 2, "bottleneck": bottleneck,
            "is_named": named, "missing": missing, "cpu_detail": "low" if bottleneck else None, "queue_detail": None,
            "avg_cpu_pct_per_worker": 1.5}  # fmt: skip


def test_mindspore_prints_one_operator_of_its_matches():
    part = words.worded(ask(mindspore=[spored(0, "queue", named=True), spored(1), spored(2, "cpu")]))["mindspore"]
    assert (part["named"], part["matches"], part["warning"]) == ([0], [2, 0], "Batch(id=0)")
    assert part["suggestion"] == "1.5 % CPU per worker and unusual queues: raise prefetch_size"
    assert part["suggestion_facts"] == {"finding": "queue", "avg_cpu_pct_per_worker": 1.5, "workers": 2}
    assert [item["finding"] for item in part["cpu_details"]] == ["low", "low"]


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        ("leaf", "its queue is filled to 12.5 %: set num_parallel_workers > 2"),
        ("device_queue", "its input queue is empty 40 % of the time: the device waits for the dataset"),
        ("inner", "its input queue is filled to 80 %, its output queue to 12.5 %: raise prefetch_size or num_parallel"),
    ],
)
def test_details_of_queues_name_the_numbers_that_they_rest_on(finding, text):
    fills = {"queue_utilization_pct": 12.5, "input_utilization_pct": 80.0, "input_empty_freq_pct": 40.0}
    found = ask(mindspore=[spored(0) | fills | {"queue_detail": finding}])
    (detail,) = words.worded(found)["mindspore"]["queue_details"]
    assert detail["text"].startswith(text)


def test_mindspore_without_a_match_names_nothing_without_data_is_silent_and_its_ranks_vote():
    assert ask(mindspore=[spored(0)])["mindspore"]["named"] == []
    part = ask(mindspore=[spored(0, missing="cpu")])["mindspore"]
    assert (part["named"], part["missing"]) == (None, "cpu")
    rows = [spored(0, "cpu", named=True), *(spored(1, "cpu", named=True, rank=rank) for rank in (1, 2))]
    part = ask(mindspore=rows)["mindspore"]
    assert (part["named"], part["agree"], part["of"]) == ([1], 2, 3)


def tuned(op_id, verdict="bottleneck", workers=None, prefetch=None):
    return {**HERE, "verdict": verdict, "last_queue_ratio": 0.5, "op_id": op_id, "op_type": "MapOp", "workers": 1,
            "new_workers": workers, "workers_reason": "queue", "prefetch": 16, "new_prefetch": prefetch,
            "is_changed": bool(workers or prefetch)}  # fmt: skip


def test_autotune_names_what_it_changes_from_the_source_on():
    part = ask(autotune=[tuned(3), tuned(2, workers=3), tuned(0, prefetch=20)], cpu_threads=2)["autotune"]
    assert (part["named"], part["op_id"]) == ([2, 0], 2)
    changes = [(item["setting"], item["old"], item["new"]) for item in part["changes"]]
    assert changes == [("num_parallel_workers", 1, 2), ("prefetch_size", 16, 20)]
    for verdict, named in (("ok", [-1]), ("bottleneck", []), (None, None)):
        assert ask(autotune=[tuned(2, verdict=verdict)])["autotune"]["named"] == named
