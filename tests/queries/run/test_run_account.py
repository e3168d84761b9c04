"""The whole run in parts, from the parts that were recorded."""


def test_parts_have_their_share_of_the_rank_and_null_is_empty(ask):
    rows = [
        {"part": "training", "count": 9, "start_ns": 40, "dur_ns": 60},
        {"part": "callback", "detail": "Watcher", "count": 2, "start_ns": 50, "dur_ns": 15},
        {"part": "recompile", "detail": "Net", "cause": "short_batch", "count": 1, "start_ns": 90, "dur_ns": 25},
        {"part": "training", "count": 1, "start_ns": 0, "dur_ns": 7, "rank": 1},
    ]
    assert ask("run/account", {"run_part": rows}, give="rank part detail cause count start_ns dur_ns share") == [
        (0, "callback", "Watcher", "", 2, 50, 15, 0.15),
        (0, "recompile", "Net", "short_batch", 1, 90, 25, 0.25),
        (0, "training", "", "", 9, 40, 60, 0.6),
        (1, "training", "", "", 1, 0, 7, 1.0),
    ]


def test_a_part_without_a_name_is_not_recorded_and_one_without_a_length_is_none(ask):
    rows = [{"dur_ns": 7, "start_ns": 1}, {"part": "training", "count": 3}]
    assert ask("run/account", {"run_part": rows}, give="part count dur_ns") == [("not_recorded", 0, 7)]
