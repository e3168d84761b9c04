from table_rows import phased_step


def step(number, dur, start=0, **more):
    return phased_step(number, start, start + 2, start + 5, start + dur, **more)


def tables():
    starts, found = 0, []
    for number, dur in enumerate((50, 10, 20, 30)):
        found.append(step(number, dur, starts, kind="warmup" if number == 0 else "train"))
        starts += dur
    return {"step": [*found, step(9, 500, 500, kind="eval"), step(0, 70, rank=1)]}


GIVE = "rank point first_step last_step steps warmup_steps dur_ns max_ns data_wait_ns forward_backward_ns tail_ns"


def test_every_step_is_a_point_when_there_are_enough(ask):
    assert ask("step/curve", tables(), give=GIVE, points=4, rep=-1, rank=-1) == [
        (0, 0, 0, 0, 1, 1, 50.0, 50, 2.0, 3.0, 45.0),
        (0, 1, 1, 1, 1, 0, 10.0, 10, 2.0, 3.0, 5.0),
        (0, 2, 2, 2, 1, 0, 20.0, 20, 2.0, 3.0, 15.0),
        (0, 3, 3, 3, 1, 0, 30.0, 30, 2.0, 3.0, 25.0),
        (1, 0, 0, 0, 1, 0, 70.0, 70, 2.0, 3.0, 65.0),
    ]


def test_fewer_points_stand_for_several_steps(ask):
    assert ask("step/curve", tables(), give=GIVE, points=2, rep=0, rank=0) == [
        (0, 0, 0, 1, 2, 1, 30.0, 50, 2.0, 3.0, 25.0),
        (0, 1, 2, 3, 2, 0, 25.0, 30, 2.0, 3.0, 20.0),
    ]


def test_communication_of_the_steps(ask):
    made = {**tables(), "collective": [{"step": 1, "start_ns": 54, "dur_ns": 4}]}
    rows = ask("step/curve", made, give="first_step comm_ns tail_comm_ns", points=9, rep=0, rank=0)
    assert rows == [(0, None, None), (1, 4.0, 3.0), (2, 0.0, 0.0), (3, 0.0, 0.0)]
