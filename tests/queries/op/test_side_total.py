"""op/side_total: the time of all operators on each side."""


def run(op_id, dur, side, track, **more):
    return {"op_id": op_id, "dur_ns": dur, "self_ns": dur, "side": side, "track": track, **more}


def test_each_operator_counts_with_its_longest_over_devices(ask):
    tables = {
        "op": [
            run(0, 40, "device", "a"), run(0, 30, "device", "b"), run(1, 5, "device", "a"), run(1, 2, "host", "w"),
            run(2, None, "host", "w"),
        ],
    }  # fmt: skip
    assert ask("op/side_total", tables, give="side ops count total_ns") == [("device", 2, 2, 45.0), ("host", 2, 2, 2.0)]


def test_a_side_without_a_known_time_has_none(ask):
    assert ask("op/side_total", {"op": [run(0, None, None, "a")]}, give="side total_ns") == [("device", None)]


def test_training_steps_count_when_there_are_any(ask):
    step = [{"step": 0, "kind": "warmup"}, {"step": 1, "kind": "train"}, {"step": 2, "kind": "eval"}]
    op = [run(0, 9, None, "a", step=0), run(0, 5, None, "a", step=1), run(0, 3, None, "a", step=2)]
    assert ask("op/side_total", {"step": step, "op": op}, give="side count total_ns") == [("device", 1, 5.0)]
