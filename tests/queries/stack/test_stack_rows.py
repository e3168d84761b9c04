"""Queries of stacks."""

from query_cases import answers, rows

TABLES = {
    "op_info": [{"op_id": 0, "name": "conv", "stack_id": 4}, {"op_id": 1, "name": "gemm"}, {"op_id": 2, "name": "conv", "stack_id": 4}],
    "op": [
        {"op_id": 0, "step": 0, "self_ns": 5, "dur_ns": 9, "side": "host", "device_self_ns": 20, "self_memory_bytes": 8},
        {"op_id": 2, "step": 1, "self_ns": 6, "dur_ns": 9, "side": "host", "device_self_ns": 2, "self_memory_bytes": -8},
        {"op_id": 1, "step": 1, "self_ns": 22, "dur_ns": 22, "side": "device", "device_self_ns": 22, "parent_id": 0},
        {"op_id": 3, "dur_ns": 1},
    ],
}  # fmt: skip
GIVE = "stack_id name count host_ns device_ns memory_bytes"

test_rows_of_stack_by_location = answers("stack/by_location", {
    "device time counts where it was launched": (GIVE, TABLES,
        [(-1, "3", 1, 1, None, None), (-1, "gemm", 1, None, None, None), (4, "conv", 2, 11, 22, 0)]),
    "device work that nothing launched counts by itself": ("name host_ns device_ns",
        {"op_info": [{"op_id": n, "name": name, "device": name} for n, name in enumerate(("AI_CORE", "CPU"))],
         "op": rows("op_id dur_ns self_ns side parent_id", (0, 30, 30, None, None), (1, 4, 4, None, None),
                    (2, 5, None, "device", None), (2, 7, None, "device", 3))},
        [("2", None, 5), ("AI_CORE", None, 30), ("CPU", 4, None)]),
    "only chosen steps": ("name host_ns", TABLES, [("gemm", None), ("conv", 6)], {"first_step": 1, "last_step": 1}),
}, first_step=-1, last_step=1 << 60)  # fmt: skip

test_rows_of_stack_coverage = answers("stack/coverage", {
    "counts what is known": ("executions located called",
        {"op": [{"op_id": n % 2, "exec_id": n, "parent_id": 0 if n == 3 else None} for n in range(4)],
         "op_info": [{"op_id": 0, "stack_id": 7}, {"op_id": 1}]}, [(4, 2, 1)]),
})  # fmt: skip

test_rows_of_stack_frames = answers("stack/frames", {
    "frames by number": ("stack_id parent_id frame",
        {"stack": rows("stack_id parent_id frame", (2, 1, "b"), (1, None, "a"))}, [(1, None, "a"), (2, 1, "b")]),
})  # fmt: skip
