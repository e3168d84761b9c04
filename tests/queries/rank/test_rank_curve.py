from table_rows import own_times

GIVE = "phase point first_position last_position ranks median_ns min_ns max_ns slowest_rank"


def test_the_middle_and_the_extremes_of_the_ranks(ask):
    rows = ask("rank/curve", own_times({0: [10, 20], 1: [30, 20], 2: [20, 80]}), give=GIVE, points=9)
    assert [row for row in rows if row[0] == "own"] == [
        ("own", 0, 0, 0, 3, 20.0, 10.0, 30.0, 1),
        ("own", 1, 1, 1, 3, 20.0, 20.0, 80.0, 2),
    ]


def test_several_steps_become_one_point(ask):
    rows = ask("rank/curve", own_times({0: [10, 20, 30, 40], 1: [0, 0, 0, 0]}), give=GIVE, points=2)
    assert [row for row in rows if row[0] == "own"] == [
        ("own", 0, 0, 1, 2, 7.5, 0.0, 15.0, 0),
        ("own", 1, 2, 3, 2, 17.5, 0.0, 35.0, 0),
    ]
