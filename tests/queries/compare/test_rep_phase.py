def step(number, start, fp, bp, end, **more):
    times = {"start_ns": start, "fp_ns": fp, "bp_ns": bp, "end_ns": end}
    return {"step": number, "kind": "train", "kind_step": number, "in_window": False, **times, **more}


def test_the_longest_rank_of_each_phase(ask):
    steps = [step(0, 0, 10, 30, 35), step(1, 35, 55, 65, 70)]
    other = [step(0, 0, 5, 45, 50, rank=1)]
    assert ask("compare/rep_phase", {"step": steps + other}, give="rep phase mean_ns") == [
        (0, "data_wait", 15.0),
        (0, "forward_backward", 40.0),
        (0, "tail", 5.0),
    ]
