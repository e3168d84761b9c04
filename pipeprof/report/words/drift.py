"""That a training gets slower as it runs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.report.words import time_origin
from pipeprof.report.words.phases import PHASES
from pipeprof.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

SLOWER = ("step", "drift")
CAUSES = {
    "recompilation": "graphs are compiled again",
    "memory_growth": "the memory of the training process grows",
    "neighbour": "other programs take more CPU",
    "throttling": "the job is throttled by its CPU quota",
}


def change(row: Mapping[str, Any]) -> str:
    """`10.0 ms to 20.0 ms, mostly in waiting for data`; only for the verdicts in SLOWER."""
    ends = (" (first third)", " (last third)") if row["verdict"] == "drift" else ("", "")
    times = f"{format_ns(row['before_ns'])}{ends[0]} to {format_ns(row['after_ns'])}{ends[1]}"
    return f"{times}, mostly in {PHASES[row['phase']]}" if row["phase"] else times


def sentence(content: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What a row of verdict/drift.judge_course says of a report's run; only for the verdicts in SLOWER."""
    if row["verdict"] == "step":
        when = time_origin.at(content, row["at_ns"])
        text = f"the steps become slower at about step {row['at_step']}{when}: the median step rises from {change(row)}"
    else:
        text = f"the steps become slower and slower as the training runs: the median step rises from {change(row)}"
    causes = " and ".join(CAUSES[code] for code in row["causes"])
    return f"{text}; " + (f"at the same time {causes}" if causes else "cause not recorded")
