"""Ranks and repetitions beside each other."""

from __future__ import annotations

from typing import Any

from pipeprof.report.sections.block import Block, Section, filled, timed_steps, times
from pipeprof.report.words.names import INTERVALS
from pipeprof.units import format_ns, format_ratio

MOST_ROWS = 16


def ranks_section(content: dict[str, Any]) -> Section:
    """Step times of every repetition and rank, and how far the ranks are apart."""
    section = Section("Ranks and repetitions")
    rows = [row for row in content["steps"]["summary"] if row["kind"] == "train"]
    if len(rows) > 1:
        waits = {(row["rep"], row["rank"]): row["data_wait_share"] for row in content["steps"]["data_wait"]}
        listed = [
            [
                str(row["rep"]),
                str(row["rank"]),
                timed_steps(row),
                *times(row),
                format_ratio(waits.get((row["rep"], row["rank"]))),
            ]
            for row in _slowest(rows)
        ]
        head = ("rep", "rank", "steps", "mean", "median", "p90", "max", "waiting for data, all steps")
        section.blocks.append(filled(head, listed, words=()))
        if len(rows) > len(listed):
            section.notes.append(f"the {len(listed)} slowest of {len(rows)}; all of them: --format json")
    spread = [
        [
            str(row["rep"]), INTERVALS.get(row["phase"], row["phase"]), str(row["slowest_rank"]),
            format_ns(row["slowest_median_ns"]), str(row["fastest_rank"]), format_ns(row["fastest_median_ns"]),
            "-" if row["spread_ratio"] is None else f"{row['spread_ratio']:.2f}x",
        ]
        for row in content["steps"]["rank_spread"]
    ]  # fmt: skip
    if spread:
        section.blocks.append(
            Block(
                ("rep", "phase", "slowest rank", "median", "fastest rank", "median", "slowest / fastest"),
                spread,
                frozenset((0, 2, 3, 4, 5, 6)),
            )
        )
    return section


def _slowest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ranks with the longest median step, in their order."""
    slowest = sorted(rows, key=lambda row: (-row["median_ns"], row["rep"], row["rank"]))[:MOST_ROWS]
    return sorted(slowest, key=lambda row: (row["rep"], row["rank"]))
