def test_stages_of_a_name_are_added_up(ask):
    tables = {
        "stage": [
            {"stage": "compile", "start_ns": 50, "dur_ns": 10},
            {"stage": "compile", "start_ns": 20, "dur_ns": 5},
            {"stage": "import", "start_ns": 1, "dur_ns": 9},
        ]
    }
    rows = ask("step/stages", tables, give="stage count start_ns dur_ns")
    assert rows == [("compile", 2, 20, 15), ("import", 1, 1, 9)]


def test_the_first_step_counts_from_the_launch(ask):
    steps = [
        {"step": 0, "kind_step": 0, "kind": "eval", "start_ns": 1, "end_ns": 3},
        {"step": 1, "kind_step": 0, "kind": "warmup", "start_ns": 5, "end_ns": 30},
        {"step": 2, "kind_step": 1, "kind": "train", "start_ns": 30, "end_ns": 40},
    ]
    assert ask("step/stages", {"step": steps}, give="stage count dur_ns") == [("first_step", 1, 30)]
