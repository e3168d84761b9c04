def test_every_consumer_of_an_operator_is_named_once(ask):
    edges = [(2, 1), (1, 0), (2, 0), (2, 1)]
    tables = {"pipeline_edge": [{"pipeline_id": 0, "producer_id": up, "consumer_id": down} for up, down in edges]}
    assert ask("queue/edges", tables, give="producer_id consumer_id") == [(1, 0), (2, 0), (2, 1)]


def test_an_edge_without_an_end_is_none(ask):
    rows = [{"pipeline_id": 0, "producer_id": 1}, {"pipeline_id": 0, "consumer_id": 1}]
    assert ask("queue/edges", {"pipeline_edge": rows}, give="producer_id consumer_id") == []
