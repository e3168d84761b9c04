from table_rows import op, steps

STEPS = steps("train")


def test_each_operator_for_itself_with_its_facts(ask):
    facts = {
        "scope": "Default/net",
        "device": "CPU",
        "in_shapes": "[2,3]",
        "out_shapes": "[2]",
        "flops": 12,
        "bytes": 48,
    }
    tables = {
        "step": STEPS,
        "op_info": [{"op_id": 1, "name": "Default/net/MatMul-op1", "type": "MatMul", "phase": "forward", **facts}],
        "op": [op(1, 30), op(1, 10, start=30)],
    }
    row = ask("op/by_instance", tables, top=5)[0]
    assert row.items() >= facts.items()
    assert row.items() >= {"name": "Default/net/MatMul-op1", "type": "MatMul", "phase": "forward"}.items()
    assert row.items() >= {"count": 2, "steps": 1, "total_ns": 40, "self_ns": 40, "mean_ns": 20.0, "max_ns": 30}.items()


def test_shares_are_of_all_operators_also_of_those_left_out(ask):
    tables = {"step": STEPS, "op": [op(1, 10), op(2, 30, start=10), op(3, 60, start=40)]}
    rows = ask("op/by_instance", tables, top=2, give="position op_id share cumulative_ns cumulative_share")
    assert rows == [(1, 3, 0.6, 60, 0.6), (2, 2, 0.3, 90, 0.9)]


def test_top_is_for_each_rank_and_equals_go_by_id(ask):
    tables = {
        "step": [*STEPS, {**STEPS[0], "rank": 1}],
        "op": [op(2, 5), op(1, 5, start=5), op(9, 5, rank=1)],
    }
    assert ask("op/by_instance", tables, top=1, give="rank op_id") == [(0, 1), (1, 9)]


def test_occupancy_is_the_mean_by_time_of_the_executions_that_have_it(ask):
    kernels = [
        op(1, 30, occupancy_ratio=1.0),
        op(1, 10, start=30, occupancy_ratio=0.2),
        op(1, 60, start=40),
        op(2, 1, start=99),
    ]
    rows = ask("op/by_instance", {"step": STEPS, "op": kernels}, top=5, give="op_id occupancy_ratio")
    assert rows == [(1, 0.8), (2, None)]
