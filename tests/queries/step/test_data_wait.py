import table_rows


def step(number, start, end, wait, kind="train", **more):
    return table_rows.step(number, start, end, kind, fetch_wait_ns=wait, **more)


COLUMNS = "kind steps fetch_steps step_ns fetch_wait_ns data_wait_share median_fetch_wait_ns"


def test_share_is_of_the_summed_times(ask):
    steps = [step(0, 0, 10, 1), step(1, 10, 40, 9), step(2, 40, 50, 2)]
    assert ask("step/data_wait", {"step": steps}, give=COLUMNS) == [("train", 3, 3, 50, 12, 0.24, 2.0)]


def test_steps_in_windows_and_warmup_are_left_out(ask):
    steps = [step(0, 0, 900, 800, "warmup"), step(1, 900, 910, 1), step(2, 910, 1910, 999, in_window=True)]
    assert ask("step/data_wait", {"step": steps}, give=COLUMNS) == [("train", 1, 1, 10, 1, 0.1, 1.0)]


def test_windows_count_when_there_is_nothing_else(ask):
    steps = [step(0, 0, 10, 5, in_window=True)]
    assert ask("step/data_wait", {"step": steps}, give="from_window data_wait_share") == [(True, 0.5)]


def test_a_step_that_fetched_nothing_is_time_without_waiting(ask):
    steps = [step(0, 0, 10, 5), step(1, 10, 20, None)]
    assert ask("step/data_wait", {"step": steps}, give=COLUMNS) == [("train", 2, 1, 20, 5, 0.25, 5.0)]


def test_share_is_unknown_not_zero_when_no_fetch_was_seen(ask):
    assert ask("step/data_wait", {"step": [step(0, 0, 10, None)]}, give="fetch_wait_ns data_wait_share") == [
        (None, None)
    ]


def test_the_start_of_a_loaders_later_iterators_is_waited_for_between_the_steps(ask):
    times = {"role": "train", "created_ns": 0, "ready_ns": 30, "closing_ns": 20}
    pipelines = [table_rows.KEY | times | {"pipeline_id": number, "iteration": number} for number in (0, 1)]
    pipelines += [table_rows.KEY | times | {"pipeline_id": 2, "iteration": None}]
    tables = {"step": [step(0, 0, 10, 5), step(1, 60, 100, 5)], "pipeline": pipelines}
    assert ask("step/data_wait", tables, give="step_ns fetch_wait_ns data_wait_share") == [(50, 10, 0.4)]
