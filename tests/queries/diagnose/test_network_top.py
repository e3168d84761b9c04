from table_rows import op, steps

STEPS = steps("warmup", "train", "train", "train")
INFO = [{"op_id": 0, "name": "a/MatMul", "type": "MatMul", "phase": "forward", "in_shapes": "[2, 2]"}]


def test_shares_are_of_the_steps_with_operators(ask):
    tables = {
        "step": STEPS,
        "op_info": INFO,
        "op": [op(0, 30, 1), op(0, 10, 1), op(0, 10, 2), op(1, 40, 1), op(9, 99, 0)],
    }
    give = "position op_id name count seen_steps steps self_ns per_step_ns share"
    assert ask("diagnose/network_top", tables, top=5, give=give) == [
        (1, 0, "a/MatMul", 3, 2, 2, 50, 25.0, 0.25),
        (2, 1, None, 1, 1, 2, 40, 20.0, 0.2),
    ]


def test_only_the_largest_are_given(ask):
    tables = {"step": STEPS, "op": [op(0, 1, 1), op(1, 2, 1)]}
    assert ask("diagnose/network_top", tables, top=1, give="op_id") == [(1,)]


def test_own_time_counts_and_the_whole_where_it_is_not_known(ask):
    tables = {"step": STEPS, "op": [op(0, 40, 1, self_ns=5), op(1, 20, 1, self_ns=None)]}
    assert ask("diagnose/network_top", tables, top=5, give="op_id self_ns") == [(1, 20), (0, 5)]


def test_an_operator_between_steps_does_not_count(ask):
    assert ask("diagnose/network_top", {"step": STEPS, "op": [op(0, 7, None), op(1, 2, 1)]}, top=5, give="op_id") == [
        (1,)
    ]


def test_all_that_a_line_computes_counts_beside_each_of_its_operators(ask):
    info = [
        {"op_id": 0, "type": "Conv2D", "phase": "forward", "stack_id": 1},
        {"op_id": 1, "type": "Conv2DBackpropInput", "phase": "backward", "stack_id": 1},
        {"op_id": 2, "type": "AllReduce", "phase": "communication", "stack_id": 1},
        {"op_id": 3, "type": "Add", "phase": "forward"},
    ]
    tables = {
        "step": STEPS, "op_info": info, "stack": [{"stack_id": 1, "frame": "a.py(3): f"}],
        "op": [op(0, 20, 1), op(1, 30, 1), op(2, 40, 1), op(3, 10, 1)],
    }  # fmt: skip
    assert ask("diagnose/network_top", tables, top=2, give="op_id site site_share") == [
        (2, "a.py(3): f", 0.5), (1, "a.py(3): f", 0.5),
    ]  # fmt: skip
