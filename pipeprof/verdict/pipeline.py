"""The verdict on a run: is the training input-bound, which pipeline operator holds it up, of what kind, and what to do.

Pure: rows of the queries in, a plain dict out, in the shape that the JSON report documents. What limits in one
repetition is decided by the rules (`rules.py`, `decision.py`); here the repetitions are put together.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import evidence as shown
from pipeprof.verdict.decision import with_kinds
from pipeprof.verdict.grade import graded
from pipeprof.verdict.loop import CONSUMER, loop_of
from pipeprof.verdict.rules import HIGH_WAIT, LEAST_STEPS, MODERATE_WAIT
from pipeprof.verdict.suggest import Suggestion, for_consumer, suggestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.verdict.capacity import Loop
    from pipeprof.verdict.decision import Decision

    Row = Mapping[str, Any]

FACTS = ("workers", "work_ns", "rate", "utilisation", "cpu_share", "cores", "gil_share", "longest_ns", "idle_share")


def diagnose(
    waits: Sequence[Row],
    decided: Sequence[Decision],
    loads: Sequence[Row],
    *,
    sink: Sequence[Row] = (),
    cores: float = 0.0,
) -> dict[str, Any]:
    """Verdict over all repetitions and ranks.

    `waits`: rows of step/data_wait; `decided`: one decision for each repetition; `loads`: rows of diagnose/load;
    `sink`: of diagnose/sink with their `stage`; `cores`: of the machine, 0 when not known. Repetitions vote; the one in
    the middle of the winners is shown.
    """
    steady = [row for row in waits if row["kind"] == "train"]
    if not decided:
        found = _without_pipeline(steady, _worst_per_rep(steady))
        late = [row for row in sink if row["stage"]] if found["verdict"] == "input_bound" else []
        found["stage"] = _side(found, late)
        return found
    chosen, agree = _vote(decided)
    place = (chosen.rep, chosen.rank)
    rows = with_kinds([row for row in loads if (row["rep"], row["rank"]) == place])
    found = _empty(chosen.verdict, chosen.facts.wait_share)
    found["doubts"] = _doubts(chosen, agree, len(decided))
    found["confidence"] = graded(found["doubts"])
    found["rank"] = chosen.rank
    found["repetitions"] = {"agree": agree, "of": len(decided)}
    found["severity"] = _severity(chosen)
    whole = next((row["data_wait_share"] for row in steady if (row["rep"], row["rank"]) == place), None)
    found["data_wait_share_all_steps"] = whole
    found["evidence"] += shown.of_waiting(rows[0], whole)
    found["stage"] = _side(found, [row for row in sink if (row["rep"], row["rank"]) == place])
    if chosen.verdict == "consumer_bound":
        _clear(found, chosen, rows, loop_of(rows, cores))
    elif found["stage"] != "data_transmission":
        _name(found, chosen, rows, loop_of(rows, cores))
    return found


def _vote(decided: Sequence[Decision]) -> tuple[Decision, int]:
    """The repetition to show, and how many say the same."""
    said, agree = max(Counter(map(_says, decided)).items(), key=lambda item: item[1])
    same = [one for one in decided if _says(one) == said]
    same.sort(key=lambda one: (one.facts.wait_share, one.rep, one.rank))
    return same[(len(same) - 1) // 2], agree


def _says(one: Decision) -> tuple[str, int]:
    return one.verdict, one.first.op_id


def _doubts(one: Decision, agree: int, of: int) -> list[dict[str, Any]]:
    """What is missing for high confidence, as codes with the numbers that a sentence about them needs.

    Without a doubt confidence is high, with one medium, with more low; repetitions that disagree are one.
    """
    doubts = list(one.doubts)
    if one.facts.batches < LEAST_STEPS:
        doubts.append({"code": "few_steps", "steps": one.facts.batches})
    if agree < of:
        doubts.append({"code": "repetitions_differ", "agree": agree, "of": of})
    return doubts


def _severity(one: Decision) -> str | None:
    if one.verdict != "input_bound":
        return None
    return "high" if one.facts.wait_share >= HIGH_WAIT else "moderate"


def _clear(found: dict[str, Any], one: Decision, rows: Sequence[Row], loop: Loop) -> None:
    """The loop that limits: what its data pipeline takes from it, and how much faster the data could come."""
    found["rule_name"], found["rule_facts"] = one.rule.name, one.rested_on
    found["headroom"] = _headroom(rows)
    found["candidates"] = [stage.op_id for stage in one.stages[1:2] if one.holds_lock]
    found["suggestions"] += [item.as_dict() for item in for_consumer(rows, loop)]


def _name(found: dict[str, Any], one: Decision, rows: Sequence[Row], loop: Loop) -> None:
    """The operator that limits; of a balanced pipeline, the busier of its operators even if the loop is busier."""
    operators = [(stage, kind) for stage, kind in zip(one.stages, one.kinds, strict=True) if stage.op_id != CONSUMER]
    if not operators:
        return
    best, kind = operators[0]
    row = next(row for row in rows if row["op_id"] == best.op_id)
    found |= {
        "op_id": best.op_id,
        "op_type": best.op_type,
        "op_name": best.name,
        "kind": kind,
        "rule": one.rule.code,
        "rule_name": one.rule.name,
        "rule_facts": one.rested_on,
        "candidates": [operator.op_id for operator, _ in operators],
        "place": {"call": row["site"], "code": row["code"]},
        "facts": {name: row[name] for name in FACTS} | {"margin": one.facts.margin if best is one.first else None},
    }
    found["evidence"] += shown.of_stage(row, one.rule.code)
    found["suggestions"] += [item.as_dict() for item in suggestions(row, kind, loop)]


def _side(found: dict[str, Any], sink: Sequence[Row]) -> str | None:
    """In sink mode: whether the pipeline or the way to the device is late. None without a device queue."""
    if not sink:
        return None
    row = sink[0]
    found["evidence"] += shown.of_queues(row)
    stage: str | None = row["stage"]
    if stage == "data_transmission" and found["verdict"] == "input_bound":
        found["suggestions"].append(Suggestion("fewer_bytes").as_dict())
    return stage


def _headroom(rows: Sequence[Row]) -> dict[str, Any] | None:
    """How many times faster than now the slowest operator could go."""
    rated = [row for row in rows if row["op_id"] != CONSUMER and row["rate"] is not None and row["loop_rate"]]
    slowest = min(rated, key=lambda row: row["rate"], default=None)
    if slowest is None:
        return None
    return {"op_id": slowest["op_id"], "ratio": slowest["rate"] / slowest["loop_rate"]}


def _without_pipeline(waits: Sequence[Row], whole: Mapping[int, float]) -> dict[str, Any]:
    """Steps but no batches of a known pipeline: the share of waiting is all there is to say."""
    if not whole:
        return _empty("not_measured", None)
    share = median(whole.values())
    found = _empty("consumer_bound" if share < MODERATE_WAIT else "input_bound", share)
    steps = sum(row["steps"] for row in waits)
    if share >= MODERATE_WAIT:
        found["severity"] = "high" if share >= HIGH_WAIT else "moderate"
    found["doubts"].append({"code": "no_pipeline"})
    if steps < LEAST_STEPS:
        found["doubts"].append({"code": "few_steps", "steps": steps})
    steps_seen = shown.on("steps", steps=steps)
    found["evidence"].append(shown.evidence("data_wait", share, "share", "step/data_wait", steps_seen))
    return found


def _worst_per_rep(waits: Sequence[Row]) -> dict[int, float]:
    worst: dict[int, float] = {}
    for row in waits:
        if row["data_wait_share"] is not None:
            worst[row["rep"]] = max(worst.get(row["rep"], 0.0), row["data_wait_share"])
    return worst


def _empty(verdict: str, share: float | None) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "severity": None,
        "rank": None,
        "op_id": None,
        "op_type": None,
        "op_name": None,
        "kind": None,
        "rule": None,
        "rule_name": None,
        "rule_facts": [],
        "stage": None,
        "confidence": "low",
        "doubts": [],
        "candidates": [],
        "place": None,
        "facts": None,
        "data_wait_share": share,
        "data_wait_share_all_steps": None,
        "headroom": None,
        "repetitions": None,
        "evidence": [],
        "suggestions": [],
        "network": None,
        "compatible": {"mindinsight": {}, "mindspore": {}, "autotune": {}},
    }
