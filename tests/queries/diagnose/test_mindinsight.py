import pytest


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


@pytest.mark.parametrize(
    ("empty", "verdict"),
    [(3, "device_queue_warning"), (4, "data_processing"), (0, "device_queue_warning"), (10, "data_processing")],
)
def test_more_than_three_in_ten_empty_blames_the_data(ask, empty, verdict):
    tables = {**pipeline([], fetches=[0] * empty + [1] * (10 - empty)), "pipeline_op": [], "queue": []}
    rows = ask("diagnose/mindinsight", tables, give="position rule verdict batches empty empty_share")
    assert rows == [(0, "queues", verdict, 10, empty, empty / 10)]


def test_an_empty_device_queue_behind_a_full_host_queue_blames_the_transfer(ask):
    tables = pipeline([], fetches=[5, 5], side="host_queue")
    tables["fetch"] += pipeline([], fetches=[0], side="data_queue")["fetch"]
    assert ask("diagnose/mindinsight", tables, give="verdict batches empty") == [("data_transmission", 2, 0)]


def test_a_device_queue_alone_says_nothing(ask):
    assert ask("diagnose/mindinsight", pipeline([], fetches=[0], side="data_queue")) == []


@pytest.mark.parametrize(
    ("depths", "named"),
    [
        pytest.param([0, 0, 9], [("inner", 1, 0.0)], id="a queue in front is fuller than one's own"),
        pytest.param([0, 5, 6], [], id="by not more than 0.1"),
        pytest.param([0, 0, 5], [("inner", 1, 0.0), ("leaf", 2, 0.5)], id="an empty leaf comes last"),
        pytest.param([0, 8, 9], [("root", 0, 0.0)], id="all others full: the root alone"),
        pytest.param([5], [("root", 0, 0.5)], id="a single operator is the root"),
        pytest.param([None, 0, None, 9], [("inner", 1, 0.0)], id="looked through"),
        pytest.param([None, 9, None, 9], [("root", 0, None)], id="a root without a queue"),
        pytest.param([0, 0, None], [("leaf", 1, 0.0)], id="a leaf without a queue is not there"),
    ],
)
def test_operators_named_by_the_usage_of_queues(ask, depths, named):
    assert ask("diagnose/mindinsight", pipeline(depths), give="verdict op_id usage_ratio") == named


def test_both_rules_stand_side_by_side(ask):
    rows = ask("diagnose/mindinsight", pipeline([0, 0, 9], fetches=[0]), give="position rule verdict op_type")
    assert rows == [(0, "queues", "data_processing", None), (1, "pipeline", "inner", "MapOp")]


def test_only_training_pipelines_are_looked_at(ask):
    assert ask("diagnose/mindinsight", pipeline([0, 0, 9], role="eval", fetches=[0])) == []
