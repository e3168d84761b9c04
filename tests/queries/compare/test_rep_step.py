from table_rows import step


def test_each_repetition_shows_its_slowest_rank(ask):
    steps = [step(0, 0, 100, "warmup"), step(1, 100, 110, fetch_wait_ns=4), step(2, 110, 130, fetch_wait_ns=8)]
    slow = [step(0, 0, 150, "warmup", rank=1), step(1, 150, 190, fetch_wait_ns=1, rank=1)]
    later = [step(0, 0, 90, "warmup", rep=1), step(1, 90, 95, rep=1)]
    found = ask("compare/rep_step", {"step": steps + slow + later})
    assert [tuple(row.values()) for row in found] == [
        (0, 1, 1, 40.0, 40.0, 1.0, 150),
        (1, 0, 1, 5.0, 5.0, None, 90),
    ]


def test_the_wait_is_of_the_steps_that_fetched_and_the_first_step_of_the_last_rank(ask):
    steps = [step(0, 0, 10, fetch_wait_ns=4), step(1, 10, 20), step(2, 20, 30, fetch_wait_ns=8), step(0, 0, 9, rank=1)]
    assert ask("compare/rep_step", {"step": steps}, give="data_wait_ns first_step_ns") == [(6.0, 10)]


def test_steps_in_windows_do_not_count(ask):
    steps = [step(0, 0, 10), step(1, 10, 20), step(2, 20, 1020, in_window=True)]
    assert ask("compare/rep_step", {"step": steps}, give="steps median_ns p90_ns") == [(2, 10.0, 10.0)]


def test_evaluation_is_no_training(ask):
    assert ask("compare/rep_step", {"step": [step(0, 0, 10, "eval")]}) == []
