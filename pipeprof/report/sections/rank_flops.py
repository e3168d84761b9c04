"""How much and how fast ranks and pipeline stages compute, where their profiler counted FLOPs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.ops.cells import amount
from pipeprof.report.sections.block import Section, filled
from pipeprof.units import format_count, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_ROWS = 8
STAGE = "pipeline stage {stage} computes {flops} in a step, {excess} more than the mean of the stages"
RANK = "rank {rank} computes {speed}, {shortfall} less than the mean of the ranks"


def add_flops(section: Section, flops: Mapping[str, Any] | None) -> None:
    """Stages with their means, else ranks, slowest first; and what MindInsight's rules name."""
    if flops is None:
        return
    rows, first = (flops["stages"], "stage") if flops["stages"] else (flops["ranks"], "rank")
    shown = sorted(rows, key=lambda row: row["flops_per_s"])[:MOST_ROWS] if first == "rank" else rows[:MOST_ROWS]
    listed = [
        [
            str(row[first]), str(row["ranks"]) if first == "stage" else "-",
            amount(row["flops"], "FLOP"), amount(row["flops_per_s"], "FLOPS"),
            "-" if row.get("peak_percent") is None else f"{row['peak_percent']:.3g} %",
        ]
        for row in shown
    ]  # fmt: skip
    names = {"stage": "pipeline stage", "rank": f"rank ({len(shown)} of {len(rows)})"}
    head = (names[first], "ranks", "operations of a step", "speed", "of the device's peak")
    section.blocks.append(filled(head, listed, words=()))
    section.notes.append(f"MindInsight's rules on FLOPs would name: {_named(flops)}")


def _named(flops: Mapping[str, Any]) -> str:
    if not flops["judged"]:
        there = format_count(len(flops["ranks"]), "rank")
        of = f" of {flops['expected']}" if flops["expected"] else ", and how many there were is not known"
        return f"nothing, since they need the files of all ranks ({there}{of})"
    names = []
    if stage := flops["stage"]:
        names.append(
            STAGE.format(
                stage=stage["stage"], flops=amount(stage["flops"], "FLOP"), excess=format_ratio(stage["excess"])
            )
        )
    if rank := flops["rank"]:
        speed, shortfall = amount(rank["flops_per_s"], "FLOPS"), format_ratio(rank["shortfall"])
        names.append(RANK.format(rank=rank["rank"], speed=speed, shortfall=shortfall))
    return "; ".join(names) or "nothing: no stage computes a fifth more, and no rank a fifth slower, than the mean"
