from query_cases import answers
from table_rows import op, steps

STEPS = steps("train")

test_rows_of_op_by_instance = answers("op/by_instance", {
    "shares are of all operators also of those left out": ("position op_id share cumulative_ns cumulative_share",
        {"step": STEPS, "op": [op(1, 10), op(2, 30, start=10), op(3, 60, start=40)]},
        [(1, 3, 0.6, 60, 0.6), (2, 2, 0.3, 90, 0.9)]),
    "top is for each rank and equals go by id": ("rank op_id",
        {"step": [*STEPS, {**STEPS[0], "rank": 1}], "op": [op(2, 5), op(1, 5, start=5), op(9, 5, rank=1)]},
        [(0, 1), (1, 9)], {"top": 1}),
    "occupancy is the mean by time of the executions that have it": ("op_id occupancy_ratio",
        {"step": STEPS, "op": [op(1, 30, occupancy_ratio=1.0), op(1, 10, start=30, occupancy_ratio=0.2),
                               op(1, 60, start=40), op(2, 1, start=99)]}, [(1, 0.8), (2, None)], {"top": 5}),
}, top=2)  # fmt: skip


def test_each_operator_for_itself_with_its_facts(ask):
    shown = {
        "scope": "Default/net",
        "device": "CPU",
        "in_shapes": "[2,3]",
        "out_shapes": "[2]",
        "flops": 12,
        "bytes": 48,
    }
    facts = {"name": "Default/net/MatMul-op1", "type": "MatMul", "phase": "forward"} | shown
    tables = {
        "step": STEPS,
        "op_info": [{"op_id": 1, **facts}],
        "op": [op(1, 30), op(1, 10, start=30)],
    }
    row = ask("op/by_instance", tables, top=5)[0]
    assert row.items() >= facts.items()
    assert row.items() >= {"count": 2, "steps": 1, "total_ns": 40, "self_ns": 40, "mean_ns": 20.0, "max_ns": 30}.items()
