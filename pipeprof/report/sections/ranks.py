"""Ranks and repetitions beside each other, and what makes a distributed step slower than its peers'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeprof.report.answer.shape import at_most
from pipeprof.report.sections.block import Block, Section, filled, timed_steps, times
from pipeprof.report.words import causes as words
from pipeprof.report.words.names import INTERVALS
from pipeprof.units import format_count, format_ns, format_ratio

Row = dict[str, Any]

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


_MOST_CAUSES = 8
PARTS = (
    ("by_stage", "stage"),
    ("by_replica", "replica"),
    ("by_rank", "rank"),
    ("by_type", "type"),
    ("by_link", "link"),
)
HEADS = {
    "stage": "pipeline stage", "replica": "replica (data parallel)", "rank": "rank", "type": "kind of operation",
    "link": "communication group",
}  # fmt: skip


def causes_section(content: dict[str, Any]) -> Section:
    """Empty where no whole passes of microbatches were recorded."""
    section = Section("Causes across ranks")
    causes = content["ranks"].get("causes")
    if causes is None:
        return section
    if causes["verdict"] == "not_measured":
        if causes["why"] is not None:
            section.notes.append(f"The step could not be replayed: {words.WHY[causes['why']]}")
        return section
    slow = causes["slowdown"]
    section.strong += [_sentence(item) for item in causes["found"]] or ["No stage, rank, link or input slows the step"]
    section.notes += [_total(slow), *_gains(slow), *(f"Try: {words.ADVICE[item['code']]}" for item in causes["found"])]
    section.blocks += [block for rows, name in PARTS if (block := _part(slow[rows], name)) is not None]
    section.notes.append("S of a part: the slow-down that remains if only this part is as slow as recorded")
    return section


def _sentence(item: Row) -> str:
    doubts = words.doubts(item["doubts"])
    gain = f"without it a step is {at_most(item['times'])}" if item["times"] is not None else ""
    return f"{words.sentence(item)}; {gain} ({item['confidence']} confidence{': ' + doubts if doubts else ''})"


def _total(slow: Row) -> str:
    dropped = (
        f", {format_count(slow['dropped_steps'], 'step')} with other operations left out"
        if slow["dropped_steps"]
        else ""
    )
    return (
        f"slow-down S = {slow['s']:.3f}: a step of {format_ns(slow['step_ns'])} takes {format_ns(slow['taken_ns'])} "
        f"without gaps of the host, and would take {format_ns(slow['ideal_ns'])} with equal operations "
        f"({format_count(slow['steps'], 'step')}{dropped})"
    )


def _gains(slow: Row) -> list[str]:
    """M_W and M_S in words."""
    sentences = []
    if slow["m_w"] is not None and slow["s"] > 1.005:
        removed = f"removes {format_ratio(slow['m_w'])} of that (M_W)"
        sentences.append(f"bringing the slowest 3 % of the ranks to the usual speed {removed}")
    if slow["m_s"] is not None and slow["s"] > 1.005:
        sentences.append(
            f"bringing the last stage to the usual speed removes {format_ratio(slow['m_s'])} of that (M_S)"
        )
    return sentences


def _part(rows: Sequence[Row], name: str) -> Any:
    if len(rows) < 2:
        return None
    listed = [[str(row[name]), f"{row['s']:.3f}"] for row in rows[:_MOST_CAUSES]]
    return filled((HEADS[name], "S"), listed)
