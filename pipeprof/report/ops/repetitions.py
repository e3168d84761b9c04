"""Groups of executions of several repetitions: added up, or those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    Row = dict[str, Any]

SUMS = (
    "count", "total_ns", "self_ns", "device_self_ns", "device_total_ns", "self_memory_bytes", "memory_bytes",
    "self_device_memory_bytes", "device_memory_bytes", "computation", "computation_count",
)  # fmt: skip
SHARES = ("mean_ns", "device_mean_ns", "share", "total_share", "device_share", "cumulative_ns", "cumulative_share")
NOT_KEYS = {"rep", "position", "max_ns", "steps", "op_id", "flops", "bytes", "phase", "site", *SUMS, *SHARES}


def of_repetition(rows: list[Row], rep: int | None) -> tuple[list[Row], list[str]]:
    """Rows of one repetition, of all added up where `rep` is None, and a note that says which; ranks stay apart.

    Means and shares of added rows are left to who completes them. Raises UsageError for a repetition without rows.
    """
    reps = sorted({row["rep"] for row in rows})
    if rep is not None:
        if rep not in reps:
            there = ", ".join(map(str, reps)) or "none"
            raise UsageError(f"no operator of repetition {rep} was recorded", f"repetitions with operators: {there}")
        return [row for row in rows if row["rep"] == rep], []
    if len(reps) < 2:
        return rows, []
    return _added(rows), [f"of {len(reps)} repetitions together; --rep N shows one"]


def _added(rows: Sequence[Row]) -> list[Row]:
    together: dict[Hashable, list[Row]] = {}
    for row in rows:
        key = tuple((name, value) for name, value in row.items() if name not in NOT_KEYS)
        together.setdefault(key, []).append(row)
    return [summed(own) for own in together.values()]


def summed(rows: Sequence[Row]) -> Row:
    """One row of several: sums, the longest execution, and unknown where it differs; means and shares are open."""
    first = dict(rows[0])
    for name in SUMS:
        known = [row[name] for row in rows if row.get(name) is not None]
        if name in first:
            first[name] = sum(known) if known else None
    for name in SHARES:
        if name in first:
            first[name] = None
    if "max_ns" in first:
        first["max_ns"] = max((row["max_ns"] for row in rows if row["max_ns"] is not None), default=None)
    if "steps" in first:
        first["steps"] = sum(row["steps"] or 0 for row in rows)
    if "phase" in first and len({row["phase"] for row in rows}) > 1:
        first["phase"] = "mixed"
    return first | {"rep": min(row["rep"] for row in rows)}
