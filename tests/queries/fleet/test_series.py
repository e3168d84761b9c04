"""fleet/series: step times in time, without runs that say none."""

from fleet_rows import rank


def test_oldest_first_within_conditions_by_the_slowest_rank(ask):
    rows = [
        rank("late", started_at="2026-11-09T00:00:00Z", median_ns=5.0), rank("late", rank=1,
        started_at="2026-11-09T00:00:00Z", median_ns=7.0), rank("early", median_ns=3.0),
        rank("warm", rep=1, kind="warmup", median_ns=9.0), rank("other", conditions="b", median_ns=1.0),
        rank("failed", state="failed"), {"run": "x", "state": "damaged"},
    ]  # fmt: skip
    found = ask("fleet/series", {"fleet_rank": rows}, give="conditions run step_ns ranks")
    assert found == [("b", "other", 1.0, 1), ("c", "early", 3.0, 1), ("c", "warm", 9.0, 1), ("c", "late", 7.0, 2)]


def test_one_slow_repetition_is_no_slow_run(ask):
    rows = [
        rank("run", rep=rep, rank=number, median_ns=step)
        for rep, steps in enumerate([(4.0, 5.0), (9.0, 2.0), (6.0, 1.0)])
        for number, step in enumerate(steps)
    ]
    assert ask("fleet/series", {"fleet_rank": rows}, give="step_ns") == [(6.0,)]
