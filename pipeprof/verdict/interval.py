"""Whether a training waits for its data, where no batch was recorded but the steps' forward start is: pure.

On a device the wait for data lies between the end of a step and the first forward operator (FP), together with work on
the host. So a short interval clears the data, and a long one blames it only when a queue runs empty, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict.evidence import evidence, of_queues, on
from pipeprof.verdict.rules import ENOUGH_BATCHES, HIGH_WAIT, MODERATE_WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.rows import JudgedSink, PhaseSummary


def judge_interval(
    verdict: dict[str, Any], phases: Sequence[PhaseSummary], sink: Sequence[JudgedSink] = ()
) -> dict[str, Any]:
    """The verdict on the data, completed when it is not_measured; else as it is.

    The first step of a profile begins at its own forward pass, so that warm-up says nothing.

    The worst rank counts, and its queues.
    """
    waits = [
        (row.share, row) for row in phases if row.phase == "data_wait" and row.share is not None and row.kind == "train"
    ]
    if verdict["verdict"] != "not_measured" or not waits:
        return verdict
    share, worst = max(waits, key=lambda one: one[0])
    measured_on = on("steps_of_rank", steps=worst.steps, rank=worst.rank)
    waiting = evidence("before_forward", share, "share", "step/phase_summary", measured_on)
    judged = {**verdict, "evidence": [*verdict["evidence"], waiting]}
    key = (worst.rep, worst.rank)
    late = next((row for row in sink if row.stage and (row.rep, row.rank) == key), None)
    if share < MODERATE_WAIT:
        return judged | {
            "verdict": "consumer_bound",
            "data_wait_share": share,
            "confidence": "medium",
            "doubts": [{"code": "no_batches"}],
        }
    if late is None:
        return judged
    batches = late.batches or 0
    few = [{"code": "few_queue_batches", "batches": batches}] if batches < ENOUGH_BATCHES else []
    return judged | {
        "verdict": "input_bound", "severity": "high" if share >= HIGH_WAIT else "moderate", "stage": late.stage,
        "data_wait_share": share, "confidence": "low" if few else "medium", "doubts": [{"code": "no_batches"}, *few],
        "evidence": [*judged["evidence"], *of_queues(late)],
    }  # fmt: skip
