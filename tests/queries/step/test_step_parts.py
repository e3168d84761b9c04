from table_rows import step

GIVE = "position phase from_ns until_ns part_ns share mean_ns steps"


def test_a_step_of_a_graph_is_wait_launch_passes_and_tail(ask):
    tables = {
        "step": [
            step(0, 0, 100, input_ns=20, fp_ns=30, bp_ns=90),
            step(1, 100, 300, input_ns=60, fp_ns=170, bp_ns=270),
        ]
    }
    assert ask("step/parts", tables, step=1, give=GIVE) == [
        (1, "data_wait", 0, 60, 60, 0.3, 40.0, 2),
        (2, "launch", 60, 70, 10, 0.05, 10.0, 2),
        (3, "forward_backward", 70, 170, 100, 0.5, 80.0, 2),
        (4, "tail", 170, 200, 30, 0.15, 20.0, 2),
    ]


def test_a_step_trace_of_a_device_has_no_wait_of_its_own(ask):
    tables = {"step": [step(0, 0, 100, fp_ns=20, bp_ns=90)]}
    assert ask("step/parts", tables, step=0, give="phase from_ns until_ns") == [
        ("before_forward", 0, 20), ("forward_backward", 20, 90), ("tail", 90, 100),
    ]  # fmt: skip


def test_passes_that_are_told_apart(ask):
    passes = {"forward_ns": 20, "backward_ns": 30, "gradients_ns": 0, "optimizer_ns": 25, "after_ns": 15}
    found = ask("step/parts", {"step": [step(0, 0, 100, input_ns=10, **passes)]}, step=0, give="phase until_ns")
    assert found == [
        ("data_wait", 10), ("forward", 30), ("backward", 60), ("gradients", 60), ("optimizer", 85), ("after", 100),
    ]  # fmt: skip


def test_what_is_not_known_is_not_divided(ask):
    rows = [step(0, 0, 100, input_ns=10), step(1, 100, 200, fp_ns=130), step(2, 200, 300), step(3, 300, 400, fp_ns=7)]
    found = [ask("step/parts", {"step": rows}, step=number, give="phase part_ns") for number in range(4)]
    assert found == [
        [("data_wait", 10), ("compute", 90)],
        [("before_forward", 30), ("compute", 70)],
        [("whole", 100)],
        [("whole", 100)],  # its forward pass would begin before the step
    ]


def test_the_mean_is_of_steps_that_were_recorded_alike(ask):
    rows = [
        step(0, 0, 900, kind="warmup"),
        step(1, 900, 1000),
        step(2, 1000, 1300),
        step(3, 1300, 2000, in_window=True),
    ]
    assert ask("step/parts", {"step": rows}, step=2, give="mean_ns steps") == [(200.0, 2)]
    assert ask("step/parts", {"step": rows}, step=3, give="mean_ns steps in_window") == [(700.0, 1, True)]


def test_no_such_step_and_evaluation(ask):
    rows = [step(0, 0, 100), step(1, 100, 200, kind="eval")]
    assert ask("step/parts", {"step": rows}, step=1, give="phase") == []


def test_every_rank_has_its_own(ask):
    rows = [step(0, 0, 100), step(0, 0, 150, rank=1)]
    assert ask("step/parts", {"step": rows}, step=0, give="rank part_ns") == [(0, 100), (1, 150)]


def test_a_step_without_operators_has_a_backward_end_that_is_told_otherwise(ask):
    rows = [step(0, 0, 100, input_ns=20, fp_ns=20, fp_source="fetch", bp_ns=70, bp_source="update", bp_error_ns=3)]
    assert ask("step/parts", {"step": rows}, step=0, give="phase from_ns until_ns bp_source bp_error_ns") == [
        ("data_wait", 0, 20, "update", 3), ("forward_backward", 20, 70, "update", 3), ("tail", 70, 100, "update", 3),
    ]  # fmt: skip


def test_where_passes_are_told_apart_the_backward_end_divides_nothing(ask):
    passes = {"forward_ns": 20, "backward_ns": 30, "gradients_ns": 0, "optimizer_ns": 25, "after_ns": 15}
    rows = [step(0, 0, 100, input_ns=10, fp_ns=10, bp_ns=60, bp_source="op", bp_error_ns=0, **passes)]
    assert set(ask("step/parts", {"step": rows}, step=0, give="bp_source bp_error_ns")) == {(None, None)}
