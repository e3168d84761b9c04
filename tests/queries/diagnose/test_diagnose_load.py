import pytest
from table_rows import ENDS, KEY, MS, depths, fed, times


def tables(**more):
    """A map of 80 ms before a loop that waits 60 of every 100 ms."""
    facts = {"name": "f", "workers": 2, "is_python": True, "node": 1, "site": "a.py:1", "code": "a.py:9"}
    found = {
        "op_service": times(1, "hook", 10, rows=8, max_ns=12 * MS, cpu_ns=5 * MS),
        "queue": depths(0, 1),
        "cpu": [{"scope": "host", "t_ns": end * MS, "idle_ratio": 0.5} for end in ENDS],
    }
    return fed(("BatchOp", {}), ("MapOp", facts), **found | more)


def test_a_timed_operator_with_its_capacity(ask):
    give = "op_id op_type name workers capacity is_python node site code source rows_per_batch work_ns row_ns rate"
    rows = ask("diagnose/load", tables(), give=give)
    assert [row[0] for row in rows] == [-1, 0, 1]
    assert rows[2] == (1, "MapOp", "f", 2, 4, True, 1, "a.py:1", "a.py:9", "hook", 8.0, 80.0 * MS, 10.0 * MS, 25.0)


def test_utilisation_and_computing(ask):
    give = "utilisation cpu_share cores python_cores longest_ns timed_batches"
    row = ask("diagnose/load", tables(), give=give)[2]
    assert row == (pytest.approx(0.4), 0.5, pytest.approx(0.4), pytest.approx(0.4), 12.0 * MS, 30)


def test_the_longest_row_is_not_a_mean_of_the_intervals(ask):
    rows = [row | {"max_ns": 900 * MS if row["t_ns"] == 2000 * MS else 12 * MS} for row in tables()["op_service"]]
    usual, longest = ask("diagnose/load", tables(op_service=rows), give="longest_ns max_row_ns")[2]
    assert (usual < 50 * MS, longest) == (True, 900 * MS)


def test_the_loop_is_a_stage_and_its_pace_is_in_every_row(ask):
    rows = ask("diagnose/load", tables(), give="source utilisation side batches wait_share loop_rate consumer_rate")
    assert rows[0][::2] == ("loop", "iterator", pytest.approx(0.6), pytest.approx(25))
    assert rows[0][1::2] == (pytest.approx(0.4), 29, pytest.approx(10))
    assert rows[1][2:] == rows[0][2:] == rows[2][2:]


def test_queues_and_the_machine(ask):
    give = "op_id samples input_ratio output_ratio drop_ratio idle_share process_cores gil_share"
    assert ask("diagnose/load", tables(), give=give) == [
        (-1, 30, 0.25, None, 0.25, 0.5, None, None),
        (0, 30, None, 0.25, None, 0.5, None, None),
        (1, None, None, None, None, 0.5, None, None),
    ]


def test_operators_are_shown_without_batches(ask):
    rows = ask("diagnose/load", tables(fetch=[]), give="op_id rate utilisation loop_rate wait_share")
    assert rows[0] == (-1, None, None, None, None)
    assert rows[2] == (1, 25.0, None, None, None)


def test_nothing_without_a_training_pipeline(ask):
    assert ask("diagnose/load", tables(pipeline=[KEY | {"pipeline_key": "a", "role": "eval"}])) == []
