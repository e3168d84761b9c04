"""The verdict where no batch and no wait was recorded, as in some profilers' files: from the queues alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeprof.verdict import evidence as shown
from pipeprof.verdict.capacity import CONSUMER
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.pipeline import facts_of
from pipeprof.verdict.suggest import suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeprof.query.rows import JudgedStage

RULE = "queues_alone"
EMPTY = 0.2  # a queue that is less full in the mean leaves its reader waiting: MindInsight's bound
FILLED = 0.5  # one that is fuller seldom does


def judge_fills(verdict: dict[str, Any], loads: Sequence[JudgedStage], cores: float) -> dict[str, Any]:
    """The given verdict, or where it could not be measured the one that the fill of the queues allows.

    Input-bound where the queue in front of the training is empty, by the operator whose input queue is fuller than its
    output queue by most; not input-bound where it is full; else it stays not measured. Confidence is low: how long the
    training waits is not known. Of several ranks the one with the emptiest queue.
    """
    loops = [
        (row.input_ratio, row.rep, row.rank, row)
        for row in loads
        if row.op_id == CONSUMER and row.input_ratio is not None and row.samples
    ]
    if verdict["verdict"] != "not_measured" or not loops:
        return verdict
    fill, _, _, loop = min(loops, key=lambda one: one[:3])
    rows = [row for row in loads if (row.rep, row.rank) == (loop.rep, loop.rank)]
    samples = loop.samples
    by_fills = verdict | {
        "doubts": [{"code": "fills_alone", "samples": samples}],
        "confidence": "low",
        "rank": loop.rank,
        "pipeline_key": loop.pipeline_key,
        "evidence": [
            *verdict["evidence"],
            shown.evidence("last_queue", fill, "share", shown.LOAD, shown.on("samples", samples=samples)),
        ],
    }
    if fill >= FILLED:
        return by_fills | {"verdict": "consumer_bound"}
    stages = [(row.drop_ratio, row) for row in rows if row.op_id != CONSUMER and row.drop_ratio is not None]
    if fill >= EMPTY or not stages:
        return verdict
    drop, row = max(stages, key=lambda one: one[0])
    by_fills["evidence"] += shown.of_stage(row, "weak")
    return by_fills | {
        "verdict": "input_bound", "op_id": row.op_id, "op_type": row.op_type, "op_name": row.name,
        "kind": row.kind, "rule": "weak", "rule_name": RULE,
        "rule_facts": [{"fact": "drop", "value": drop, "relation": "noted", "bound": None}],
        "candidates": [row.op_id], "place": {"call": row.site, "code": row.code},
        "facts": facts_of(row) | {"margin": None, "runner_up": None},
        "suggestions": [item.as_dict() for item in suggestions(row, row.kind, loop_of(rows, cores))],
    }  # fmt: skip
