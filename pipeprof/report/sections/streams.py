"""Where operators ran: devices, what the AI CPU took, and streams with their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.sections.block import filled, short_name
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.report.sections.block import Section

    Row = dict[str, Any]

AI_CPU = "AI_CPU"
MOST_TYPES, MOST_STREAMS = 10, 8


def add_devices(section: Section, rows: Sequence[Row]) -> None:
    """Several devices in sum, and the types of the AI CPU: operators there hold up a step that the AI Core computes."""
    devices = list(dict.fromkeys(row["device"] for row in rows))
    if len(devices) > 1:
        listed = []
        for device in devices:
            here = [row for row in rows if row["device"] == device]
            times = [row["self_ns"] for row in here]
            total = None if None in times else sum(times)
            listed.append([
                device or "not named", str(len(here)), str(sum(row["count"] for row in here)), format_ns(total),
            ])  # fmt: skip
        section.blocks.append(filled(("device", "types", "executions", "own time"), listed))
    there = [row for row in rows if row["device"] == AI_CPU][:MOST_TYPES]
    if there:
        listed = [
            [
                row["type"] or "-", str(row["count"]),
                *(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max", "wait")),
                format_ratio(row["share"]),
            ]
            for row in there
        ]  # fmt: skip
        head = (f"type on {AI_CPU}", "executions", "total", "mean", "max", "waiting to start", "of own time")
        section.blocks.append(filled(head, listed))


def add_streams(section: Section, rows: Sequence[Row]) -> None:
    """The streams with the most time; one alone says nothing that the other tables do not."""
    if len(rows) < 2:
        return
    largest = sorted(rows, key=lambda row: (-(row["total_ns"] or 0), row["track"]))[:MOST_STREAMS]
    listed = [
        [
            row["track"] or "not named", str(row["tasks"]), str(row["operators"]),
            *(format_ns(row[f"{name}_ns"]) for name in ("total", "mean", "max")), format_ratio(row["step_share"]),
            f"{short_name(row['longest'])} ({format_ns(row['longest_ns'])})",
        ]
        for row in largest
    ]  # fmt: skip
    head = (f"stream ({len(listed)} of {len(rows)})", "tasks", "operators", "own time", "mean", "max", "of its steps",
            "most time in")  # fmt: skip
    section.blocks.append(filled(head, listed, words=(0, 7)))
