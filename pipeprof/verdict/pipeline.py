"""The verdict on a run: is the training input-bound, which pipeline operator holds it up, of what kind, and what to do.

Pure: rows of the queries in, a plain dict out, in the shape that the JSON report documents. The decision itself is
made in SQL (diagnose/bottleneck), per repetition and rank; here they are put together.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeprof.verdict import evidence as shown
from pipeprof.verdict.loop import CONSUMER, loop_of
from pipeprof.verdict.suggest import Suggestion, for_consumer, suggestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]
    Place = tuple[int, int]

# Bands of the share of the step time spent waiting for data, as TensorFlow's input-pipeline analyzer draws them.
MODERATE, HIGH = 0.05, 0.20
PREFILLED = 1.2  # times what a stage can deliver: above, the training used up batches that were prepared before
LEAST_STEPS = 5  # that were finished and no warm-up; fewer are a doubt
FACTS = ("workers", "work_ns", "rate", "utilisation", "cpu_share", "cores", "gil_share", "longest_ns", "idle_share")
GRADES = ("high", "medium", "low")


def diagnose(
    waits: Sequence[Row],
    ranked: Sequence[Row],
    loads: Sequence[Row],
    *,
    sink: Sequence[Row] = (),
    cores: float = 0.0,
) -> dict[str, Any]:
    """Verdict over all repetitions and ranks.

    `waits`: rows of step/data_wait; `ranked`: diagnose/bottleneck; `loads`: diagnose/load; `sink`: diagnose/sink;
    `cores`: of the machine, 0 when not known. Every rank waits for the slowest one, so a repetition counts with the
    rank that waits most. Repetitions vote; the one in the middle of the winners is shown.
    """
    steady = [row for row in waits if row["kind"] == "train"]
    whole = _worst_per_rep(steady)
    groups = _judged(ranked, waits)
    if not groups:
        found = _without_pipeline(steady, whole)
        late = [row for row in sink if row["stage"]] if found["verdict"] == "input_bound" else []
        found["stage"] = _side(found, late)
        return found
    place, agree, of = _vote(groups)
    first, *others = groups[place]
    rows = [row for row in loads if (row["rep"], row["rank"]) == place]
    found = _empty(first["verdict"], first["wait_share"])
    found["doubts"] = _doubts(groups[place], rows, agree, of)
    found["confidence"] = GRADES[min(len(found["doubts"]), 2)]
    found["rank"] = place[1]
    found["repetitions"] = {"agree": agree, "of": of}
    found["severity"] = _severity(first)
    found["evidence"] += shown.of_waiting(_head(rows, first), whole.get(place[0]))
    found["stage"] = _side(found, [row for row in sink if (row["rep"], row["rank"]) == place])
    loop = loop_of(rows, cores)
    if first["verdict"] != "consumer_bound" and found["stage"] != "data_transmission":
        _name(found, [first, *others], rows)
        row = shown.stage_rows(rows, found["op_id"]) if found["op_id"] is not None else None
        if row is not None:
            found["evidence"] += shown.of_stage(row, first["rule"])
            found["suggestions"] += [item.as_dict() for item in suggestions(row, found["kind"], loop)]
    elif first["verdict"] == "consumer_bound":
        found["headroom"] = _headroom(rows)
        found["candidates"] = [row["op_id"] for row in others[:1] if first["holds_lock"]]
        found["suggestions"] += [item.as_dict() for item in for_consumer(rows, loop)]
    return found


def _judged(ranked: Sequence[Row], waits: Sequence[Row]) -> dict[Place, list[Row]]:
    """Rows of each repetition's rank that waits most, in their order; only of ranks whose steady state was seen."""
    warmup_only = {(row["rep"], row["rank"]) for row in waits if row["kind"] != "train"}
    groups: dict[Place, list[Row]] = {}
    for row in ranked:
        place = (row["rep"], row["rank"])
        if place not in warmup_only:
            groups.setdefault(place, []).append(row)
    worst: dict[int, Place] = {}
    for place, rows in groups.items():
        best = worst.get(place[0])
        if best is None or rows[0]["wait_share"] > groups[best][0]["wait_share"]:
            worst[place[0]] = place
    return {place: groups[place] for place in worst.values()}


def _vote(groups: Mapping[Place, list[Row]]) -> tuple[Place, int, int]:
    """The repetition to show, how many say the same, and of how many."""
    says = {place: (rows[0]["verdict"], rows[0]["op_id"]) for place, rows in groups.items()}
    said, agree = max(Counter(says.values()).items(), key=lambda item: item[1])
    same = sorted((groups[place][0]["wait_share"], place) for place in groups if says[place] == said)
    return same[(len(same) - 1) // 2][1], agree, len(groups)


def _doubts(ranked: Sequence[Row], loads: Sequence[Row], agree: int, of: int) -> list[dict[str, Any]]:
    """What is missing for high confidence, as codes with the numbers that a sentence about them needs.

    Without a doubt confidence is high, with one medium, with more low; repetitions that disagree are one.
    """
    first = ranked[0]
    others = [row for row in ranked if row["op_id"] != first["op_id"] and row["utilisation"] is not None]
    runner_up = max(others, key=lambda row: row["utilisation"], default=None)
    facts: dict[str, dict[str, Any]] = {
        "not_busy": {"op": _who(first), "utilisation": first["utilisation"]},
        "close": {"op": _who(runner_up), "utilisation": runner_up["utilisation"] if runner_up else None},
        "queues_elsewhere": {"op": _who(shown.stage_rows(ranked, first["drop_id"]))},
        "few_batches": {"batches": first["batches"] or 0},
        "holds_lock": {"share": first["gil_share"]},
        "other_load": {"idle_share": loads[0]["idle_share"] if loads else None},
        "indirect": {"op": _who(first), "rule": first["rule"]},
    }
    doubts = [{"code": code, **facts.get(code, {})} for code in first["doubts"].split(", ") if code]
    if (first["batches"] or 0) < LEAST_STEPS:
        doubts.append({"code": "few_steps", "steps": first["batches"] or 0})
    if (first["utilisation"] or 0.0) > PREFILLED and first["kind"] != "burst":  # bursts have no steady pace anyway
        doubts.append({"code": "prefilled", "op": _who(first), "times": first["utilisation"]})
    if agree < of:
        doubts.append({"code": "repetitions_differ", "agree": agree, "of": of})
    return doubts


def _who(row: Row | None) -> dict[str, Any] | None:
    return shown.operator(row) if row else None


def _severity(first: Row) -> str | None:
    if first["verdict"] != "input_bound":
        return None
    return "high" if first["wait_share"] >= HIGH else "moderate"


def _head(rows: Sequence[Row], first: Row) -> Row:
    return rows[0] if rows else {**first, "loop_rate": None, "consumer_rate": None}


def _name(found: dict[str, Any], ranked: Sequence[Row], rows: Sequence[Row]) -> None:
    """The operator that limits; of a balanced pipeline, the busier of its operators even if the loop is busier."""
    operators = [row for row in ranked if row["op_id"] != CONSUMER]
    if not operators:
        return
    best = operators[0]
    row = shown.stage_rows(rows, best["op_id"]) or {}
    found |= {
        "op_id": best["op_id"],
        "op_type": best["op_type"],
        "op_name": best["name"],
        "kind": best["kind"],
        "rule": ranked[0]["rule"],
        "candidates": [operator["op_id"] for operator in operators],
        "place": {"call": row.get("site"), "code": row.get("code")},
        "facts": {name: row.get(name) for name in FACTS}
        | {"margin": best.get("margin") if best is ranked[0] else None},
    }


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
    found = _empty("consumer_bound" if share < MODERATE else "input_bound", share)
    steps = sum(row["steps"] for row in waits)
    if share >= MODERATE:
        found["severity"] = "high" if share >= HIGH else "moderate"
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
        "stage": None,
        "confidence": "low",
        "doubts": [],
        "candidates": [],
        "place": None,
        "facts": None,
        "data_wait_share": share,
        "headroom": None,
        "repetitions": None,
        "evidence": [],
        "suggestions": [],
        "network": None,
        "compatible": {"mindinsight": {}, "mindspore": {}, "autotune": {}},
    }
