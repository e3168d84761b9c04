def test_from_the_first_start_to_the_last_end_of_the_steps(ask):
    step = [{"step": n, "rank": rank, "start_ns": n * 10, "end_ns": n * 10 + 10} for rank in (0, 1) for n in range(4)]
    found = ask(
        "timeline/step_window", {"step": step[:7]}, first=2, last=9, give="rank first_step last_step start_ns end_ns"
    )
    assert found == [(0, 2, 3, 20, 40), (1, 2, 2, 20, 30)]
