from table_rows import collectives

GIVE = "place name ranks steps events transfer_ns waiting_ns wait_share last_rank last_share"


def test_the_largest_waiting_comes_first_with_the_rank_that_causes_it(ask):
    rows = ask("rank/collective_wait", collectives({"a": [30, 10], "b": [40, 100]}, 2), give=GIVE, top=5)
    assert rows == [
        (1, "b", 2, 2, 2, 40.0, 120, 120 / 280, 0, 1.0),
        (2, "a", 2, 2, 2, 10.0, 40, 40 / 80, 1, 1.0),
    ]


def test_no_rank_is_last_when_all_are_alike(ask):
    assert ask("rank/collective_wait", collectives({"a": [10, 10]}), give="waiting_ns last_rank last_share", top=5) == [
        (0, None, None)
    ]


def test_top(ask):
    made = collectives({"a": [30, 10], "b": [40, 100]})
    assert ask("rank/collective_wait", made, give="name", top=1) == [("b",)]
