from table_rows import op, steps


def info(op_id, kind, phase="forward"):
    return {"op_id": op_id, "name": f"Default/{kind}-op{op_id}", "type": kind, "phase": phase}


def test_most_own_time_first_with_running_sums(ask):
    tables = {
        "step": steps("train", "train"),
        "op_info": [info(1, "Conv2D"), info(2, "ReLU"), info(3, "Conv2D")],
        "op": [op(1, 40, self_ns=30), op(3, 30, start=40), op(2, 20, start=70), op(2, 20, step=1)],
    }
    give = "position type count steps total_ns self_ns mean_ns max_ns share cumulative_ns cumulative_share"
    assert ask("op/by_type", tables, give=give) == [
        (1, "Conv2D", 2, 1, 70, 60, 35.0, 40, 0.6, 60, 0.6),
        (2, "ReLU", 2, 2, 40, 40, 20.0, 20, 0.4, 100, 1.0),
    ]


def test_equal_types_go_by_name(ask):
    tables = {"step": steps("train"), "op_info": [info(1, "B"), info(2, "A")], "op": [op(1, 5), op(2, 5, start=5)]}
    assert ask("op/by_type", tables, give="position type cumulative_share") == [(1, "A", 0.5), (2, "B", 1.0)]


def test_a_type_seen_in_two_phases_is_mixed(ask):
    tables = {
        "step": steps("train"),
        "op_info": [info(1, "MatMul"), info(2, "MatMul", "backward"), info(3, "Adam", "optimizer")],
        "op": [op(1, 5), op(2, 5, start=5), op(3, 1, start=10)],
    }
    assert ask("op/by_type", tables, give="type phase") == [("MatMul", "mixed"), ("Adam", "optimizer")]


def test_warmup_and_evaluation_do_not_count_beside_training(ask):
    tables = {
        "step": steps("warmup", "train", "eval"),
        "op_info": [info(1, "MatMul")],
        "op": [
            op(1, 900, step=0),
            op(1, 5, step=1, start=900),
            op(1, 700, step=2, start=910),
            op(1, 3, step=None),
        ],
    }
    assert ask("op/by_type", tables, give="type count self_ns") == [("MatMul", 1, 5)]


def test_warmup_counts_when_nothing_else_was_recorded(ask):
    tables = {"step": steps("warmup", "train"), "op_info": [info(1, "MatMul")], "op": [op(1, 9, step=0)]}
    assert ask("op/by_type", tables, give="type self_ns") == [("MatMul", 9)]


def test_operators_without_steps_count_when_no_operator_has_one(ask):
    tables = {"op_info": [info(1, "MatMul")], "op": [op(1, 9, step=None)]}
    assert ask("op/by_type", tables, give="type count steps share") == [("MatMul", 1, 0, 1.0)]


def test_an_unknown_operator_is_listed_without_a_type(ask):
    tables = {"step": steps("train"), "op": [op(7, 9)]}
    assert ask("op/by_type", tables, give="type phase self_ns") == [(None, None, 9)]


def test_own_time_that_is_not_known_has_no_share(ask):
    tables = {"step": steps("train"), "op_info": [info(1, "MatMul")], "op": [op(1, 9, self_ns=None)]}
    assert ask("op/by_type", tables, give="total_ns self_ns share cumulative_share") == [(9, None, None, None)]
