"""How busy devices were, in all and over time."""

from query_cases import answers, rows
from table_rows import steps

STEPS = steps("warmup", "train", "train", "train")
GIVE = "device steps all_ns busy_ns busy_share least_share least_step most_share"


def op(start, dur, *, op_id=1, step=None, **more):
    return {"op_id": op_id, "step": step, "start_ns": start, "dur_ns": dur, "self_ns": dur, **more}


SLICES = "start_ns end_ns busy_share"

test_rows_of_op_busy = answers("op/busy", {
    "without steps it is the time from the first operator to the last": (GIVE, {"op": [op(100, 10), op(180, 20)]},
        [("", None, 100, 30, 0.3, None, None, None)]),
    "launches and python functions are no work of the device": ("device busy_share",
        {"step": steps("train"),
         "op": [op(0, 90, side="host"), op(10, 40, op_id=2, side="device"), op(0, 100, op_id=3, side="device")],
         "op_info": rows("op_id device category", (2, "GPU", None), (3, "GPU", "user_annotation"))}, [("GPU", 0.4)]),
    "devices are apart": ("device busy_share",
        {"step": STEPS, "op": [op(100, 50), op(150, 25, op_id=2)],
         "op_info": rows("op_id device", (1, "AI_CORE"), (2, "AI_CPU"))}, [("AI_CORE", 0.5), ("AI_CPU", 0.25)]),
})  # fmt: skip

test_rows_of_op_busy_curve = answers("op/busy_curve", {
    "every step with operators is cut into equal slices": (SLICES,
        {"step": STEPS, "op": [op(110, 15), op(140, 10), op(200, 100)]},
        [(100, 125, 0.6), (125, 150, 0.4), (150, 175, 0.0), (175, 200, 0.0), (200, 225, 1.0), (225, 250, 1.0),
         (250, 275, 1.0), (275, 300, 1.0)], {"points": 8}),
    "there is one slice for each step at least": (SLICES,
        {"step": STEPS, "op": [op(110, 15), op(200, 100), op(310, 50)]},
        [(100, 200, 0.15), (200, 300, 1.0), (300, 400, 0.5)]),
    "without steps the recorded time is cut": (SLICES, {"op": [op(0, 30), op(90, 10)]},
        [(0, 50, 0.6), (50, 100, 0.2)]),
}, rep=0, rank=0, points=2)  # fmt: skip


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
