import pytest

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


@pytest.mark.parametrize(
    ("weight", "rows"),
    [
        ("host", [("addmm", 3), ("linear", 5), ("linear\naddmm", 4)]),
        ("device", [("linear\naddmm\ngemm", 70)]),
        ("count", [("addmm", 1), ("linear", 1), ("linear\naddmm", 1), ("linear\naddmm\ngemm", 1)]),
        ("memory", [("linear\naddmm", 8)]),
    ],
)
def test_weights(ask, weight, rows):
    assert ask("stack/by_call", TABLES, weight=weight, **ALL, give="path weight") == rows


def test_a_caller_outside_of_the_steps_is_no_caller(ask):
    found = ask("stack/by_call", TABLES, weight="host", first_step=1, last_step=1, give="path weight")
    assert found == [("addmm", 3)]


def test_nothing_of_the_time_is_lost(ask):
    rows = ask("stack/by_call", TABLES, weight="host", **ALL)
    assert sum(row["weight"] for row in rows) == 12
