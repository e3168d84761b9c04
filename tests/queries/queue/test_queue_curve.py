from queue_rows import TABLES


def test_each_part_of_the_time_has_its_mean_and_its_extremes(ask):
    give = "pipeline_key op_id part op_type t_ns samples mean_depth low_depth high_depth mean_ratio"
    assert ask("queue/curve", TABLES, give=give, points=2, rep=0, rank=0) == [
        ("k", 1, 0, "MapOp", 0, 3, 2.0, 0, 4, 0.5),
        ("k", 1, 1, "MapOp", 5, 2, 4.0, 4, 4, 1.0),
    ]


def test_another_rank_has_none(ask):
    assert ask("queue/curve", TABLES, points=2, rep=0, rank=1) == []
