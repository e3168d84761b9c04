import table_rows


def step(rep, rank, number, length, kind="train"):
    return table_rows.step(number, number * 1000, number * 1000 + length, kind, rep=rep, rank=rank)


def curve(ask, steps, points):
    return ask("compare/rep_curve", {"step": steps}, points=points, give="rep point steps dur_ns")


def test_each_step_is_a_point_when_there_is_room(ask):
    steps = [step(rep, 0, number, 10 * rep + number) for rep in (0, 1) for number in range(3)]
    assert curve(ask, steps, 5) == [
        (0, 0, 1, 0.0),
        (0, 1, 1, 1.0),
        (0, 2, 1, 2.0),
        (1, 0, 1, 10.0),
        (1, 1, 1, 11.0),
        (1, 2, 1, 12.0),
    ]


def test_neighbours_share_a_point_and_none_is_lost(ask):
    steps = [step(0, 0, number, number) for number in range(7)]
    assert curve(ask, steps, 3) == [(0, 0, 3, 1.0), (0, 1, 2, 3.5), (0, 2, 2, 5.5)]


def test_warm_up_and_other_ranks_are_left_out(ask):
    steps = [step(0, 1, 0, 99, "warmup"), step(0, 1, 1, 10), step(0, 2, 1, 70), step(0, 1, 2, 50, "eval")]
    assert curve(ask, steps, 9) == [(0, 0, 1, 10.0)]
    assert curve(ask, [step(0, 0, 0, 9, "warmup")], 9) == []
