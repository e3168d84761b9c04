"""Length and phases of the training steps, the slowest ones, and the stages of the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.sections.block import PHASES, Block, Section, rows_at, times
from pipeprof.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

STAGES = {
    "start": "Python starts",
    "import": "import of MindSpore",
    "build": "script, until its first step",
    "compile": "graph compilation",
    "warmup": "warm-up steps",
    "steady": "steady steps",
    "first_step": "launch until the first step is done",
}


def steps_section(content: dict[str, Any], focus: tuple[int, int]) -> Section:
    """The rank in focus; FP and BP of every rank that has them."""
    steps = content["steps"]
    section = Section("Steps")
    rows = [
        [row["kind"], _counted(row), *times(row), format_ns(row["stddev_ns"])]
        for row in rows_at(steps["summary"], focus)
    ]
    if rows:
        section.blocks.append(
            Block(("kind", "steps", "mean", "median", "p90", "max", "std dev"), rows, frozenset(range(1, 7)))
        )
    phases = [
        [PHASES[row["phase"]], str(row["steps"]), *times(row), format_ratio(row["share"])]
        for row in sorted(rows_at(steps["phases"], focus), key=lambda row: list(PHASES).index(row["phase"]))
    ]
    if phases:
        section.blocks.append(
            Block(
                ("phase of a training step", "steps", "mean", "median", "p90", "max", "share"),
                phases,
                frozenset(range(1, 7)),
            )
        )
        section.notes.append(
            "data wait ends where the forward pass begins; forward+backward and tail are from op windows, "
            "whose steps are a little slower"
        )
    _slowest(section, rows_at(steps["slowest"], focus)[:5])
    for name, point in steps["points"].items():
        section.notes.append(
            f"{name}: FP {point['fp']} ({point['fp_choice']}), BP {point['bp']} ({point['bp_choice']})"
        )
    stages = {row["stage"]: row for row in rows_at(steps["stages"], focus)}
    listed = [
        [text, str(stages[name]["count"]), format_ns(stages[name]["dur_ns"])]
        for name, text in STAGES.items()
        if name in stages
    ]
    if listed:
        section.blocks.append(Block(("stage", "count", "time"), listed, frozenset((1, 2))))
    return section


def _slowest(section: Section, rows: Sequence[dict[str, Any]]) -> None:
    listed = [
        [
            str(row["kind_step"]),
            "-" if row["epoch"] is None else str(row["epoch"]),
            format_ns(row["dur_ns"]),
            format_ratio(row["fetch_wait_share"]),
            "yes" if row["in_window"] else "",
        ]
        for row in rows
    ]
    if listed:
        section.blocks.append(
            Block(("slowest step", "epoch", "time", "waiting for data", "in op window"), listed, frozenset(range(4)))
        )


def _counted(row: dict[str, Any]) -> str:
    """Steps whose time counts, and of how many when op windows took some out."""
    timed, steps = row["timed_steps"], row["steps"]
    return str(steps) if timed == steps else f"{timed} of {steps}"
