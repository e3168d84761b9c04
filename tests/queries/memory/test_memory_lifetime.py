def test_the_largest_first(ask):
    allocation = [
        {"address": 16, "bytes": 4, "produced_ns": 9, "released_ns": 12, "op_id": 0},
        {"address": 32, "bytes": 8, "produced_ns": 3, "released_ns": None, "op_id": 5},
        {"address": None, "bytes": 4, "produced_ns": 1, "released_ns": 2},
        {"address": 1, "bytes": 0, "produced_ns": 1, "released_ns": 2},
    ]
    tables = {"allocation": allocation, "op_info": [{"op_id": 0, "name": "conv"}]}
    give = "position address bytes produced_ns released_ns op_id name"
    assert ask("memory/lifetime", tables, top=3, give=give) == [
        (1, 32, 8, 3, None, 5, None), (2, None, 4, 1, 2, None, None), (3, 16, 4, 9, 12, 0, "conv"),
    ]  # fmt: skip
    assert len(ask("memory/lifetime", tables, top=1)) == 1
