"""fleet/fix: what the predicted speed-ups would have saved."""

import pytest
from fleet_rows import rank

FIX = {
    "cause": "input_bound",
    "advice": "workers",
    "parameter": "num_parallel_workers",
    "op_type": "MapOp",
    "op_name": "decode",
    "call": "t.py:9",
}


def test_hours_are_saved_by_the_predicted_speed_up(ask):
    rows = [
        rank("a", **FIX, gain=2.0, gain_low=1.0, gain_high=4.0), rank("a", rank=1, **FIX, gain=2.0, gain_low=1.0,
        gain_high=4.0), rank("b", **FIX, gain=1.25, gain_low=0.9, gain_high=1.25),
        rank("c", **FIX | {"call": "u.py:1"}, gain=4.0), rank("d", **FIX, gain=None), rank("e", **FIX, gain=0.5),
    ]  # fmt: skip
    one, other = ask("fleet/fix", {"fleet_rank": rows}, top=5)
    assert (one["code"], one["runs"], one["rank_hours"]) == ("t.py:9", 2, 3.0)
    assert one["saved_hours"] == pytest.approx(2 * 0.5 + 1 * 0.2)
    assert one["least_hours"] == pytest.approx(0.0)
    assert one["most_hours"] == pytest.approx(2 * 0.75 + 0.2)
    assert one["median_gain"] == pytest.approx(1.625)
    assert (other["code"], other["least_hours"], other["saved_hours"]) == ("u.py:1", None, 0.75)
    assert one["all_hours"] == other["all_hours"] == pytest.approx(1.95)


def test_the_sum_counts_what_is_not_listed(ask):
    rows = [rank(name, **FIX | {"call": name}, gain=2.0) for name in "abc"]
    assert [row["all_hours"] for row in ask("fleet/fix", {"fleet_rank": rows}, top=1)] == [1.5]


def test_advice_on_a_pipeline_that_does_not_lead_saves_nothing(ask):
    assert ask("fleet/fix", {"fleet_rank": [rank("a", **FIX | {"cause": "host_gap"}, gain=2.0)]}, top=5) == []
