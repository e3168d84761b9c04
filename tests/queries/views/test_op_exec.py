def test_an_execution_carries_its_operator_and_its_step(look):
    tables = {
        "step": [{"step": 3, "kind": "train", "in_window": True, "start_ns": 0, "end_ns": 9}],
        "op_info": [{"op_id": 1, "name": "Default/Add-op1", "type": "Add", "phase": "forward", "bytes": 8}],
        "op": [{"op_id": 1, "step": 3, "start_ns": 2, "dur_ns": 5, "self_ns": 4, "track": "0"}],
    }
    text = "SELECT op_id, step, kind, in_window, dur_ns, self_ns, name, type, phase, bytes FROM op_exec"
    assert look(text, tables) == [(1, 3, "train", True, 5, 4, "Default/Add-op1", "Add", "forward", 8)]


def test_an_execution_without_operator_or_step_is_kept(look):
    assert look("SELECT op_id, kind, type, dur_ns FROM op_exec", {"op": [{"op_id": 1, "dur_ns": 5}]}) == [
        (1, None, None, 5)
    ]


def test_ranks_do_not_mix(look):
    tables = {
        "op_info": [{"op_id": 1, "type": "Add"}, {"op_id": 1, "type": "Sub", "rank": 1}],
        "op": [{"op_id": 1, "dur_ns": 5}, {"op_id": 1, "dur_ns": 6, "rank": 1}],
    }
    assert look("SELECT rank, type, dur_ns FROM op_exec ORDER BY rank", tables) == [(0, "Add", 5), (1, "Sub", 6)]
