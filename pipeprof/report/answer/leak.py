"""A training that would run out of memory: said before why it is slow."""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer import command
from pipeprof.units import format_bytes
from pipeprof.verdict.memory import GROWING, is_own

LEAST_BYTES = 64 << 20  # over the steps seen
LEAST_SHARE = 0.25  # of the memory at the first steps


def leaking(content: dict[str, Any]) -> str:
    """How fast memory grows, as a sentence; empty where it does not, or by so little that it may never matter."""
    rows = [row for row in content.get("memory_growth") or () if row["verdict"] == GROWING and is_own(row)]
    large = [row for row in rows if row["grown_low_bytes"] >= max(LEAST_BYTES, LEAST_SHARE * row["first_bytes"])]
    if not large:
        return ""
    most = max(large, key=lambda row: row["grown_bytes"])
    shown = command.own(content["run"], "memory")
    pace, grown = format_bytes(most["slope_bytes"]), format_bytes(most["grown_bytes"])
    trend = f"an estimated trend; `{shown}` shows its range"
    return f"Memory grows by {pace} per step, {grown} in {most['span_steps']:,.0f} steps: probably a leak ({trend})."
