from table_rows import steps

STEPS = steps("warmup", "train", "train", "train")
GIVE = "device steps all_ns busy_ns busy_share least_share least_step most_share"


def op(start, dur, *, op_id=1, step=None, **more):
    return {"op_id": op_id, "step": step, "start_ns": start, "dur_ns": dur, "self_ns": dur, **more}


def test_streams_side_by_side_count_once_and_steps_without_operators_do_not_count(ask):
    ops = [
        op(10, 50, step=0),  # warm-up: there are training steps
        op(110, 30, step=1, track="a"), op(120, 10, step=1, track="b"), op(130, 20, step=1, track="b"),
        op(220, 100, step=2),  # ends in the next step
    ]  # fmt: skip
    info = [{"op_id": 1, "device": "GPU"}]
    assert ask("op/busy", {"step": STEPS, "op": ops, "op_info": info}, give=GIVE) == [
        ("GPU", 2, 200, 40 + 80, 0.6, 0.4, 1, 0.8)
    ]


def test_without_steps_it_is_the_time_from_the_first_operator_to_the_last(ask):
    assert ask("op/busy", {"op": [op(100, 10), op(180, 20)]}, give=GIVE) == [
        ("", None, 100, 30, 0.3, None, None, None)
    ]  # fmt: skip


def test_launches_and_python_functions_are_no_work_of_the_device(ask):
    ops = [op(0, 90, side="host"), op(10, 40, op_id=2, side="device"), op(0, 100, op_id=3, side="device")]
    info = [{"op_id": 2, "device": "GPU"}, {"op_id": 3, "device": "GPU", "category": "user_annotation"}]
    assert ask("op/busy", {"step": steps("train"), "op": ops, "op_info": info}, give="device busy_share") == [
        ("GPU", 0.4)
    ]


def test_devices_are_apart(ask):
    ops = [op(100, 50), op(150, 25, op_id=2)]
    info = [{"op_id": 1, "device": "AI_CORE"}, {"op_id": 2, "device": "AI_CPU"}]
    assert ask("op/busy", {"step": STEPS, "op": ops, "op_info": info}, give="device busy_share") == [
        ("AI_CORE", 0.5), ("AI_CPU", 0.25),
    ]  # fmt: skip
