"""The whole run of the rank in focus, from the launch to the end, in parts that add up."""

from __future__ import annotations

from typing import Any

from pipeprof.report.answer.shape import capital
from pipeprof.report.sections.block import Block, Section, rows_at
from pipeprof.report.words import loop, run_account
from pipeprof.units import format_ns, format_ratio


def whole_run_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """Large parts first in words, then all of them in order of time."""
    section, worded = Section("Whole run"), loop.wording(content["run"])
    account = content["run_account"]
    for item in account["large"]:
        share, advice = format_ratio(item["share"]), run_account.advice(item)
        text = f"{capital(run_account.name(item))}: {share} of the run ({run_account.numbers(item)})"
        section.notes.append(f"{text}. {advice.rstrip('.')}" if advice else text)
    rows = sorted(rows_at(account["parts"], focus), key=lambda row: (row["start_ns"], row["part"]))
    listed = [
        [
            worded(run_account.name(row)),
            str(row["count"]),
            format_ns(row["dur_ns"]),
            format_ratio(row["share"]),
        ]
        for row in rows
    ]
    if listed:
        total = sum(row["dur_ns"] for row in rows)
        listed.append(["the whole run", "-", format_ns(total), format_ratio(1.0 if total else None)])
        section.blocks.append(Block(("part of the run", "count", "time", "of the run"), listed, frozenset((1, 2, 3))))
    return section
