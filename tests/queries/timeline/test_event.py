def test_what_touches_the_stretch_the_longest_first(ask):
    tables = {
        "fetch": [
            {"pipeline_id": 0, "fetch": n, "start_ns": at, "wait_ns": 5, "side": "iterator"} for n, at in enumerate((0, 12, 30))
        ],
        "op_info": [
            {"op_id": 0, "name": "net/conv", "phase": "forward"},
            {"op_id": 1, "name": "ProfilerStep*", "category": "user_annotation"},
        ],
        "op": [
            {"op_id": 0, "start_ns": 15, "dur_ns": 10, "track": "CPU"}, {"op_id": 1, "start_ns": 10, "dur_ns": 20, "track": "CPU"},
            {"op_id": 0, "start_ns": 15, "dur_ns": 10, "track": "CPU", "rank": 1},
        ],
        "collective": [{"name": "sum", "kind": "all_reduce", "track": "stream 1", "start_ns": 19, "dur_ns": 3}],
        "span": [
            {"track": "main", "category": "callback", "name": "log", "start_ns": 5, "dur_ns": 7},
            {"track": "main", "category": "window", "name": "w", "start_ns": 0, "dur_ns": 50},
        ],
    }  # fmt: skip
    stretch = {"rep": 0, "rank": 0, "first_ns": 10, "last_ns": 20}
    found = ask("timeline/event", tables, give="place kind track name phase start_ns dur_ns", top=9, **stretch)
    assert found == [
        (1, "op", "CPU", "net/conv", "forward", 15, 10),
        (2, "span", "callback", "log", None, 5, 7),
        (3, "fetch", "iterator", None, None, 12, 5),
        (4, "collective", "stream 1", "sum", "communication", 19, 3),
    ]
    assert ask("timeline/event", tables, give="place kind", top=1, **stretch) == [(1, "op")]
