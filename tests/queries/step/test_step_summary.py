from math import sqrt

from table_rows import step


def test_times_by_kind(ask):
    steps = [
        step(0, 0, 100, "warmup"),
        step(1, 100, 110),
        step(2, 110, 130),
        step(3, 130, 160),
        step(4, 160, 165, "eval"),
    ]
    assert ask(
        "step/summary", {"step": steps}, give="kind steps timed_steps mean_ns median_ns p90_ns min_ns max_ns"
    ) == [
        ("eval", 1, 1, 5.0, 5.0, 5.0, 5, 5),
        ("train", 3, 3, 20.0, 20.0, 28.0, 10, 30),
        ("warmup", 1, 1, 100.0, 100.0, 100.0, 100, 100),
    ]


def test_steps_in_windows_are_counted_but_not_timed(ask):
    steps = [step(0, 0, 10), step(1, 10, 20), step(2, 20, 1020, in_window=True)]
    assert ask("step/summary", {"step": steps}, give="steps window_steps timed_steps from_window mean_ns max_ns") == [
        (3, 1, 2, False, 10.0, 10)
    ]


def test_all_count_when_every_step_is_in_a_window(ask):
    steps = [step(0, 0, 10, in_window=True), step(1, 10, 40, in_window=True)]
    assert ask("step/summary", {"step": steps}, give="steps window_steps timed_steps from_window mean_ns") == [
        (2, 2, 2, True, 20.0)
    ]


def test_an_unknown_window_counts_as_outside(ask):
    steps = [step(0, 0, 10, in_window=None), step(1, 10, 1000, in_window=True)]
    assert ask("step/summary", {"step": steps}, give="timed_steps mean_ns") == [(1, 10.0)]


def test_deviation_is_the_sample_one_and_null_for_one_step(ask):
    steps = [step(0, 0, 10), step(1, 10, 40), step(2, 40, 41, "eval")]
    assert ask("step/summary", {"step": steps}, give="kind stddev_ns") == [("eval", None), ("train", sqrt(200))]


def test_repetitions_and_ranks_stay_apart(ask):
    steps = [step(0, 0, 10 * (1 + rep + 2 * rank), rep=rep, rank=rank) for rep in (1, 0) for rank in (1, 0)]
    assert ask("step/summary", {"step": steps}, give="rep rank mean_ns") == [
        (0, 0, 10.0),
        (0, 1, 30.0),
        (1, 0, 20.0),
        (1, 1, 40.0),
    ]
