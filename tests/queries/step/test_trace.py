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
