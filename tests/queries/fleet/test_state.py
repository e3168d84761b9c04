"""fleet/state: every run is counted once, whatever it is."""

from fleet_rows import HOUR, rank


def test_runs_and_rank_hours_by_state(ask):
    rows = [
        rank("a", wait_ns=HOUR // 2), rank("a", rank=1, wait_ns=HOUR // 4), rank("b", workload="other"),
        {"run": "c", "state": "damaged"}, {"run": "d", "state": "running", "workload": "train"},
    ]  # fmt: skip
    found = ask("fleet/state", {"fleet_rank": rows}, give="state runs workloads measured rank_hours wait_hours")
    assert found == [
        ("complete", 2, 2, 2, 3.0, 0.75), ("damaged", 1, 0, 0, None, None), ("running", 1, 1, 0, None, None),
    ]  # fmt: skip
