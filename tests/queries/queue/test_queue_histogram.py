from queue_rows import TABLES


def test_a_full_queue_is_in_the_last_class(ask):
    rows = ask("queue/histogram", TABLES, give="op_id bin samples share", bins=4, rep=0, rank=0)
    assert rows == [(1, 0, 1, 0.2), (1, 2, 1, 0.2), (1, 3, 3, 0.6)]


def test_another_rank_has_none(ask):
    assert ask("queue/histogram", TABLES, bins=2, rep=0, rank=1) == []
