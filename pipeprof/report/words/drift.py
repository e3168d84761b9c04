"""That a training gets slower as it runs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

SLOWER = ("step", "drift")
PHASES = {"data_wait": "waiting for data", "work": "what follows the fetch"}
CAUSES = {
    "recompilation": "graphs are compiled again",
    "memory_growth": "the memory of the training process grows",
    "neighbour": "other programs take more CPU",
    "throttling": "the job is throttled by its CPU quota",
}


def sentence(row: Mapping[str, Any]) -> str:
    """What a row of verdict/drift.judge_course says; only for the verdicts in SLOWER."""
    ratio = row["after_ns"] / row["before_ns"]
    times = f"{format_ns(row['before_ns'])} to {format_ns(row['after_ns'])} (x{ratio:.2f})"
    if row["verdict"] == "step":
        begin = f"{format_ns(row['at_ns'])} after the launch"
        text = f"the steps become slower at about step {row['at_step']}, {begin}: median {times}"
    else:
        text = f"the steps become slower and slower as the training runs: from {times}"
    phase = f", in {PHASES[row['phase']]}" if row["phase"] else ""
    causes = " and ".join(CAUSES[code] for code in row["causes"])
    return f"{text}{phase}; " + (f"at the same time {causes}" if causes else "cause not recorded")
