"""What MindInsight would say of a pipeline."""

import pytest
from query_cases import answers


def pipeline(depths, role="train", fetches=(), side="iterator", capacity=10):
    """A chain of one operator per entry of `depths`, 0 nearest the loop; None is an operator without a queue."""
    types = ["BatchOp", "MapOp", "ShuffleOp", "GeneratorOp"]
    return {
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "a", "role": role}],
        "pipeline_op": [
            {"pipeline_id": 0, "op_id": op, "op_type": types[op], "inlined": depth is None}
            | {"capacity": None if depth is None else capacity}
            for op, depth in enumerate(depths)
        ],
        "pipeline_edge": [{"pipeline_id": 0, "producer_id": op, "consumer_id": op - 1} for op in range(1, len(depths))],
        "queue": [
            {"pipeline_id": 0, "op_id": op, "t_ns": 0, "depth": depth, "capacity": capacity}
            for op, depth in enumerate(depths)
            if depth is not None
        ],
        "fetch": [{"pipeline_id": 0, "fetch": at, "depth": depth, "side": side} for at, depth in enumerate(fetches)],
    }


test_rows_of_diagnose_mindinsight = answers("diagnose/mindinsight", {
    "the shown percentage is rounded up": ("empty_percent",
        {**pipeline([], fetches=[0, 1, 1]), "pipeline_op": [], "queue": []}, [(34.0,)]),
    "a device queue alone says nothing": ("", pipeline([], fetches=[0], side="data_queue"), []),
    "batches of unknown depth say nothing": ("", pipeline([], fetches=[None, None]), []),
    "looking and naming nothing is told from not looking": ("position rule", pipeline([0, 5, 6]), [(1, "none")]),
    "looking and naming nothing is told from not looking, too": ("", pipeline([None, None]), []),
    "both rules stand side by side": ("position rule verdict op_type", pipeline([0, 0, 9], fetches=[0]),
        [(0, "queues", "data_processing", None), (1, "pipeline", "inner", "MapOp")]),
    "only training pipelines are looked at": ("", pipeline([0, 0, 9], role="eval", fetches=[0]), []),
})  # fmt: skip


@pytest.mark.parametrize(
    ("empty", "verdict"),
    [(3, "device_queue_warning"), (4, "data_processing"), (0, "device_queue_warning"), (10, "data_processing")],
)
def test_more_than_three_in_ten_empty_blames_the_data(ask, empty, verdict):
    tables = {**pipeline([], fetches=[0] * empty + [1] * (10 - empty)), "pipeline_op": [], "queue": []}
    rows = ask("diagnose/mindinsight", tables, give="position rule verdict batches empty empty_share empty_percent")
    assert rows == [(0, "queues", verdict, 10, empty, empty / 10, 10 * empty)]


def test_an_empty_device_queue_behind_a_full_host_queue_blames_the_transfer(ask):
    tables = pipeline([], fetches=[5, 5], side="host_queue")
    tables["fetch"] += pipeline([], fetches=[0], side="data_queue")["fetch"]
    assert ask("diagnose/mindinsight", tables, give="verdict batches empty") == [("data_transmission", 2, 0)]


def test_the_queue_to_the_device_counts_before_the_iterator(ask):
    tables = pipeline([], fetches=[5, 5], side="host_queue")
    tables["fetch"] += pipeline([], fetches=[0, 0, 0], side="iterator")["fetch"]
    assert ask("diagnose/mindinsight", tables, give="verdict batches empty") == [("device_queue_warning", 2, 0)]


@pytest.mark.parametrize(("depths", "named"), [
    pytest.param([0, 0, 9], [("inner", 1, 0.0)], id="a queue in front is fuller than one's own"),
    pytest.param([0, 5, 6], [(None, None, None)], id="by not more than 0.1"),
    pytest.param([0, 0, 5], [("inner", 1, 0.0), ("leaf", 2, 0.5)], id="an empty leaf comes last"),
    pytest.param([0, 8, 9], [("root", 0, 0.0)], id="all others full: the root alone"),
    pytest.param([5], [("root", 0, 0.5)], id="a single operator is the root"),
    pytest.param([None, 0, None, 9], [("inner", 1, 0.0)], id="looked through"),
    pytest.param([None, 9, None, 9], [("root", 0, None)], id="a root without a queue"),
    pytest.param([0, 0, None], [("leaf", 1, 0.0)], id="a leaf without a queue is not there"),
])  # fmt: skip
def test_operators_named_by_the_usage_of_queues(ask, depths, named):
    assert ask("diagnose/mindinsight", pipeline(depths), give="verdict op_id usage_ratio") == named


def test_a_queue_without_samples_is_read_as_empty(ask):
    tables = pipeline([0, 0, 9])
    tables["queue"] = tables["queue"][:1]
    assert ask("diagnose/mindinsight", tables, give="verdict op_id usage_ratio") == [("leaf", 2, None)]


@pytest.mark.parametrize(("depths", "advice"), [
    ([0, 0, 9], [(1, "map_op")]), ([0, 9, 0, 9], [(2, None)]), ([0, 0, 5], [(1, "map_op"), (2, "dataset_op")]),
    ([0, 9, 9], [(0, None)]),
])  # fmt: skip
def test_advice_goes_by_type_and_the_root_gets_none(ask, depths, advice):
    assert ask("diagnose/mindinsight", pipeline(depths), give="op_id advice") == advice


def test_operators_come_breadth_first_from_operator_0(ask):
    # 4 -> 3 -> 0 and 2 -> 1 -> 0, and an EpochCtrlOp that old files number last.
    tables = pipeline([0])
    tables["pipeline_op"] = [
        {"pipeline_id": 0, "op_id": op, "op_type": kind, "capacity": capacity, "inlined": capacity is None}
        for op, kind, capacity in [
            (0, "BatchOp", 10), (1, "MapOp", 10), (2, "TFReaderOp", 10), (3, "MapOp", 10), (4, "TFReaderOp", 10),
            (5, "EpochCtrlOp", None),
        ]
    ]  # fmt: skip
    tables["pipeline_edge"] = [
        {"pipeline_id": 0, "producer_id": up, "consumer_id": down}
        for up, down in [(1, 0), (3, 0), (2, 1), (4, 3), (0, 5)]
    ]
    tables["queue"] = [
        {"pipeline_id": 0, "op_id": op, "t_ns": 0, "depth": depth, "capacity": 10}
        for op, depth in [(0, 0), (1, 0), (2, 5), (3, 0), (4, 5)]
    ]
    rows = ask("diagnose/mindinsight", tables, give="position verdict op_id")
    assert rows == [(1, "inner", 1), (2, "inner", 3), (3, "leaf", 2), (4, "leaf", 4)]


def test_the_fill_that_the_file_states_counts_before_that_of_its_samples(ask):
    tables = pipeline([9, 5])
    assert ask("diagnose/mindinsight", tables, give="verdict op_id usage_ratio") == [("leaf", 1, 0.5)]
    tables["pipeline_op"][1]["stated_fill_ratio"] = 0.6
    assert ask("diagnose/mindinsight", tables, give="rule verdict op_id") == [("none", None, None)]


def test_a_stated_fill_in_front_is_compared_with_the_queue_behind(ask):
    tables = pipeline([2, 4, 9])
    assert ("inner", 1, 0.4) in ask("diagnose/mindinsight", tables, give="verdict op_id usage_ratio")
    tables["pipeline_op"][2]["stated_fill_ratio"] = 0.5
    found = ask("diagnose/mindinsight", tables, give="verdict op_id usage_ratio")
    assert ("inner", 1, 0.4) not in found
    assert ("leaf", 2, 0.5) in found
