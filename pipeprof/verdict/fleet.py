"""What many runs say together: machines that are slow in many jobs, and since when workloads are slower. Pure."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from pipeprof.verdict.gate.changes import Point, change_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Row = dict[str, Any]

SLOW = 1.05  # times the usual step of a job, from which on a host is slow in it
LEAST_JOBS = 3  # in which it is slow: one job may have its own reason
LEAST_SHARE = 0.8  # of the jobs in which it can be compared
LEAST_CHANGE = 1.02  # times the step before: a smaller change of level is not told of many runs
LEAST_RUNS = 3  # of each of two versions that are compared


def slow_machines(rows: Iterable[Row]) -> list[Row]:
    """The hosts that are slow in most of their jobs, those that lose most first. `rows`: of fleet/machine."""
    slow = [row for row in rows if row["slow_jobs"] >= LEAST_JOBS and row["slow_jobs"] >= LEAST_SHARE * row["jobs"]]
    return sorted(slow, key=lambda row: (-row["lost_hours"], row["host"]))


def regressions(rows: Iterable[Row]) -> list[Row]:
    """Where a workload became slower and stayed so, the newest first. `rows`: of fleet/series, in their order.

    The statistics are those of `pipeprof history`. `lost_hours`: of the runs behind the change, up to the next one,
    what they took longer than before. Raises UsageError when ruptures is not installed.
    """
    return sorted(_slower(list(rows)), key=lambda row: (row["at"], row["workload"], row["conditions"]), reverse=True)


def _slower(rows: Sequence[Row]) -> Iterator[Row]:
    for (workload, conditions), group in itertools.groupby(rows, lambda row: (row["workload"], row["conditions"])):
        mine = list(group)
        for change in change_points([Point(row["step_ns"], "", row["started_at"], row["revision"]) for row in mine]):
            if change.ratio < LEAST_CHANGE:
                continue
            first, last = mine[change.index], mine[change.index - 1]
            behind = mine[change.index : change.index + change.points_after]
            hours = sum(row["rank_hours"] or 0.0 for row in behind)
            yield {
                "workload": workload, "conditions": conditions, "machine": first["machine"],
                "mindspore": first["mindspore"], "ranks": first["ranks"], "week": first["week"], "at": change.at,
                "ratio": change.ratio, "before_ns": change.before, "after_ns": change.after,
                "runs_before": change.points_before, "runs_after": change.points_after, "p_value": change.p_value,
                "revision": change.revision, "last_good": last["revision"], "run": first["run"],
                "lost_hours": hours * (1 - 1 / change.ratio),
            }  # fmt: skip


def slower_versions(rows: Iterable[Row]) -> list[Row]:
    """The versions under which a workload is slower than under the one before, the largest first.

    `rows`: of fleet/version. Two medians are set beside each other, and nothing says by how much they vary.
    """
    slower = [
        row for row in rows if (row["ratio"] or 0.0) >= SLOW and min(row["runs"], row["before_runs"]) >= LEAST_RUNS
    ]
    return sorted(slower, key=lambda row: (-row["ratio"], row["workload"], row["machine"], row["turn"]))
