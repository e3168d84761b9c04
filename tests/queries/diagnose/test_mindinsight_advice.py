import pytest

MS = 1_000_000


def steps(*intervals_ms, kind="train"):
    return [
        {"step": number, "kind": kind, "start_ns": 100 * MS * number, "end_ns": 100 * MS * (number + 1)}
        | {"fp_ns": None if interval is None else int(100 * MS * number + interval * MS)}
        for number, interval in enumerate(intervals_ms)
    ]


@pytest.mark.parametrize(
    ("intervals", "row"),
    [
        ((90, 0.5, 0.5), ("step_trace", 2, 0.5, False)),
        ((0, 0.5, 0.7), ("step_trace", 2, 0.6, True)),
        ((0, None, 2), ("step_trace", 1, 2.0, True)),
    ],
)
def test_a_mean_interval_above_half_a_ms_without_the_first_step(ask, intervals, row):
    rows = ask("diagnose/mindinsight_advice", {"step": steps(*intervals)}, give="rule samples value advised")
    assert rows == [pytest.approx(row)]


def test_steps_without_a_forward_start_say_nothing(ask):
    assert ask("diagnose/mindinsight_advice", {"step": steps(None, None, None)}) == []


def test_evaluation_does_not_count(ask):
    assert ask("diagnose/mindinsight_advice", {"step": steps(9, 9, 9, kind="eval")}) == []


def host(*idle):
    return [{"t_ns": number, "scope": "host", "idle_ratio": ratio} for number, ratio in enumerate(idle)]


@pytest.mark.parametrize(
    ("idle", "row"),
    [
        ((0.25, 0.15), ("cpu", 2, 80.0, False)),
        ((0.0, 0.375), ("cpu", 2, 81.0, True)),
        ((0.0, None), ("cpu", 1, 100.0, True)),
    ],
)
def test_a_host_busy_for_more_than_80_percent(ask, idle, row):
    assert ask("diagnose/mindinsight_advice", {"cpu": host(*idle)}, give="rule samples value advised") == [row]


def test_samples_before_the_first_batch_do_not_count(ask):
    tables = {
        "cpu": host(1.0, 1.0, 0.0),
        "pipeline": [{"pipeline_id": 0, "role": "train"}],
        "fetch": [{"pipeline_id": 0, "fetch": 0, "start_ns": 1, "wait_ns": 1, "depth": 0, "side": "iterator"}],
    }
    assert ask("diagnose/mindinsight_advice", tables, give="samples value") == [(1, 100.0)]
