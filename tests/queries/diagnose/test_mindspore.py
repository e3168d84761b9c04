import pytest
from table_rows import KEY


def tables_of(*ops, edges=None, fetches=1, capacity=10):
    """Operators 0, 1, ... of (op_type, workers, samples or None, cores or None); a chain unless `edges` are given."""
    if edges is None:
        edges = [(number, number - 1) for number in range(1, len(ops))]
    return {
        "pipeline": [KEY | {"pipeline_key": "a", "role": "train"}],
        "pipeline_op": [
            KEY
            | {"op_id": number, "op_type": kind, "workers": workers}
            | {"capacity": None if depths is None else capacity, "inlined": depths is None}
            for number, (kind, workers, depths, _) in enumerate(ops)
        ],
        "pipeline_edge": [KEY | {"producer_id": up, "consumer_id": down} for up, down in edges],
        "queue": [
            KEY | {"op_id": number, "t_ns": at, "depth": depth, "capacity": capacity}
            for number, (_, _, depths, _) in enumerate(ops)
            for at, depth in enumerate(depths or [])
        ],
        "cpu": [
            KEY | {"t_ns": 0, "scope": "pipeline_op", "op_id": number, "user_ratio": cores, "sys_ratio": 0.0}
            for number, (_, _, _, cores) in enumerate(ops)
            if cores is not None
        ],
        "fetch": [KEY | {"fetch": at, "depth": 0, "capacity": 10, "side": "iterator"} for at in range(fetches)],
    }


def test_numbers_are_percentages_rounded_to_two_decimals(ask):
    tables = tables_of(("BatchOp", 2, [0, 0, 1], 0.5), ("GeneratorOp", 1, [10], 0.0))
    give = "queue_average_size queue_utilization_pct queue_empty_freq_pct avg_cpu_pct avg_cpu_pct_per_worker input_id"
    assert ask("diagnose/mindspore", tables, give=give)[0] == (0.33, 3.3, 66.67, 50.0, 25.0, 1)


@pytest.mark.parametrize(
    ("workers", "cores", "detail", "bottleneck"),
    [
        (1, 0.76, "high", "cpu"),
        (2, 1.5, None, None),
        (2, 1.52, "high", "cpu"),
        (1, 0.1, None, None),
        (2, 0.38, "low", None),
        (2, 0.4, None, None),
    ],
)
def test_cpu_per_worker(ask, workers, cores, detail, bottleneck):
    tables = tables_of(("BatchOp", 1, [5], 0.5), ("MapOp", workers, [5], cores), ("GeneratorOp", 1, [6], 0.5))
    rows = ask("diagnose/mindspore", tables, give="cpu_detail bottleneck is_named")
    assert rows[1] == (detail, bottleneck, bottleneck is not None)


@pytest.mark.parametrize(
    ("own", "feed", "detail", "bottleneck"),
    [
        pytest.param(0, 6, "inner", None, id="input fuller by more than 50"),
        pytest.param(0, 5, None, None, id="not by 50"),
        pytest.param(5, 0, None, "queue", id="an empty input"),
        pytest.param(8, 2, None, "queue", id="output fuller by more than 50"),
        pytest.param(6, 1, None, None, id="input of 10 is not below 10"),
    ],
)
def test_queues_of_an_operator_with_an_idle_cpu(ask, own, feed, detail, bottleneck):
    tables = tables_of(("BatchOp", 1, [5], 0.5), ("MapOp", 1, [own], 0.0), ("GeneratorOp", 1, [feed], 0.5))
    assert ask("diagnose/mindspore", tables, give="queue_detail bottleneck")[1] == (detail, bottleneck)


@pytest.mark.parametrize(("depth", "detail"), [(5, "leaf"), (6, None)])
def test_a_source_with_a_queue_at_or_below_half(ask, depth, detail):
    tables = tables_of(("BatchOp", 1, [5], 0.5), ("GeneratorOp", 1, [depth], 0.0))
    assert ask("diagnose/mindspore", tables, give="queue_detail bottleneck")[1] == (detail, None)


def test_of_several_matches_the_one_nearest_the_loop_is_named(ask):
    tables = tables_of(("BatchOp", 1, [0], 0.0), ("MapOp", 1, [0], 0.9), ("GeneratorOp", 1, [10], 0.9))
    rows = ask("diagnose/mindspore", tables, give="op_id bottleneck is_named")
    assert rows == [(0, "queue", True), (1, "cpu", False), (2, "cpu", False)]


def test_batch_gets_no_queue_detail_and_inlined_operators_are_looked_through(ask):
    tables = tables_of(
        ("BatchOp", 1, [0], 0.5), ("RenameOp", 1, None, 0.0), ("MapOp", 1, [0], 0.5), ("ProjectOp", 1, None, 0.0),
        ("GeneratorOp", 1, [10], 0.5),
    )  # fmt: skip
    rows = ask("diagnose/mindspore", tables, give="op_type input_id queue_detail")
    assert rows == [
        ("BatchOp", 2, None), ("RenameOp", 2, None), ("MapOp", 4, "inner"), ("ProjectOp", 4, None),
        ("GeneratorOp", None, None),
    ]  # fmt: skip


def test_shuffle_is_never_judged(ask):
    tables = tables_of(("BatchOp", 1, [5], 0.5), ("ShuffleOp", 1, [0], 0.9), ("GeneratorOp", 1, [10], 0.5))
    rows = ask("diagnose/mindspore", tables, give="cpu_detail queue_detail bottleneck")
    assert rows[1] == (None, None, None)


def test_of_several_inputs_the_first_counts(ask):
    ops = ("MapOp", 1, [10], 0.0), ("ZipOp", 1, None, 0.0), ("MapOp", 1, [10], 0.5), ("GeneratorOp", 1, [0], 0.5)
    tables = tables_of(*ops, edges=[(1, 0), (2, 1), (3, 1)])
    assert ask("diagnose/mindspore", tables, give="op_id input_id bottleneck")[0] == (0, 2, None)


def test_a_device_queue_that_waits_for_the_dataset(ask):
    tables = tables_of(("DeviceQueueOp", 1, None, 0.0), ("BatchOp", 1, [0, 0, 0, 1], 0.5))
    rows = ask("diagnose/mindspore", tables, give="op_type queue_detail bottleneck")
    assert rows[0] == ("DeviceQueueOp", "device_queue", None)


@pytest.mark.parametrize(
    ("change", "missing"),
    [({"fetch": []}, "batches"), ({"cpu": []}, "cpu")],
)
def test_nothing_is_said_when_something_is_missing(ask, change, missing):
    tables = tables_of(("BatchOp", 1, [0], 0.0), ("GeneratorOp", 2, [0], 0.0)) | change
    rows = ask("diagnose/mindspore", tables, give="missing cpu_detail queue_detail bottleneck is_named")
    assert rows == [(missing, None, None, None, False)] * 2


def test_without_queue_samples_there_is_no_row(ask):
    assert ask("diagnose/mindspore", tables_of(("BatchOp", 1, None, 0.0))) == []
