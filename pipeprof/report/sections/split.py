"""Steps as another profiler divided them: computing, communication, free time, bubbles, of every rank."""

from __future__ import annotations

from typing import Any

from pipeprof.report.sections.block import Section, filled, portion
from pipeprof.units import format_ns

MOST_RANKS = 16


def split_section(content: dict[str, Any]) -> Section:
    """Means per step; the ranks with the longest steps when there are many."""
    section = Section("Steps, as their profiler divides them")
    rows = content["steps"]["split"]
    longest = sorted(rows, key=lambda row: (-(row["step_ns"] or 0), row["rep"], row["rank"]))[:MOST_RANKS]
    several = len({row["rep"] for row in rows}) > 1
    longest = sorted(longest, key=lambda row: (row["rep"], row["rank"]))
    if not longest:
        return section
    names = [[str(row["rep"]) if several else "-", str(row["rank"])] for row in longest]
    parts = [[str(row["steps"]), *(portion(row, name) for name in ("computing", "exposed", "free"))] for row in longest]
    head = ("rep", "rank", "steps", "computing", "exposed communication", "free")
    section.blocks.append(filled(head, [name + part for name, part in zip(names, parts, strict=True)], words=()))
    pipelined = any(row["bubble_ns"] or row["receive_ns"] for row in rows)
    more = [
        [format_ns(row["overlapped_ns"]), format_ns(row["receive_ns"]) if pipelined else "-",
         format_ns(row["stage_ns"]) if pipelined else "-", portion(row, "bubble") if pipelined else "-",
         format_ns(row["preparing_ns"])]
        for row in longest
    ]  # fmt: skip
    if any(cell != "-" for cells in more for cell in cells):
        further = ("rep", "rank", "overlapped", "receiving", "stage", "bubble", "preparing")
        section.blocks.append(filled(further, [name + part for name, part in zip(names, more, strict=True)], words=()))
    section.notes.append(
        "means per step, and shares of computing, exposed communication and free time together; exposed: no computing "
        "beside it; overlapped: computing beside it; free: neither; preparing: host time before the first device task"
        + ("; stage: the step without waiting for other pipeline stages, bubble: that waiting" if pipelined else "")
    )
    if len(rows) > len(longest):
        section.notes.append(f"the {len(longest)} longest of {len(rows)}; all of them: --format json")
    return section
