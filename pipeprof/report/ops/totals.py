"""Groups from operators whose executions the source gives only in sum, of ranks that have no executions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.query.engine import Engine

    Row = dict[str, Any]

ALL = 1 << 40
HOST = "host"


def with_totals(engine: Engine, group: str, rows: list[Row]) -> list[Row]:
    """`rows`, and groups by `type` or `name` from op/totals for devices whose executions were not recorded.

    Each device is apart: nothing can be added up over AI Core, AI CPU and host, which run side by side. Calls on the
    host count only for ranks without any execution.
    """
    if group not in ("type", "name"):
        return rows
    executed = {(row["rep"], row["rank"]) for row in rows}
    totals = engine.rows("op/totals", group_by=group, top=ALL)
    return rows + [
        {
            **row,
            "phase": None,
            "side": row["device"] or None,
            "of_device": f"{row['device']} {row['layer']}".strip(),
            "count": row["count"] or 0,
        }
        for row in totals
        if not row["recorded"] and (row["device"] != HOST or (row["rep"], row["rank"]) not in executed)
    ]


def place_of(row: Row) -> tuple[int, int, str]:
    """What the shares of a row are of: its repetition and rank, and of totals their device."""
    return row["rep"], row["rank"], row.get("of_device", "")


def has_totals(engine: Engine) -> bool:
    """Whether the run has totals of operators whose executions were not recorded."""
    return any(not row["recorded"] for row in engine.rows("op/totals", group_by="type", top=1))
