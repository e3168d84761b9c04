from table_rows import phased_step


def test_split_phases_come_from_windows_and_the_others_from_outside(ask):
    steps = [
        phased_step(0, 0, 2, None, 10),
        phased_step(1, 10, 14, None, 20),
        phased_step(2, 20, 60, 100, 120, in_window=True),
    ]
    assert ask(
        "step/phase_summary", {"step": steps}, give="phase steps from_window mean_ns median_ns max_ns share"
    ) == [
        ("compute", 2, False, 7.0, 7.0, 8, 0.7),
        ("data_wait", 2, False, 3.0, 3.0, 4, 0.3),
        ("forward_backward", 1, True, 40.0, 40.0, 40, 0.4),
        ("tail", 1, True, 20.0, 20.0, 20, 0.2),
    ]


def test_data_wait_comes_from_windows_when_every_step_is_in_one(ask):
    steps = [phased_step(0, 0, 3, 8, 10, in_window=True)]
    assert ask("step/phase_summary", {"step": steps}, give="phase steps from_window share") == [
        ("data_wait", 1, True, 0.3),
        ("forward_backward", 1, True, 0.5),
        ("tail", 1, True, 0.2),
    ]


def test_warmup_stands_in_when_there_is_no_train_step(ask):
    only_warmup = [phased_step(0, 0, 1, None, 4, kind="warmup", rank=1)]
    both = [phased_step(0, 0, 1, None, 400, kind="warmup"), phased_step(1, 400, 401, None, 404)]
    rows = ask("step/phase_summary", {"step": only_warmup + both}, give="rank phase kind mean_ns")
    assert rows == [
        (0, "compute", "train", 3.0),
        (0, "data_wait", "train", 1.0),
        (1, "compute", "warmup", 3.0),
        (1, "data_wait", "warmup", 1.0),
    ]


def test_steps_without_a_forward_start_are_one_phase(ask):
    steps = [phased_step(0, 0, None, None, 10), phased_step(1, 10, None, None, 30)]
    assert ask("step/phase_summary", {"step": steps}, give="phase steps mean_ns p90_ns share") == [
        ("whole", 2, 15.0, 19.0, 1.0)
    ]


def test_evaluation_steps_are_left_out(ask):
    assert ask("step/phase_summary", {"step": [phased_step(0, 0, 1, 2, 3, kind="eval")]}) == []
