def op(pipeline, number, kind, capacity=None):
    return {"pipeline_id": pipeline, "op_id": number, "op_type": kind, "capacity": capacity}


def test_a_key_is_shown_once_with_the_tree_whose_queues_are_known(ask):
    tables = {
        "pipeline": [{"pipeline_id": n, "pipeline_key": "a", "role": "train"} for n in (0, 1)],
        "pipeline_op": [op(0, 0, "BatchOp"), op(0, 1, "MapOp"), op(1, 0, "BatchOp", 16), op(1, 1, "MapOp", 4)],
        "pipeline_edge": [{"pipeline_id": n, "producer_id": 1, "consumer_id": 0} for n in (0, 1)],
    }
    rows = ask("queue/tree", tables, give="pipeline_key op_id op_type capacity consumer_id")
    assert rows == [("a", 0, "BatchOp", 16, None), ("a", 1, "MapOp", 4, 0)]


def test_of_equal_trees_the_first_is_shown(ask):
    tables = {
        "pipeline": [{"pipeline_id": n, "pipeline_key": "a", "role": "train"} for n in (0, 1)],
        "pipeline_op": [{**op(0, 0, "BatchOp", 8), "workers": 1}, {**op(1, 0, "BatchOp", 8), "workers": 2}],
    }
    assert ask("queue/tree", tables, give="workers") == [(1,)]
