"""Queries of operators."""

from query_cases import answers, rows
from table_rows import op, steps


def info(op_id, kind, device):
    return {"op_id": op_id, "name": f"Default/{kind}-op{op_id}", "type": kind, "device": device}


GIVE = "device position type count total_ns mean_ns max_ns wait_ns share"


def typed(op_id, kind, phase="forward"):
    return {"op_id": op_id, "name": f"Default/{kind}-op{op_id}", "type": kind, "phase": phase}


NAMES = [{"op_id": n, "name": name, "type": name} for n, name in ((1, "MatMul"), (2, "Add"), (3, "AllReduce"))]
STREAMS = "track tasks operators total_ns mean_ns max_ns step_share longest longest_ns"


def run(op_id, dur, side, track, **more):
    return {"op_id": op_id, "dur_ns": dur, "self_ns": dur, "side": side, "track": track, **more}


test_rows_of_op_by_device = answers("op/by_device", {
    "each device has its own shares": (GIVE,
        {"step": steps("train"),
         "op_info": [info(1, "GetNext", "AI_CPU"), info(2, "Print", "AI_CPU"), info(3, "MatMul", "AI_CORE")],
         "op": [op(1, 20, wait_ns=4), op(1, 40, wait_ns=6), op(2, 40), op(3, 900)]},
        [("AI_CORE", 1, "MatMul", 1, 900, 900.0, 900, None, 1.0), ("AI_CPU", 1, "GetNext", 2, 60, 30.0, 40, 5.0, 0.6),
         ("AI_CPU", 2, "Print", 1, 40, 40.0, 40, None, 0.4)]),
    "a device that is not named is one of its own": ("device type share",
        {"step": steps("train"), "op_info": [info(1, "MatMul", None)], "op": [op(1, 5)]}, [("", "MatMul", 1.0)]),
    # One of them lies between steps, and its time reaches from the dispatch on.
    "all executions of the ai cpu count as the source sums them up": (GIVE,
        {"step": steps("train"), "op_info": [info(1, "GetNext", "AI_CPU"), info(3, "MatMul", "AI_CORE")],
         "op": [op(1, 20, wait_ns=4), op(1, 40, step=None, wait_ns=6), op(3, 900)],
         "op_total": rows("source device type count total_ns max_ns dispatch_ns",
                          ("aicpu", "AI_CPU", "GetNext", 2, 90, 70, 10),
                          ("aicore_type", "AI_CORE", "GetNext", 2, 90, 70, None))},
        [("AI_CORE", 1, "MatMul", 1, 900, 900.0, 900, None, 1.0), ("AI_CPU", 1, "GetNext", 2, 90, 45.0, 70, 5.0, 1.0)]),
})  # fmt: skip

test_rows_of_op_by_type = answers("op/by_type", {
    "most own time first with running sums": (
        "position type count steps total_ns self_ns mean_ns max_ns share cumulative_ns cumulative_share",
        {"step": steps("train", "train"), "op_info": [typed(1, "Conv2D"), typed(2, "ReLU"), typed(3, "Conv2D")],
         "op": [op(1, 40, self_ns=30), op(3, 30, start=40), op(2, 20, start=70), op(2, 20, step=1)]},
        [(1, "Conv2D", 2, 1, 70, 60, 35.0, 40, 0.6, 60, 0.6), (2, "ReLU", 2, 2, 40, 40, 20.0, 20, 0.4, 100, 1.0)]),
    "equal types go by name": ("position type cumulative_share",
        {"step": steps("train"), "op_info": [typed(1, "B"), typed(2, "A")], "op": [op(1, 5), op(2, 5, start=5)]},
        [(1, "A", 0.5), (2, "B", 1.0)]),
    "a type seen in two phases is mixed": ("type phase",
        {"step": steps("train"),
         "op_info": [typed(1, "MatMul"), typed(2, "MatMul", "backward"), typed(3, "Adam", "optimizer")],
         "op": [op(1, 5), op(2, 5, start=5), op(3, 1, start=10)]}, [("MatMul", "mixed"), ("Adam", "optimizer")]),
    "warmup and evaluation do not count beside training": ("type count self_ns",
        {"step": steps("warmup", "train", "eval"), "op_info": [typed(1, "MatMul")],
         "op": [op(1, 900, step=0), op(1, 5, step=1, start=900), op(1, 700, step=2, start=910), op(1, 3, step=None)]},
        [("MatMul", 1, 5)]),
    "warmup counts when nothing else was recorded": ("type self_ns",
        {"step": steps("warmup", "train"), "op_info": [typed(1, "MatMul")], "op": [op(1, 9, step=0)]}, [("MatMul", 9)]),
    "operators without steps count when no operator has one": ("type count steps share",
        {"op_info": [typed(1, "MatMul")], "op": [op(1, 9, step=None)]}, [("MatMul", 1, 0, 1.0)]),
    "an unknown operator is listed without a type": ("type phase self_ns", {"step": steps("train"), "op": [op(7, 9)]},
        [(None, None, 9)]),
    "own time that is not known has no share": ("total_ns self_ns share cumulative_share",
        {"step": steps("train"), "op_info": [typed(1, "MatMul")], "op": [op(1, 9, self_ns=None)]},
        [(9, None, None, None)]),
})  # fmt: skip

test_rows_of_op_by_stream = answers("op/by_stream", {
    # it ran something in the first step alone
    "streams are told apart": (STREAMS,
        {"step": steps("train", "train"), "op_info": NAMES,
         "op": [op(1, 30, track="Stream 1"), op(1, 10, track="Stream 1", step=1), op(2, 20, track="Stream 1", step=1),
                op(3, 50, track="Stream 2")]},
        [("Stream 1", 3, 2, 60, 20.0, 30, 0.3, "MatMul", 40), ("Stream 2", 1, 1, 50, 50.0, 50, 0.5, "AllReduce", 50)]),
    "without steps there is no share of them": ("track tasks step_share",
        {"op_info": NAMES, "op": [op(1, 30, track=None, step=None)]}, [("", 1, None)]),
})  # fmt: skip

test_rows_of_op_operators = answers("op/operators", {
    "every operator with what the source says": ("op_id opr_id name type in_types",
        {"op_info": [{"op_id": 1, "name": "b", "source_id": "9"},
                     {"op_id": 0, "name": "a", "type": "Add", "in_types": "[]"}]},
        [(0, None, "a", "Add", "[]"), (1, "9", "b", None, None)]),
})  # fmt: skip

test_rows_of_op_side_total = answers("op/side_total", {
    "each operator counts with its longest over devices": ("side ops count total_ns",
        {"op": [run(0, 40, "device", "a"), run(0, 30, "device", "b"), run(1, 5, "device", "a"), run(1, 2, "host", "w"),
                run(2, None, "host", "w")]}, [("device", 2, 2, 45.0), ("host", 2, 2, 2.0)]),
    "a side without a known time has none": ("side total_ns", {"op": [run(0, None, None, "a")]}, [("device", None)]),
    "training steps count when there are any": ("side count total_ns",
        {"step": rows("step kind", (0, "warmup"), (1, "train"), (2, "eval")),
         "op": [run(0, 9, None, "a", step=0), run(0, 5, None, "a", step=1), run(0, 3, None, "a", step=2)]},
        [("device", 1, 5.0)]),
})  # fmt: skip


TWICE = [{"source": source, "device": "AI_CORE", "type": "Add", "count": 2, "total_ns": 10, "name": name}
         for source, name in (("aicore_type", None), ("aicore_detail", "x/Add-op1"))]  # fmt: skip
TOTAL = "source device name type count total_ns"

test_rows_of_op_totals = answers("op/totals", {
    "types of each device with most time first": (
        "device position name type in_shapes count total_ns self_ns mean_ns share recorded",
        {"op_total": rows(f"{TOTAL} mean_ns", ("aicore_type", "AI_CORE", None, "Add", 2, 10, 5),
                          ("aicore_type", "AI_CORE", None, "MatMul", 3, 30, 10),
                          ("aicpu", "AI_CPU", None, "GetNext", 1, 7, 7))},
        [("AI_CORE", 1, None, "MatMul", None, 3, 30, 30, 10.0, 0.75, False),
         ("AI_CORE", 2, None, "Add", None, 2, 10, 10, 5.0, 0.25, False),
         ("AI_CPU", 1, None, "GetNext", None, 1, 7, 7, 7.0, 1.0, False)]),
    "a devices own totals of types are not counted twice": ({"op_total": TWICE}, ("type total_ns", [("Add", 10)]),
        ("name total_ns", [("x/Add-op1", 10)], {"group_by": "name"})),
    "single operators are added up by type where no types are given": ({"op_total": rows(f"{TOTAL} shapes self_ns",
            ("operator_details", "host", "a", "Add", 1, 10, "[2]", 2),
            ("operator_details", "host", "b", "Add", 1, 20, "[2]", 2))},
        ("name type in_shapes count total_ns self_ns mean_ns", [(None, "Add", None, 2, 30, 4, 15.0)]),
        ("name type in_shapes count total_ns self_ns mean_ns", [("a", "Add", "[2]", 1, 10, 2, 10.0)],
         {"group_by": "name", "top": 1})),
    "layers of the host are apart": ("device layer position type share",
        {"op_total": rows(TOTAL, ("operator_details", "host", "a", None, 1, 10),
                          ("api_statistic", "host", "b", "acl", 1, 30))},
        [("host", "api_statistic", 1, "acl", 1.0), ("host", "operator_details", 1, "a", 1.0)]),
    "a mean without a count has no total and comes last": ("position name count total_ns mean_ns share",
        {"op_total": rows(f"{TOTAL} mean_ns", ("aicore_type", "AI_CORE", "a", None, None, None, 5),
                          ("aicore_type", "AI_CORE", "b", None, None, None, 9),
                          ("aicore_type", "AI_CORE", "c", None, 1, 1, 1))},
        [(1, "c", 1, 1, 1.0, 1.0), (2, "b", None, None, 9.0, None), (3, "a", None, None, 5.0, None)],
        {"group_by": "name"}),
    "whether executions on the device were recorded too": ("device recorded",
        {"op_total": rows(TOTAL, ("aicore_type", "AI_CORE", None, "Add", 1, 1),
                          ("aicore_type", "host", None, "x", 1, 1)), "op": [op(0, 1)],
         "op_info": [{"op_id": 0, "device": "AI_CORE"}]}, [("AI_CORE", True), ("host", False)]),
}, group_by="type", top=9)  # fmt: skip
