TABLES = {
    "op_info": [{"op_id": 0, "name": "conv", "stack_id": 4}, {"op_id": 1, "name": "gemm"}, {"op_id": 2, "name": "conv", "stack_id": 4}],
    "op": [
        {"op_id": 0, "step": 0, "self_ns": 5, "dur_ns": 9, "side": "host", "device_self_ns": 20, "self_memory_bytes": 8},
        {"op_id": 2, "step": 1, "self_ns": 6, "dur_ns": 9, "side": "host", "device_self_ns": 2, "self_memory_bytes": -8},
        {"op_id": 1, "step": 1, "self_ns": 22, "dur_ns": 22, "side": "device", "device_self_ns": 22, "parent_id": 0},
        {"op_id": 3, "dur_ns": 1},
    ],
}  # fmt: skip
ALL = {"first_step": -1, "last_step": 1 << 60}
GIVE = "stack_id name count host_ns device_ns memory_bytes"


def test_device_time_counts_where_it_was_launched(ask):
    assert ask("stack/by_location", TABLES, **ALL, give=GIVE) == [
        (-1, "3", 1, 1, None, None), (-1, "gemm", 1, None, None, None), (4, "conv", 2, 11, 22, 0),
    ]  # fmt: skip


def test_device_work_that_nothing_launched_counts_by_itself(ask):
    info = [{"op_id": n, "name": name, "device": name} for n, name in enumerate(("AI_CORE", "CPU"))]
    ops = [
        {"op_id": 0, "dur_ns": 30, "self_ns": 30}, {"op_id": 1, "dur_ns": 4, "self_ns": 4},
        {"op_id": 2, "dur_ns": 5, "side": "device"}, {"op_id": 2, "dur_ns": 7, "side": "device", "parent_id": 3},
    ]  # fmt: skip
    found = ask("stack/by_location", {"op_info": info, "op": ops}, **ALL, give="name host_ns device_ns")
    assert found == [("2", None, 5), ("AI_CORE", None, 30), ("CPU", 4, None)]


def test_only_chosen_steps(ask):
    found = ask("stack/by_location", TABLES, first_step=1, last_step=1, give="name host_ns")
    assert found == [("gemm", None), ("conv", 6)]
