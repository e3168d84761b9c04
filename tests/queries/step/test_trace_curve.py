from table_rows import step

PARTS = ("data_wait", "forward", "backward", "gradients", "optimizer", "after",
         "forward_backward", "tail", "compute", "whole")  # fmt: skip


KNOWN = [
    step(0, 0, 100, kind="warmup"),
    step(1, 100, 150, fp_ns=110),
    step(2, 150, 190, fp_ns=155, bp_ns=180, fetch_wait_ns=4),
    step(3, 190, 220, fp_ns=195, input_ns=6, forward_ns=5, backward_ns=10, gradients_ns=2, optimizer_ns=4, after_ns=3),
    step(4, 220, 260, fp_ns=210),  # before the step: not to be believed
]


def parts(row):
    return {name: row[f"{name}_ns"] for name in PARTS if row[f"{name}_ns"]}


def asked(ask, points):
    return ask("step/trace_curve", {"step": [*KNOWN, step(9, 0, 7, kind="eval")]}, points=points, rep=0, rank=0)


def test_a_step_has_the_finest_parts_that_are_known_and_they_add_up(ask):
    rows = asked(ask, 9)
    assert [parts(row) for row in rows] == [
        {"whole": 100},
        {"data_wait": 10, "compute": 40},
        {"data_wait": 5, "forward_backward": 25, "tail": 10},
        {"data_wait": 6, "forward": 5, "backward": 10, "gradients": 2, "optimizer": 4, "after": 3},
        {"whole": 40},
    ]
    assert [(row["first_step"], row["warmup_steps"], row["max_fetch_ns"]) for row in rows] == [
        (0, 1, None), (1, 0, None), (2, 0, 4), (3, 0, None), (4, 0, None),
    ]  # fmt: skip


def test_fewer_points_keep_the_longest_step_and_its_place_and_still_add_up(ask):
    rows = asked(ask, 2)
    assert [(row["steps"], row["start_ns"], row["end_ns"], row["dur_ns"]) for row in rows] == [
        (3, 0, 190, 190 / 3), (2, 190, 260, 35.0),
    ]  # fmt: skip
    assert [(row["max_ns"], row["max_step"], row["max_start_ns"]) for row in rows] == [(100, 0, 0), (40, 4, 220)]
    for row in rows:
        assert abs(sum(parts(row).values()) - row["dur_ns"]) < 1e-6


def test_training_steps_are_numbered_without_the_evaluation_between_them(ask):
    steps = [step(0, 0, 10), step(1, 10, 20, kind="eval"), step(2, 20, 30), step(3, 30, 90)]
    (row,) = ask("step/trace_curve", {"step": steps}, points=1, rep=0, rank=0)
    assert [row[name] for name in ("first_step", "last_step", "max_step")] == [0, 3, 3]
    assert [row[name] for name in ("first_kind_step", "last_kind_step", "max_kind_step")] == [0, 2, 2]
