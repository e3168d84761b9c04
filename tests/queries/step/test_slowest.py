from table_rows import step


def test_slowest_first_and_the_earlier_of_equals(ask):
    steps = [step(0, 0, 20), step(1, 20, 50), step(2, 50, 80), step(3, 80, 90)]
    assert ask("step/slowest", {"step": steps}, top=3, give="position step dur_ns") == [
        (1, 1, 30),
        (2, 2, 30),
        (3, 0, 20),
    ]


def test_says_how_much_was_waiting_and_whether_it_was_in_a_window(ask):
    steps = [step(0, 0, 20, fetch_wait_ns=5, in_window=True), step(1, 20, 30)]
    rows = ask("step/slowest", {"step": steps}, top=9, give="step in_window fetch_wait_ns fetch_wait_share")
    assert rows == [(0, True, 5, 0.25), (1, False, None, None)]


def test_each_rank_has_its_own(ask):
    steps = [step(0, 0, 20), step(1, 20, 30), step(0, 0, 7, rank=1), step(1, 7, 8, rank=1)]
    assert ask("step/slowest", {"step": steps}, top=1, give="rank step dur_ns") == [(0, 0, 20), (1, 0, 7)]


def test_warmup_and_evaluation_are_no_slow_steps(ask):
    steps = [step(0, 0, 900, "warmup"), step(1, 900, 910), step(2, 910, 1900, "eval")]
    assert ask("step/slowest", {"step": steps}, top=5, give="step kind") == [(1, "train")]
