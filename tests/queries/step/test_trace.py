"""The mean step in parts that add up to it."""

import pytest

PARTS = ("forward", "backward", "gradients", "optimizer", "after")


def step(number, start, end, *, in_window=False, parts=(), **more):
    known = {f"{name}_ns": time for name, time in zip(PARTS, parts, strict=False)}
    times = {"start_ns": start, "end_ns": end, "input_ns": 10}
    return {"step": number, "kind_step": number, "kind": "train", "in_window": in_window, **times, **known, **more}


GIVE = "phase measured steps parted_steps mean_ns"


def test_what_windows_saw_divides_all_steps_and_adds_up(ask):
    steps = [step(0, 0, 110), step(1, 110, 222), step(2, 222, 432, in_window=True, parts=(100, 50, 0, 0, 50))]
    rows = ask("step/trace", {"step": steps}, give=GIVE)
    assert rows == [
        ("data_wait", True, 2, 1, 10),
        ("forward", False, 2, 1, 51),
        ("backward", False, 2, 1, 25),
        ("gradients", False, 2, 1, 0),
        ("optimizer", False, 2, 1, 0),
        ("after", False, 2, 1, 25),
    ]
    assert sum(row[-1] for row in rows) == 111


def test_inflation_is_of_what_follows_the_batch(ask):
    steps = [step(0, 0, 110), step(1, 110, 320, in_window=True, parts=(100, 50, 0, 0, 50))]
    assert {row[0] for row in ask("step/trace", {"step": steps}, give="inflation")} == {2.0}


def test_a_compiled_step_keeps_fp_and_bp(ask):
    points = {"fp_ns": 130, "bp_ns": 180}
    steps = [step(0, 0, 110), step(1, 110, 220, in_window=True, **points)]
    assert ask("step/trace", {"step": steps}, give=GIVE) == [
        ("data_wait", True, 1, 1, 10),
        ("launch", False, 1, 1, 10),
        ("forward_backward", False, 1, 1, 50),
        ("tail", False, 1, 1, 40),
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [("data_wait", True, 1, 0, 10), ("compute", True, 1, 0, 90)]),
        ({"input_ns": None}, [("whole", True, 1, 0, 100)]),
    ],
)
def test_without_windows_only_what_is_measured_in_every_step(ask, more, expected):
    assert ask("step/trace", {"step": [step(0, 0, 100, **more)]}, give=GIVE) == expected


def test_the_first_steps_of_a_training_do_not_decide_how_all_are_divided(ask):
    """Three windows of one step each; the first, cold one has a tail of 1,000. Of all steps 60 and 40 are spent."""
    seen = [(2000, 2010, 2070, 3070), (4000, 4010, 4070, 4110), (5000, 5010, 5070, 5110)]
    windows = [
        step(10 + number, start, end, in_window=True, input_ns=0, fp_ns=fp, bp_ns=bp)
        for number, (start, fp, bp, end) in enumerate(seen)
    ]
    plain = [step(number, 110 * number, 110 * (number + 1), input_ns=0) for number in range(7)]
    assert ask("step/trace", {"step": [*plain, *windows]}, give="phase mean_ns") == [
        ("data_wait", 0), ("launch", 10), ("forward_backward", 60), ("tail", 40),
    ]  # fmt: skip


def test_a_step_that_fetches_nothing_does_not_wait(ask):
    """Two updates with each batch: the second one is a step of its own."""
    steps = [step(0, 0, 110), step(1, 110, 200, input_ns=None)]
    assert ask("step/trace", {"step": steps}, give=GIVE) == [("data_wait", True, 2, 0, 5), ("compute", True, 2, 0, 95)]
    steps.append(step(2, 200, 410, in_window=True, parts=(100, 50, 0, 0, 50)))
    rows = ask("step/trace", {"step": steps}, give="phase mean_ns")
    assert rows[:3] == [("data_wait", 5), ("forward", 48), ("backward", 23)]
