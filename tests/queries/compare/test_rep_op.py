INFO = [
    {"op_id": 0, "name": "net/Conv2D-op1", "type": "Conv2D", "in_shapes": "1x3", "out_shapes": "1x8"},
    {"op_id": 1, "name": None, "type": "Relu"},
]


def op(op_id, step, self_ns, **more):
    return {"op_id": op_id, "step": step, "start_ns": step * 100, "dur_ns": self_ns, "self_ns": self_ns, **more}


def steps(*numbers, **more):
    return [{"step": n, "kind": "train", "start_ns": n, "end_ns": n + 1, "in_window": True, **more} for n in numbers]


def test_time_and_executions_per_step(ask):
    ops = [op(0, 1, 10), op(0, 1, 30), op(0, 2, 20), op(1, 1, 6)]
    found = ask("compare/rep_op", {"op": ops, "op_info": INFO, "step": steps(1, 2)})
    assert [tuple(row.values()) for row in found] == [
        (0, "Relu", "Relu", "", "", 3.0, 0.5),
        (0, "net/Conv2D-op1", "Conv2D", "1x3", "1x8", 30.0, 1.5),
    ]


def test_ranks_are_averaged(ask):
    info = [*INFO, {**INFO[0], "rank": 1}]
    ops = [op(0, 1, 10), op(0, 1, 30, rank=1)]
    tables = {"op": ops, "op_info": info, "step": steps(1) + steps(1, rank=1)}
    assert ask("compare/rep_op", tables, give="self_ns executions") == [(20.0, 1.0)]
