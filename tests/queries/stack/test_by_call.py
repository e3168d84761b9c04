TABLES = {
    "op_info": [{"op_id": 0, "name": "linear"}, {"op_id": 1, "name": "addmm"}, {"op_id": 2, "name": "gemm"}],
    "op": [
        {"op_id": 0, "exec_id": 0, "step": 0, "self_ns": 5, "dur_ns": 9, "side": "host"},
        {"op_id": 1, "exec_id": 1, "parent_id": 0, "step": 0, "self_ns": 4, "dur_ns": 4, "side": "host", "self_memory_bytes": 8},
        {"op_id": 2, "exec_id": 2, "parent_id": 1, "step": 0, "self_ns": 70, "dur_ns": 70, "side": "device"},
        {"op_id": 1, "exec_id": 3, "parent_id": 99, "step": 1, "self_ns": 3, "dur_ns": 3, "side": "host"},
    ],
}  # fmt: skip
ALL = {"first_step": -1, "last_step": 1 << 60}


GIVE = "path count host_ns device_ns memory_bytes"


def test_device_work_lies_below_what_launched_it(ask):
    assert ask("stack/by_call", TABLES, **ALL, give=GIVE) == [
        ("addmm", 1, 3, None, None),
        ("linear", 1, 5, None, None),
        ("linear\naddmm", 1, 4, None, 8),
        ("linear\naddmm\ngemm", 1, None, 70, None),
    ]


def test_a_caller_outside_of_the_steps_is_no_caller(ask):
    found = ask("stack/by_call", TABLES, first_step=1, last_step=1, give="path host_ns")
    assert found == [("addmm", 3)]


def test_nothing_of_the_time_is_lost(ask):
    rows = ask("stack/by_call", TABLES, **ALL)
    assert sum(row["host_ns"] or 0 for row in rows) == 12
