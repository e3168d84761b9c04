def tables():
    samples = [(0, 0), (1, 4), (2, 2), (5, 4), (9, 4)]
    return {
        "pipeline": [{"pipeline_id": 0, "pipeline_key": "k", "role": "train"}],
        "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp"}],
        "queue": [{"pipeline_id": 0, "op_id": 1, "t_ns": at, "depth": depth, "capacity": 4} for at, depth in samples],
    }


def test_a_full_queue_is_in_the_last_class(ask):
    rows = ask("queue/histogram", tables(), give="op_id bin samples share", bins=4, rep=0, rank=0)
    assert rows == [(1, 0, 1, 0.2), (1, 2, 1, 0.2), (1, 3, 3, 0.6)]


def test_another_rank_has_none(ask):
    assert ask("queue/histogram", tables(), bins=2, rep=0, rank=1) == []
