from test_busy import STEPS, op

GIVE = "start_ns end_ns busy_share"


def test_every_step_with_operators_is_cut_into_equal_slices(ask):
    ops = [op(110, 15), op(140, 10), op(200, 100)]
    assert ask("op/busy_curve", {"step": STEPS, "op": ops}, rep=0, rank=0, points=8, give=GIVE) == [
        (100, 125, 0.6), (125, 150, 0.4), (150, 175, 0.0), (175, 200, 0.0),
        (200, 225, 1.0), (225, 250, 1.0), (250, 275, 1.0), (275, 300, 1.0),
    ]  # fmt: skip


def test_there_is_one_slice_for_each_step_at_least(ask):
    ops = [op(110, 15), op(200, 100), op(310, 50)]
    assert ask("op/busy_curve", {"step": STEPS, "op": ops}, rep=0, rank=0, points=2, give=GIVE) == [
        (100, 200, 0.15), (200, 300, 1.0), (300, 400, 0.5),
    ]  # fmt: skip


def test_without_steps_the_recorded_time_is_cut(ask):
    found = ask("op/busy_curve", {"op": [op(0, 30), op(90, 10)]}, rep=0, rank=0, points=2, give=GIVE)
    assert found == [(0, 50, 0.6), (50, 100, 0.2)]
