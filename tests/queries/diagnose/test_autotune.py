import pytest
from test_mindspore import tables_of

GIVE = "op_id workers_reason new_workers new_prefetch"


def lasting(tables, *depths):
    tables["fetch"] = [
        {"pipeline_id": 0, "fetch": at, "depth": depth, "capacity": 4, "side": "iterator"}
        for at, depth in enumerate(depths)
    ]
    return tables


@pytest.mark.parametrize(
    ("depths", "verdict", "ratio"),
    [((3, 3), "ok", 0.75), ((3, 2), "bottleneck", 0.625), ((None,), None, None), ((), None, None)],
)
def test_the_last_queue_decides_whether_anything_is_changed(ask, depths, verdict, ratio):
    tables = lasting(tables_of(("BatchOp", 1, [0], 0.0), ("MapOp", 1, [10], 0.9)), *depths)
    rows = ask("diagnose/autotune", tables, give="verdict last_queue_ratio is_changed")
    changes = verdict == "bottleneck"
    assert rows == [(verdict, ratio, changes)] * 2


@pytest.mark.parametrize(
    ("feed", "own", "cores", "change"),
    [
        pytest.param(9, 5, 0.5, ("queue", 3, None), id="input fuller"),
        pytest.param(8, 5, 0.5, (None, None, None), id="not by enough"),
        pytest.param(8, 5, 0.8, ("cpu", 3, None), id="busy worker"),
        pytest.param(8, 5, 0.75, (None, None, None), id="not busy enough"),
        pytest.param(9, 5, 0.1, ("queue", 3, None), id="idle with a full input"),
        pytest.param(4, 4, 0.3, (None, None, 14), id="idle with an empty input"),
        pytest.param(4, 4, 0.4, (None, None, None), id="not idle"),
        pytest.param(5, 9, 0.3, (None, None, 14), id="output fuller"),
        pytest.param(5, 8, 0.3, (None, None, None), id="output not fuller by enough"),
    ],
)
def test_what_it_changes(ask, feed, own, cores, change):
    tables = lasting(tables_of(("BatchOp", 1, [5], 0.5), ("MapOp", 1, [own], cores), ("GeneratorOp", 1, [feed], 0)), 0)
    rows = ask("diagnose/autotune", tables, give=GIVE)
    assert rows[1] == (1, *change)


def test_operators_are_asked_from_the_source_on_and_some_never(ask):
    tables = tables_of(
        ("BatchOp", 1, [0], 0.0), ("ShuffleOp", 1, [0], 0.0), ("RenameOp", 1, None, 0.0), ("MapOp", 2, [0], 0.0),
        ("GeneratorOp", 1, [10], 1.0),
    )  # fmt: skip
    rows = ask("diagnose/autotune", lasting(tables, 0), give="position op_id skipped is_changed input_ratio")
    assert rows == [(1, 4, "generator", False, 1.0), (2, 3, None, True, 1.0), (3, 0, None, True, 0.0)]


def test_a_reader_without_random_access_is_left_alone(ask):
    tables = lasting(tables_of(("BatchOp", 1, [5], 0.5), ("TFReaderOp", 4, [0], 4.0)), 0)
    assert ask("diagnose/autotune", tables, give="op_id skipped is_changed")[0] == (1, "non_mappable", False)


def test_the_last_operator_has_a_full_input(ask):
    tables = lasting(tables_of(("BatchOp", 1, [5], 0.5), ("ImageFolderOp", 8, [6], 4.0)), 0)
    assert ask("diagnose/autotune", tables, give="input_ratio workers_reason new_workers")[0] == (1.0, "queue", 10)


@pytest.mark.parametrize(("capacity", "workers", "prefetch"), [(126, 1, 128), (1, 9, 9), (16, 1, 20)])
def test_queues_grow_by_4_to_the_workers_at_least_and_128_at_most(ask, capacity, workers, prefetch):
    tables = tables_of(("BatchOp", workers, [0], 0.0), ("GeneratorOp", 1, [0], 0.0), capacity=capacity)
    assert ask("diagnose/autotune", lasting(tables, 0), give="new_workers new_prefetch")[1] == (None, prefetch)


def test_without_cpu_samples_only_the_queues_decide(ask):
    tables = lasting(tables_of(("BatchOp", 1, [0], None), ("MapOp", 1, [9], None), ("GeneratorOp", 1, [0], None)), 0)
    rows = ask("diagnose/autotune", tables, give=f"{GIVE} cpu_pct_per_worker")
    assert rows[1:] == [(1, None, None, None, None), (0, "queue", 3, None, None)]


def test_a_queue_without_samples_decides_nothing(ask):
    tables = tables_of(("BatchOp", 1, [0], 0.9), ("MapOp", 1, [9], 0.0), ("GeneratorOp", 1, [9], 0.0))
    tables["queue"] = [row for row in tables["queue"] if row["op_id"] != 1]
    rows = ask("diagnose/autotune", lasting(tables, 0), give=f"{GIVE} input_ratio output_ratio")
    assert rows[1:] == [(1, None, None, None, 0.9, None), (0, "cpu", 3, None, None, 0.0)]
