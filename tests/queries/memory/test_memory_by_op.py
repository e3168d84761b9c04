GIVE = "position name count self_memory_bytes memory_bytes self_device_memory_bytes blocks allocated_bytes kept_bytes"


def test_executions_and_blocks_of_one_name_are_added_up(ask):
    tables = {
        "op_info": [{"op_id": n, "name": name, "type": "T"} for n, name in enumerate(("a", "a", "b"))],
        "op": [
            {"op_id": 0, "start_ns": 0, "dur_ns": 1, "self_memory_bytes": 5, "memory_bytes": 9},
            {"op_id": 1, "start_ns": 2, "dur_ns": 1, "self_memory_bytes": -2, "memory_bytes": 1},
            {"op_id": 2, "start_ns": 4, "dur_ns": 1},
        ],
        "allocation": [
            {"op_id": 2, "bytes": 7, "produced_ns": 0, "released_ns": 3},
            {"op_id": 2, "bytes": 8, "produced_ns": 1},
            {"op_id": None, "bytes": 1, "produced_ns": 1, "released_ns": 4},
        ],
    }
    assert ask("memory/by_op", tables, top=9, give=GIVE) == [
        (1, "a", 2, 3, 10, None, None, None, None),
        (2, "b", None, None, None, None, 2, 15, 8),
        (3, None, None, None, None, None, 1, 1, 0),
    ]
    assert len(ask("memory/by_op", tables, top=1)) == 1
