import pytest


def tables(durations, ranks=None):
    ranks = range(len(next(iter(durations.values()))))
    return {
        "step": [{"rank": r, "step": 0, "kind_step": 0, "kind": "train", "start_ns": 0, "end_ns": 1000} for r in ranks],
        "collective": [
            {"rank": rank, "step": 0, "name": name, "kind": "all_reduce", "start_ns": place, "dur_ns": dur}
            for place, (name, values) in enumerate(durations.items())
            for rank, dur in enumerate(values)
        ],
    }


def test_who_is_last_and_how_long_the_others_wait(ask):
    rows = ask("rank/last_arrival", tables({"a": [30, 10, 40], "b": [25, 5, 65], "c": [5, 15, 15]}))
    give = (
        "rank",
        "steps",
        "events",
        "last_share",
        "waited_ns",
        "caused_ns",
        "per_rank_ns",
        "collective",
        "collective_ns",
    )
    assert [tuple(row[name] for name in give) for row in rows] == [
        (0, 1, 3, pytest.approx(1 / 3), 40, 20, 10.0, "c", 20),
        (1, 1, 3, pytest.approx(2 / 3), 10, 130, 65.0, "b", 80),
        (2, 1, 3, 0.0, 100, 0, 0.0, None, None),
    ]
    assert [row["expected_share"] for row in rows] == [pytest.approx(1 / 3)] * 3
