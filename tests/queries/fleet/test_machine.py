"""fleet/machine: hosts beside the others that ran the same."""

import pytest
from fleet_rows import rank


def rows_of(times, **facts):
    """One run for each host of a job."""
    return [rank(f"{facts}{host}", host=host, median_ns=ns, **facts) for host, ns in times.items()]


def test_a_host_is_slow_by_the_middle_of_the_hosts_of_each_job(ask):
    rows = [
        row
        for job in "xyz"
        for row in rows_of({"a": 100.0, "b": 102.0, "slow": 125.0, "c": 98.0, "d": 100.0}, workload=job)
    ]
    found = {row["host"]: row for row in ask("fleet/machine", {"fleet_rank": rows}, slow=1.05)}
    assert {host: (row["slow_jobs"], row["jobs"]) for host, row in found.items()} == {
        "a": (0, 3), "b": (0, 3), "c": (0, 3), "d": (0, 3), "slow": (3, 3),
    }  # fmt: skip
    assert found["slow"]["median_ratio"] == pytest.approx(1.25)
    assert found["slow"]["lost_hours"] == pytest.approx(3 * 0.2)
    assert found["a"]["lost_hours"] == 0


def test_jobs_of_fewer_than_three_hosts_and_of_other_conditions_are_not_compared(ask):
    rows = rows_of({"a": 100.0, "b": 200.0}, workload="x")
    rows += rows_of({"a": 100.0, "b": 200.0}, workload="y", conditions="one")
    rows += [*rows_of({"c": 100.0}, workload="y", conditions="two"), rank("u", host=None)]
    assert ask("fleet/machine", {"fleet_rank": rows}, slow=1.05) == []
