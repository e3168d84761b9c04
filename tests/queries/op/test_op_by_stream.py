def op(op_id, dur, track, step=0, **more):
    return {"op_id": op_id, "step": step, "start_ns": 0, "dur_ns": dur, "self_ns": dur, "track": track, **more}


STEPS = [{"step": n, "kind": "train", "start_ns": 100 * n, "end_ns": 100 * n + 100} for n in (0, 1)]
NAMES = [{"op_id": n, "name": name, "type": name} for n, name in ((1, "MatMul"), (2, "Add"), (3, "AllReduce"))]
GIVE = "track tasks operators total_ns mean_ns max_ns step_share longest longest_ns"


def test_streams_are_told_apart(ask):
    tables = {
        "step": STEPS,
        "op_info": NAMES,
        "op": [
            op(1, 30, "Stream 1"),
            op(1, 10, "Stream 1", step=1),
            op(2, 20, "Stream 1", step=1),
            op(3, 50, "Stream 2"),
        ],
    }
    assert ask("op/by_stream", tables, give=GIVE) == [
        ("Stream 1", 3, 2, 60, 20.0, 30, 0.3, "MatMul", 40),
        ("Stream 2", 1, 1, 50, 50.0, 50, 0.5, "AllReduce", 50),  # it ran something in the first step alone
    ]


def test_without_steps_there_is_no_share_of_them(ask):
    tables = {"op_info": NAMES, "op": [op(1, 30, None, step=None)]}
    assert ask("op/by_stream", tables, give="track tasks step_share") == [("", 1, None)]
