"""Rows of fleet_rank, an hour of one rank each."""

HOUR = 3_600_000_000_000


def rank(run, **facts):
    """A rank that trained for an hour."""
    usual = {
        "run": run, "run_id": run, "state": "complete", "started_at": "2026-11-02T00:00:00Z", "week": "2026-11-02",
        "workload": "train", "machine": "m", "conditions": "c", "mindspore": "2.7", "kind": "train", "steps": 10,
        "median_ns": 100.0, "training_ns": HOUR, "wait_ns": 0, "verdict": "consumer_bound",
        "cause": "compute",
    }  # fmt: skip
    return usual | facts
