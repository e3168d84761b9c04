import pytest
from table_rows import collectives


def test_who_is_last_and_how_long_the_others_wait(ask):
    tables, third = collectives({"a": [30, 10, 40], "b": [25, 5, 65], "c": [5, 15, 15]}), pytest.approx(1 / 3)
    give = "rank steps events last_share expected_share waited_ns caused_ns per_rank_ns collective collective_ns"
    assert ask("rank/last_arrival", tables, give=give) == [
        (0, 1, 3, third, third, 40, 20, 10.0, "c", 20),
        (1, 1, 3, pytest.approx(2 / 3), third, 10, 130, 65.0, "b", 80),
        (2, 1, 3, 0.0, third, 100, 0, 0.0, None, None),
    ]
