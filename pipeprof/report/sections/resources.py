"""Memory and CPU."""

from __future__ import annotations

from typing import Any

from pipeprof.report.sections.block import Block, Section, rows_at
from pipeprof.units import format_bytes, format_ratio


def resources_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Peak memory and mean CPU of the machine and the processes."""
    section = Section("Memory and CPU")
    rows = []
    for row in rows_at(content["memory"], focus):
        what = {"host": "whole machine, in use"}.get(row["device"], f"{row['name'] or row['device']}")
        if row["name"] == "pool":
            what = f"{row['device']} memory pool, in use"
        peak = row["peak_rss_bytes"] if row["device"] == "process" else row["peak_allocated_bytes"]
        if peak is None:
            continue
        rows.append([what, format_bytes(peak), str(row["samples"])])
    if rows:
        section.blocks.append(Block(("memory", "peak", "samples"), rows, frozenset((1, 2))))
    cpu = []
    for row in rows_at(content["host"], focus):
        if row["scope"] == "host":
            cpu.append(["whole machine", f"{format_ratio(row['mean_busy_share'])} busy", str(row["samples"])])
        elif row["total_cores"] is not None:
            cpu.append(
                [
                    f"{row['name'] or 'process'} ({row['processes']})",
                    f"{row['total_cores']:.2f} cores",
                    str(row["samples"]),
                ]
            )
    if cpu:
        section.blocks.append(Block(("CPU", "mean", "samples"), cpu, frozenset((1, 2))))
    return section
