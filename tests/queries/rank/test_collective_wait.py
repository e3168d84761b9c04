def tables(durations, steps=1):
    """{name: one duration per rank}, in every step."""
    ranks = range(len(next(iter(durations.values()))))
    return {
        "step": [
            {"rank": rank, "step": n, "kind_step": n, "kind": "train", "start_ns": 1000 * n, "end_ns": 1000 * (n + 1)}
            for rank in ranks for n in range(steps)
        ],
        "collective": [
            {"rank": rank, "step": n, "name": name, "kind": "all_reduce", "start_ns": 1000 * n + place, "dur_ns": dur}
            for n in range(steps)
            for place, (name, values) in enumerate(durations.items())
            for rank, dur in enumerate(values)
        ],
    }  # fmt: skip


GIVE = "place name ranks steps events transfer_ns waiting_ns wait_share last_rank last_share"


def test_the_largest_waiting_comes_first_with_the_rank_that_causes_it(ask):
    rows = ask("rank/collective_wait", tables({"a": [30, 10], "b": [40, 100]}, steps=2), give=GIVE, top=5)
    assert rows == [
        (1, "b", 2, 2, 2, 40.0, 120, 120 / 280, 0, 1.0),
        (2, "a", 2, 2, 2, 10.0, 40, 40 / 80, 1, 1.0),
    ]


def test_no_rank_is_last_when_all_are_alike(ask):
    assert ask("rank/collective_wait", tables({"a": [10, 10]}), give="waiting_ns last_rank last_share", top=5) == [
        (0, None, None)
    ]


def test_top(ask):
    made = tables({"a": [30, 10], "b": [40, 100]})
    assert ask("rank/collective_wait", made, give="name", top=1) == [("b",)]
