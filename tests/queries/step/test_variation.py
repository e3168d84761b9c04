import pytest


def tables(durations):
    clock, found = 0, []
    for number, dur in enumerate(durations):
        found.append({"step": number, "kind": "train", "start_ns": clock, "fp_ns": clock + 1, "end_ns": clock + dur})
        clock += dur
    return {"step": found}


GIVE = "phase steps median_ns spread_ns spread_ratio long_steps long_ns drift_ns"


def test_spread_long_steps_and_drift(ask):
    rows = ask("step/variation", tables([100, 100, 100, 200, 100, 100, 100, 100]), give=GIVE)
    assert [row for row in rows if row[0] == "step"] == [("step", 8, 100.0, 0.0, 0.0, 1, 100.0, 0.0)]
    assert [row[0] for row in rows] == ["compute", "data_wait", "step"]


def test_the_spread_is_that_of_the_middle_half(ask):
    rows = ask("step/variation", tables([10, 20, 30, 40, 50]), give="phase spread_ns drift_ns")
    assert rows[2] == ("step", pytest.approx(20 / 1.349), 25.0)


def test_one_step_does_not_drift(ask):
    assert ask("step/variation", tables([10]), give="phase spread_ns drift_ns")[2] == ("step", 0.0, None)
