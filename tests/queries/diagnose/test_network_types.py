"""Operator types by their share of the steps in which operators were recorded."""

from table_rows import op, steps

STEPS = steps("warmup", "train", "train", "train")
INFO = [
    {"op_id": 0, "name": "a/Mul-op0", "type": "Mul", "phase": "forward"},
    {"op_id": 1, "name": "a/Mul-op1", "type": "Mul", "phase": "forward"},
    {"op_id": 2, "name": "a/MatMul-op2", "type": "MatMul", "phase": "forward"},
]


def test_many_small_operators_of_a_type_come_before_a_single_large_one(ask):
    tables = {"step": STEPS, "op_info": INFO,
              "op": [op(0, 20, 1), op(1, 25, 1), op(0, 15, 2), op(2, 40, 1), op(2, 99, 0)]}  # fmt: skip
    give = "position type phase operators count steps self_ns share"
    assert ask("diagnose/network_types", tables, top=5, give=give) == [
        (1, "Mul", "forward", 2, 3, 2, 60, 0.3),
        (2, "MatMul", "forward", 1, 1, 2, 40, 0.2),
    ]


def test_only_the_largest_are_given_and_own_time_counts(ask):
    tables = {"step": STEPS, "op_info": INFO, "op": [op(0, 50, 1, self_ns=5), op(2, 20, 1, self_ns=None)]}
    assert ask("diagnose/network_types", tables, top=1, give="type self_ns") == [("MatMul", 20)]


def test_executions_are_counted_beyond_the_largest_types(ask):
    tables = {"step": STEPS, "op_info": INFO, "op": [op(0, 20, 1), op(0, 15, 2), op(2, 40, 1), op(7, 1, 1)]}
    assert ask("diagnose/network_types", tables, top=1, give="type count all_count") == [("MatMul", 1, 4)]


def test_operators_without_a_type_are_left_out(ask):
    assert ask("diagnose/network_types", {"step": STEPS, "op": [op(7, 5, 1)]}, top=5, give="type") == []


def test_ranges_of_the_user_and_python_functions_are_no_operators(ask):
    info = [*INFO, {"op_id": 3, "name": "## backward ##", "type": "## backward ##", "category": "user_annotation"}]
    tables = {"step": STEPS, "op_info": info, "op": [op(0, 50, 1), op(3, 90, 1)]}
    assert ask("diagnose/network_types", tables, top=5, give="type") == [("Mul",)]
    assert ask("diagnose/network_top", tables, top=5, give="op_id") == [(0,)]


def test_on_a_device_an_operator_has_the_time_of_what_it_launched(ask):
    """The host was held up in the copy, which the device did in no time; nobody is known to have launched the last one."""
    info = [*INFO, {"op_id": 3, "name": "kernel", "type": "kernel", "phase": "forward"}]
    ops = [
        op(0, 90, 1, side="host", device_self_ns=2),
        op(2, 5, 1, side="host", device_self_ns=40),
        op(1, 30, 1, side="host"),
        op(3, 40, 1, side="device", parent_id=7),
        op(3, 10, 1, side="device"),
    ]
    tables = {"step": STEPS, "op_info": info, "op": ops}
    give = "type self_ns count"
    assert ask("diagnose/network_types", tables, top=5, give=give) == [
        ("MatMul", 40, 1),
        ("kernel", 10, 1),
        ("Mul", 2, 1),
    ]
    assert ask("diagnose/network_top", tables, top=5, give="op_id self_ns") == [(2, 40), (3, 10), (0, 2)]
