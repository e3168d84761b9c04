import pytest
from table_rows import op, step, steps


def run(times, shapes="[2]", phase="forward"):
    """One operator with these times in these steps; steps not named have no operators."""
    made = steps(*["train"] * (max(times) + 1), length=1000)
    ops = [op(0, time, n, 1000 * n) for n, time in times.items()]
    info = [{"op_id": 0, "name": "Add", "type": "Add", "phase": phase, "in_shapes": shapes}]
    return {"step": made, "op": ops, "op_info": info}


def test_a_straight_line_is_found(ask):
    give = "name steps windows span_steps mean_ns share first_ns last_ns falls slope_ns slope_variance"
    (row,) = ask("diagnose/op_growth", run({0: 100, 1: 110, 4: 140, 5: 150}), top=3, give=give)
    assert row[:9] == ("Add", 4, 2, 5, 125.0, 0.125, 105.0, 145.0, 0)
    assert row[9:] == (pytest.approx(10), pytest.approx(0, abs=1e-9))


def test_the_variance_is_that_of_least_squares(ask):
    # x from its middle: -1 0 1; y: 10 40 10; slope 0, residuals -10 20 -10, variance 600 / 1 / 2
    (row,) = ask("diagnose/op_growth", run({0: 10, 1: 40, 2: 10}), top=3, give="windows slope_ns slope_variance falls")
    assert row == (1, pytest.approx(0), pytest.approx(300), 0)


def test_windows_that_fall_are_counted(ask):
    (row,) = ask("diagnose/op_growth", run({0: 30, 2: 20, 4: 50, 6: 40}), top=3, give="windows falls first_ns last_ns")
    assert row == (4, 2, 30.0, 40.0)


def test_a_single_step_has_no_slope(ask):
    assert ask("diagnose/op_growth", run({0: 30}), top=3, give="slope_ns slope_variance") == [(None, None)]


def test_a_step_without_the_operator_counts_as_none(ask):
    tables = run({0: 10, 2: 10})
    tables["op"].append(op(1, 6, 2, 2000))
    tables["op_info"].append({"op_id": 1, "name": "Late", "type": "Late", "phase": "forward"})
    rows = ask("diagnose/op_growth", tables, top=3, give="name mean_ns first_ns last_ns slope_ns")
    assert rows[1] == ("Late", 3.0, 0.0, 6.0, pytest.approx(3))


def test_one_name_with_several_shapes_is_one_operator(ask):
    tables = run({0: 10})
    tables["step"].append(step(1, 1000, 2000))
    tables["op"].append(op(1, 20, 1, 1000))
    tables["op_info"].append({"op_id": 1, "name": "Add", "type": "Add", "phase": "forward", "in_shapes": "[4]"})
    assert ask("diagnose/op_growth", tables, top=3, give="name shapes slope_ns") == [("Add", 2, pytest.approx(10))]


def test_a_range_of_the_user_is_no_operator_that_could_grow(ask):
    tables = run({0: 10, 2: 10})
    tables["op"] += [row | {"op_id": 1, "dur_ns": 500 + row["step"], "self_ns": 500} for row in tables["op"]]
    tables["op_info"].append({"op_id": 1, "name": "my range", "category": "user_annotation"})
    assert ask("diagnose/op_growth", tables, top=3, give="name") == [("Add",)]
