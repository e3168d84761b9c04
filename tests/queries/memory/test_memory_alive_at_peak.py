GIVE = "position name type blocks bytes share t_ns oldest_ns"


def block(op_id, size, produced, released):
    return {"op_id": op_id, "bytes": size, "produced_ns": produced, "released_ns": released}


TABLES = {
    "op_info": [{"op_id": 0, "name": "conv", "type": "Conv2D"}, {"op_id": 1, "name": "relu", "type": "ReLU"}],
    "allocation": [
        block(0, 60, 0, 100), block(0, 20, 5, 11), block(1, 15, 8, None), block(None, 5, 9, 10),
        block(1, 90, 0, 4), block(1, 4, 10, 11),
    ],
}  # fmt: skip


def test_operators_by_what_they_made_that_was_alive(ask):
    assert ask("memory/alive_at_peak", TABLES, top=9, give=GIVE) == [
        (1, "relu", "ReLU", 1, 90, 0.6, 0, 0),
        (2, "conv", "Conv2D", 1, 60, 0.4, 0, 0),
    ]
    later = TABLES | {"allocation": [row for row in TABLES["allocation"] if row["bytes"] != 90]}
    assert ask("memory/alive_at_peak", later, top=2, give=GIVE) == [
        (1, "conv", "Conv2D", 2, 80, 0.8, 9, 9),
        (2, "relu", "ReLU", 1, 15, 0.15, 9, 1),
    ]
    assert ask("memory/alive_at_peak", later, top=3, give="name bytes")[2] == (None, 5)


def test_bytes_alive_are_those_of_the_peak(ask):
    (peak,) = ask("memory/peak", TABLES)
    alive = ask("memory/alive_at_peak", TABLES, top=99)
    assert sum(row["bytes"] for row in alive) == peak["peak_bytes"]
    assert sum(row["blocks"] for row in alive) == peak["peak_blocks"]
