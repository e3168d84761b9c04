def step(rank, number, start, fp, end, **more):
    return {"rank": rank, "step": number, "kind": "train", "start_ns": start, "fp_ns": fp, "end_ns": end, **more}


def test_names_slowest_and_fastest_rank_of_each_phase(ask):
    steps = [step(0, 0, 0, 1, 10), step(1, 0, 0, 4, 10), step(2, 0, 0, 2, 10)]
    columns = "phase ranks slowest_rank slowest_median_ns fastest_rank fastest_median_ns spread_ratio"
    assert ask("step/rank_spread", {"step": steps}, give=columns) == [
        ("compute", 3, 0, 9.0, 1, 6.0, 1.5),
        ("data_wait", 3, 1, 4.0, 0, 1.0, 4.0),
        ("step", 3, 0, 10.0, 0, 10.0, 1.0),
    ]


def test_one_rank_has_no_spread(ask):
    assert ask("step/rank_spread", {"step": [step(0, 0, 0, 1, 10), step(0, 1, 10, 11, 20)]}) == []


def test_spread_over_a_phase_of_no_time_is_not_known(ask):
    steps = [step(0, 0, 0, 0, 10), step(1, 0, 0, 2, 10)]
    assert ask("step/rank_spread", {"step": steps}, give="phase spread_ratio")[1] == ("data_wait", None)


def test_medians_leave_window_steps_out(ask):
    steps = [step(0, 0, 0, 1, 10), step(0, 1, 10, 500, 900, in_window=True), step(1, 0, 0, 1, 20)]
    rows = ask("step/rank_spread", {"step": steps}, give="phase slowest_rank slowest_median_ns fastest_median_ns")
    assert rows[-1] == ("step", 1, 20.0, 10.0)
