def test_each_stream_with_its_share_of_the_steps(ask):
    tables = {
        "step": [{"step": n, "kind": "train", "start_ns": 100 * n, "end_ns": 100 * (n + 1)} for n in (0, 1)],
        "collective": [
            {"step": 0, "track": "stream 1", "start_ns": 0, "dur_ns": 30},
            {"step": 0, "track": "stream 1", "start_ns": 40, "dur_ns": 10},
            {"step": 1, "track": "stream 1", "start_ns": 100, "dur_ns": 20},
            {"step": 1, "track": None, "start_ns": 100, "dur_ns": 50},
            {"step": None, "track": "stream 1", "start_ns": 900, "dur_ns": 50},
        ],
    }
    give = "track events steps events_per_step total_ns mean_ns max_ns step_share"
    assert ask("comm/by_stream", tables, give=give) == [
        ("", 1, 1, 1.0, 50, 50.0, 50, 0.5),
        ("stream 1", 3, 2, 1.5, 60, 20.0, 30, 0.3),
    ]
