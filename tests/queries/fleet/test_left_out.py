"""fleet/left_out: what is not complete is named."""

from fleet_rows import rank


def test_damaged_running_failed_and_empty_runs_are_listed(ask):
    rows = [
        rank("whole"), {"run": "b", "state": "damaged", "problem": "why"}, {"run": "a", "state": "running"},
        rank("f", state="failed", problem="it fell"), rank("empty", training_ns=None, steps=None),
    ]  # fmt: skip
    assert ask("fleet/left_out", {"fleet_rank": rows}, give="state run problem measured") == [
        ("complete", "empty", None, False), ("damaged", "b", "why", False), ("failed", "f", "it fell", True),
        ("running", "a", None, False),
    ]  # fmt: skip
