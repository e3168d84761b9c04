"""The verdict on a run: is the training input-bound, which pipeline operator holds it up, of what kind, and what to do.

Pure: rows of the queries in, a plain dict out, in the shape that the JSON report documents. What limits in one
repetition is decided by the rules (`rules.py`, `decision.py`); here the repetitions are put together.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import evidence as shown
from pipeprof.verdict.capacity import CONSUMER
from pipeprof.verdict.decision import named
from pipeprof.verdict.loop import loop_of
from pipeprof.verdict.rules import APART, HIGH_WAIT, LEAST_STEPS, MODERATE_WAIT, graded
from pipeprof.verdict.storage import storage_of
from pipeprof.verdict.suggest import BOUND, Suggestion, beside_settings, by_cpu, for_consumer, suggestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeprof.query.rows import DataWait, JudgedSink, JudgedStage, StorageUse
    from pipeprof.verdict.capacity import Loop, Trial
    from pipeprof.verdict.decision import Decision
    from pipeprof.verdict.facts import StageFacts
    from pipeprof.verdict.storage import CachePoint


# Doubts that say something of the stage that is named.
OF_A_STAGE = ("not_busy", "close", "queues_elsewhere", "prefilled", "overrun", "indirect", "none_busy")


def diagnose(
    waits: Sequence[DataWait],
    decided: Sequence[Decision],
    loads: Sequence[JudgedStage],
    *,
    sink: Sequence[JudgedSink] = (),
    cores: float = 0.0,
    trials: Sequence[Trial] = (),
    storage: Sequence[StorageUse] = (),
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Verdict over all repetitions and ranks.

    `decided`: one decision for each repetition; `cores`: of the machine, 0 when not known; `trials`: what was measured
    of changes before; `storage`: what caches are judged by; `environment`: the training's variables.

    Repetitions vote; the least disturbed one of the winners is shown, as in the details of a report.
    """
    steady = [row for row in waits if row.kind == "train"]
    if not decided:
        diagnosis = _without_pipeline(steady, _worst_per_rep(steady))
        late = [row for row in sink if row.stage] if diagnosis["verdict"] == "input_bound" else []
        diagnosis["stage"] = _side(diagnosis, late)
        return diagnosis
    chosen, agree = _vote(decided, _step_means(steady))
    key = (chosen.rep, chosen.rank)
    rows = [row for row in loads if (row.rep, row.rank) == key]
    diagnosis = _empty(chosen.verdict, chosen.facts.wait_share)
    wait_share = next((row.data_wait_share for row in steady if (row.rep, row.rank) == key), None)
    diagnosis["doubts"] = _doubts(chosen, agree, len(decided), wait_share)
    diagnosis["confidence"] = graded(diagnosis["doubts"])
    diagnosis["rep"], diagnosis["rank"], diagnosis["pipeline_key"] = chosen.rep, chosen.rank, rows[0].pipeline_key
    diagnosis["repetitions"] = {"agree": agree, "of": len(decided)}
    diagnosis["severity"] = _severity(chosen)
    diagnosis["data_wait_share_all_steps"] = wait_share
    diagnosis["evidence"] += shown.of_waiting(rows[0], wait_share)
    diagnosis["stage"] = _side(diagnosis, [row for row in sink if (row.rep, row.rank) == key])
    if chosen.verdict == "consumer_bound":
        _clear(diagnosis, chosen, rows, loop_of(rows, cores, trials))
    elif diagnosis["stage"] == "data_transmission":
        _leave_out_stages(diagnosis)
    else:
        mine = [use for use in storage if (use.rep, use.rank, use.pipeline_key) == (*key, rows[0].pipeline_key)]
        points = [point for one in storage_of(rows, mine, cores, trials) for point in one["points"]]
        _name(diagnosis, chosen, rows, loop_of(rows, cores, trials), points, environment or {})
    return diagnosis


def _vote(decided: Sequence[Decision], steps: Mapping[int, float]) -> tuple[Decision, int]:
    """The repetition to show, and how many say the same; `steps`: mean step in ns by repetition, where known."""
    said, agree = max(Counter(map(_says, decided)).items(), key=lambda item: item[1])
    same = [one for one in decided if _says(one) == said]
    return min(same, key=lambda one: (steps.get(one.rep, inf), one.rep, one.rank)), agree


def _step_means(steady: Sequence[DataWait]) -> dict[int, float]:
    """Of the slowest rank of each repetition: what disturbs one makes its steps longer."""
    means: dict[int, float] = {}
    for row in steady:
        means[row.rep] = max(means.get(row.rep, 0.0), row.step_ns / row.steps)
    return means


def _says(one: Decision) -> tuple[str, int]:
    return one.verdict, one.first.op_id


def _doubts(one: Decision, agree: int, of: int, overall: float | None) -> list[dict[str, Any]]:
    """What is missing for high confidence, as codes with the numbers that a sentence about them needs.

    Without a doubt confidence is high, with one medium, with more low; repetitions that disagree are one. `overall`:
    the share of waiting in all steps, which may contradict that of the steady state.
    """
    doubts = list(one.doubts)
    if one.facts.batches < LEAST_STEPS:
        doubts.append({"code": "few_steps", "steps": one.facts.batches})
    steady = one.facts.wait_share
    if overall is not None and max(steady, overall) >= max(HIGH_WAIT, APART * min(steady, overall)):
        doubts.append({"code": "shares_differ", "steady": steady, "overall": overall})
    if agree < of:
        doubts.append({"code": "repetitions_differ", "agree": agree, "of": of})
    return doubts


def _severity(one: Decision) -> str | None:
    if one.verdict != "input_bound":
        return None
    return "high" if one.facts.wait_share >= HIGH_WAIT else "moderate"


def _clear(diagnosis: dict[str, Any], one: Decision, rows: Sequence[JudgedStage], loop: Loop) -> None:
    """The loop that limits: what its data pipeline takes from it, and how much faster the data could come."""
    diagnosis["rule_name"], diagnosis["rule_facts"] = one.rule.name, one.rested_on
    diagnosis["headroom"] = _headroom(rows)
    diagnosis["candidates"] = [stage.op_id for stage in one.stages[1:2] if one.holds_lock]
    diagnosis["suggestions"] += [item.as_dict() for item in for_consumer(rows, loop)]


def _name(
    diagnosis: dict[str, Any],
    one: Decision,
    rows: Sequence[JudgedStage],
    loop: Loop,
    points: Sequence[CachePoint],
    environment: Mapping[str, str],
) -> None:
    """The operator that limits; of a balanced pipeline, the busier of its operators even if the loop is busier.

    None where no rule chose one and neither times nor queues of any are known.
    """
    operators = [(stage, kind) for stage, kind in zip(one.stages, one.kinds, strict=True) if stage.op_id != CONSUMER]
    if not operators or (one.first.op_id == CONSUMER and operators[0][0].use is None):
        _leave_out_stages(diagnosis)
        diagnosis["confidence"] = "low"
        return
    best, kind = operators[0]
    row = next(row for row in rows if row.op_id == best.op_id)
    diagnosis |= {
        "op_id": best.op_id,
        "op_type": best.op_type,
        "op_name": best.name,
        "kind": kind,
        "rule": one.rule.code,
        "rule_name": one.rule.name,
        "rule_facts": one.rested_on,
        "candidates": [operator.op_id for operator, _ in operators],
        "place": {"call": row.site, "code": row.code},
        "facts": facts_of(row) | _next(one, best),
    }
    diagnosis["evidence"] += shown.of_stage(row, one.rule.code)
    shared = one.rule.code == "shared_cpu"
    possible = suggestions(row, kind, loop, shared=shared)
    bound = [item for item in possible if item.code == BOUND]
    beside = list(beside_settings(row, kind, loop, points, environment))
    if shared:
        beside = [by_cpu(item) if item.code == "keep_rows" and not item.trial else item for item in beside]
    seen = [item for item in beside if item.facts.get("call_cores")]  # is in the record: before what is only possible
    others = [item for item in beside if item not in seen]
    possible = possible[: len(possible) - len(bound)]
    known = max((at for at, item in enumerate(possible, 1) if item.gain is not None), default=0)
    possible = [*possible[:known], *seen, *possible[known:], *others, *bound]
    few = one.facts.batches < LEAST_STEPS  # which bound nothing
    diagnosis["suggestions"] += [item.as_dict() for item in possible if not (few and item.code == BOUND)]


def _leave_out_stages(diagnosis: dict[str, Any]) -> None:
    """Where no operator is named nothing is doubted that was said of one."""
    diagnosis["doubts"] = [doubt for doubt in diagnosis["doubts"] if doubt["code"] not in OF_A_STAGE]
    diagnosis["confidence"] = graded(diagnosis["doubts"])


def _next(one: Decision, best: StageFacts) -> dict[str, Any]:
    """The busiest of the other stages, and how much less busy it is; of the stage that limits alone."""
    other = one.facts.runner_up if best is one.first else None
    return {"margin": other and one.facts.margin, "runner_up": named(other)}


def _side(diagnosis: dict[str, Any], sink: Sequence[JudgedSink]) -> str | None:
    """In sink mode: whether the pipeline or the way to the device is late. None without a device queue."""
    if not sink:
        return None
    row = sink[0]
    diagnosis["evidence"] += shown.of_queues(row)
    stage = row.stage
    if stage == "data_transmission" and diagnosis["verdict"] == "input_bound":
        diagnosis["suggestions"].append(Suggestion("fewer_bytes").as_dict())
    return stage


def _headroom(rows: Sequence[JudgedStage]) -> dict[str, Any] | None:
    """How many times faster than now the slowest operator could go."""
    rated = [
        (row.rate, row.op_id, row.rate / row.loop_rate)
        for row in rows
        if row.op_id != CONSUMER and row.rate is not None and row.loop_rate
    ]
    slowest = min(rated, key=lambda one: one[0], default=None)
    return None if slowest is None else {"op_id": slowest[1], "ratio": slowest[2]}


def facts_of(row: JudgedStage) -> dict[str, Any]:
    """What was measured of the operator that limits."""
    return {
        "workers": row.workers, "work_ns": row.work_ns, "rate": row.rate, "utilisation": row.utilisation,
        "cpu_share": row.cpu_share, "cores": row.cores, "gil_share": row.gil_share, "lock_share": row.lock_share,
        "longest_ns": row.longest_ns, "max_row_ns": row.max_row_ns, "idle_share": row.idle_share,
        "process_cores": row.process_cores,
    }  # fmt: skip


def _without_pipeline(waits: Sequence[DataWait], shares: Mapping[int, float]) -> dict[str, Any]:
    """Steps but no batches of a known pipeline: the share of waiting is all there is to say."""
    if not shares:
        return _empty("not_measured", None)
    share = median(shares.values())
    diagnosis = _empty("consumer_bound" if share < MODERATE_WAIT else "input_bound", share)
    steps = sum(row.steps for row in waits)
    if share >= MODERATE_WAIT:
        diagnosis["severity"] = "high" if share >= HIGH_WAIT else "moderate"
    diagnosis["doubts"].append({"code": "no_pipeline"})
    if steps < LEAST_STEPS:
        diagnosis["doubts"].append({"code": "few_steps", "steps": steps})
    steps_seen = shown.on("steps", steps=steps)
    diagnosis["evidence"].append(shown.evidence("data_wait", share, "share", "step/data_wait", steps_seen))
    return diagnosis


def _worst_per_rep(waits: Sequence[DataWait]) -> dict[int, float]:
    worst: dict[int, float] = {}
    for row in waits:
        if row.data_wait_share is not None:
            worst[row.rep] = max(worst.get(row.rep, 0.0), row.data_wait_share)
    return worst


def _empty(verdict: str, share: float | None) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "severity": None,
        "rep": None,
        "rank": None,
        "pipeline_key": None,
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
        "fetch_call": None,
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
