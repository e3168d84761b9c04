import pytest
from query_cases import answers, rows
from table_rows import op


@pytest.fixture
def averages(ask):
    def rows_of(give, tables, group_by="name"):
        return ask("op/key_averages", tables, give, group_by=group_by, stack_depth=0, python_functions=True)

    return rows_of


def info(op_id, name, category="cpu_op", **more):
    return {"op_id": op_id, "name": name, "type": name, "category": category, "phase": "forward", **more}


def test_times_and_memory_are_summed_by_name(averages):
    tables = {
        "op_info": [
            info(1, "aten::mm", in_shapes="[[1]]"),
            info(2, "aten::mm", in_shapes="[[2]]"),
            info(3, "aten::add"),
        ],
        "op": [
            op(1, 30, self_ns=20, memory_bytes=8, self_memory_bytes=4),
            op(2, 10, memory_bytes=-2, self_memory_bytes=-2),
            op(3, 5),
        ],
    }
    give = "key count self_ns total_ns self_memory_bytes memory_bytes device_self_ns in_shapes stack"
    assert averages(give, tables) == [
        ("aten::add", 1, 5, 5, None, None, None, None, None),
        ("aten::mm", 2, 30, 40, 2, 6, None, None, None),
    ]


def test_shapes_split_a_name(averages):
    tables = {
        "op_info": [info(1, "mm", in_shapes="[[1]]"), info(2, "mm", in_shapes="[[2]]"), info(3, "mm")],
        "op": [op(1, 30, self_ns=20), op(2, 10), op(3, 5), op(1, 1)],
    }
    assert averages("key in_shapes count total_ns", tables, "shape") == [
        ("mm", "[[1]]", 2, 31),
        ("mm", "[[2]]", 1, 10),
        ("mm", "[]", 1, 5),
    ]


def test_type_scope_and_phase_are_keys(averages):
    tables = {
        "op_info": [
            info(1, "a/mm-1", type="mm", scope="a", phase="forward"),
            info(2, "b/mm-2", type="mm", scope="b", phase="backward"),
            info(3, "x", type=None, scope=None, phase=None),
        ],
        "op": [op(1, 1), op(2, 2), op(3, 4), op(7, 8)],
    }

    def keys(group):
        return averages("key category count total_ns", tables, group)

    assert keys("type") == [("", None, 2, 12), ("mm", None, 2, 3)]
    assert keys("scope") == [("", None, 2, 12), ("a", None, 1, 1), ("b", None, 1, 2)]
    assert keys("phase") == [("", None, 2, 12), ("backward", None, 1, 2), ("forward", None, 1, 1)]


NESTED = {
    "op_info": [info(1, "forward", "user_annotation"), info(2, "a.py(1): f", "python_function"), info(3, "mm", None)],
    "op": [op(1, 10, self_ns=2), op(2, 8, self_ns=3), op(3, 5)],
}
STACKS = {
    "op_info": [info(1, "mm", stack_id=2), info(2, "mm", stack_id=4), info(3, "mm"), info(4, "mm", stack_id=0)],
    "op": [op(1, 1), op(2, 2), op(3, 4), op(4, 8)],
    "stack": rows("stack_id parent_id frame", (0, None, "main"), (1, 0, "train"), (2, 1, "conv"), (3, 0, "eval"),
                  (4, 3, "conv")),
}  # fmt: skip

test_rows_of_op_key_averages = answers("op/key_averages", {
    "the innermost frames split a name": (STACKS,
        ("stack count total_ns", [("", 1, 4), ("conv", 2, 3), ("main", 1, 8)], {"group_by": "stack", "stack_depth": 1}),
        ("stack count total_ns", [("", 1, 4), ("conv\neval", 1, 2), ("conv\ntrain", 1, 1), ("main", 1, 8)],
         {"group_by": "stack", "stack_depth": 2}),
        ("stack count total_ns", [("", 1, 4), ("conv\neval\nmain", 1, 2), ("conv\ntrain\nmain", 1, 1), ("main", 1, 8)],
         {"group_by": "stack", "stack_depth": 9}), ("stack count total_ns", [("", 4, 15)], {"group_by": "stack"})),
    "operations are those of the executions of which they are known": ("key computation computation_count count",
        {"op_info": [info(1, "mm", flops=100), info(2, "mm", flops=10), info(3, "relu"), info(4, "mm")],
         "op": [op(1, 1), op(1, 1), op(2, 1), op(3, 1), op(4, 1)]}, [("mm", 210.0, 3, 4), ("relu", None, 0, 1)]),
    "device rows have device time alone": ("key category on_device self_ns total_ns device_self_ns device_total_ns",
        {"op_info": [info(1, "aten::mm"), info(2, "gemm", "kernel", device="GPU")],
         "op": [op(1, 30, side="host", device_self_ns=7, device_total_ns=7),
                op(2, 7, side="device", device_self_ns=7, device_total_ns=7)]},
        [("aten::mm", "cpu_op", False, 30, 30, 7, 7), ("gemm", "kernel", True, 0, 0, 7, 7)]),
    "ranks and repetitions stay apart": ("rank key total_ns",
        {"op_info": [info(1, "mm"), info(1, "add", rank=1)], "op": [op(1, 1), op(1, 2, rank=1)]},
        [(0, "mm", 1), (1, "add", 2)]),
    "python functions are left out and no own time changes": (NESTED,
        ("key self_ns total_ns", [("a.py(1): f", 3, 8), ("forward", 2, 10), ("mm", 5, 5)]),
        ("key self_ns total_ns", [("forward", 2, 10), ("mm", 5, 5)], {"python_functions": False}),
        ("key self_ns total_ns", [("forward", 7, 15)], {"group_by": "phase", "python_functions": False})),
}, group_by="name", stack_depth=0, python_functions=True)  # fmt: skip
