TABLES = {
    "pipeline": [{"pipeline_id": 0, "pipeline_key": "k", "role": "train"}],
    "pipeline_op": [{"pipeline_id": 0, "op_id": 1, "op_type": "MapOp", "site": "b.py:2", "code": None}],
}


def test_where_an_operator_was_made(ask):
    rows = ask("queue/place", TABLES, give="pipeline_key op_id site code", rep=0, rank=0)
    assert rows == [("k", 1, "b.py:2", None)]


def test_another_rank_has_none(ask):
    assert ask("queue/place", TABLES, rep=0, rank=1) == []
