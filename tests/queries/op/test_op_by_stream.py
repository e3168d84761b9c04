from table_rows import op, steps

NAMES = [{"op_id": n, "name": name, "type": name} for n, name in ((1, "MatMul"), (2, "Add"), (3, "AllReduce"))]
GIVE = "track tasks operators total_ns mean_ns max_ns step_share longest longest_ns"


def test_streams_are_told_apart(ask):
    tables = {
        "step": steps("train", "train"),
        "op_info": NAMES,
        "op": [
            op(1, 30, track="Stream 1"),
            op(1, 10, track="Stream 1", step=1),
            op(2, 20, track="Stream 1", step=1),
            op(3, 50, track="Stream 2"),
        ],
    }
    assert ask("op/by_stream", tables, give=GIVE) == [
        ("Stream 1", 3, 2, 60, 20.0, 30, 0.3, "MatMul", 40),
        ("Stream 2", 1, 1, 50, 50.0, 50, 0.5, "AllReduce", 50),  # it ran something in the first step alone
    ]


def test_without_steps_there_is_no_share_of_them(ask):
    tables = {"op_info": NAMES, "op": [op(1, 30, track=None, step=None)]}
    assert ask("op/by_stream", tables, give="track tasks step_share") == [("", 1, None)]
