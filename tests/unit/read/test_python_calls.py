"""Timed calls of the user's Python as service times of operators: of a map with several functions, their sum for a row."""

from types import SimpleNamespace

import pytest

from pipeprof.read.spool.calls import add_calls, add_lock_waits

S = 1_000_000_000


def told(at, part=None, calls=1, wall=S, **more):
    return {
        "t": int(at * S), "pipeline": 0, "node": 1, "part": part, "calls": calls, "batches": 0, "timed": calls, "wall": calls * wall,
        "cpu": calls * wall // 2, "delay": None, "read": None, "given": None, "made": None, "max": wall, "min": wall,
    } | more  # fmt: skip


def rows_of(*events):
    rows = []
    out = SimpleNamespace(add=lambda _table, **row: rows.append(row), at=lambda ns: ns)
    process = SimpleNamespace(all=lambda _name: events)
    add_calls(process, out, {0: SimpleNamespace(op_ids={1: 7}, pipeline_id=3)})
    return rows


def test_the_functions_of_a_row_add_up_where_each_stretch_has_both():
    (one,) = rows_of(told(1, 0, calls=4, wall=S // 10), told(1, 1, calls=4, wall=S // 5))
    assert (one["op_id"], one["rows"], one["avg_ns"]) == (7, 4, S // 10 + S // 5)


def test_slow_functions_that_end_in_different_stretches_add_up_as_well():
    """`.map([decode, augment])` of 1 s each: every half second one of the two ends a call, if any does."""
    rows = rows_of(*(told(at, at % 2) for at in range(1, 9)))
    assert [row["rows"] for row in rows] == [1, 1, 1, 1]
    assert {row["avg_ns"] for row in rows} == {2 * S}
    assert {row["cpu_ns"] for row in rows} == {S}


@pytest.mark.parametrize("parts", [(0, 1, 0), (0, 0, 1), (0, 1, 1, 0)])
def test_no_call_is_lost_and_none_is_a_row_of_its_own(parts):
    rows = rows_of(*(told(at, part, batches=1) for at, part in enumerate(parts, 1)))
    assert sum(row["rows"] for row in rows) == max(map(parts.count, parts))
    assert {row["avg_ns"] for row in rows} == {2 * S}


def test_a_single_function_has_a_row_for_each_stretch_and_its_extremes():
    rows = rows_of(told(1, wall=S), told(2, wall=3 * S), told(2.5, wall=2 * S))
    assert [(row["t_ns"], row["avg_ns"], row["max_ns"]) for row in rows] == [
        (S, S, S), (2 * S, 3 * S, 3 * S), (int(2.5 * S), 2 * S, 2 * S),
    ]  # fmt: skip


def test_calls_at_the_end_of_which_none_was_timed_count_with_those_before():
    at_the_end = {"timed": 0, "wall": 0, "cpu": 0, "max": None, "min": None}
    (one,) = rows_of(told(1, calls=20, batches=5), told(2, calls=4, batches=1) | at_the_end)
    assert (one["rows"], one["batches"], one["avg_ns"], one["max_ns"]) == (24, 6, S, S)
    assert rows_of(told(1, calls=4) | at_the_end) == []


def test_waits_for_the_lock_are_of_the_operator_of_their_node():
    rows = []
    out = SimpleNamespace(add=lambda table, **row: rows.append((table, row)), at=lambda ns: ns - 1)
    told = [{"t": 5, "held": 0.1, "waiting": [[0, 1, 0.4], [0, 9, 1.0], [2, 1, 1.0]]}, {"t": 6, "held": 0.1}]
    process = SimpleNamespace(all=lambda _name: told)
    add_lock_waits(process, out, {0: SimpleNamespace(op_ids={1: 7}, pipeline_id=3)})
    assert rows == [("cpu", {"t_ns": 4, "scope": "lock_wait", "pipeline_id": 3, "op_id": 7, "user_ratio": 0.4})]
